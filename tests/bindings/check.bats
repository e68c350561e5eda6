# What rdgate check says of the artefacts that bindings come as, and that the binding itself knows the same version.

load ../clients
load ../bindings

rdgate=$ROOT/build/rdgate

# says STATUS PATTERN FILE [PATTERN...]
says() {
    local pattern status_wanted=$1 file=$3 first=$2
    shift 3
    run "$rdgate" check "$file"
    echo "check $file: $status"
    echo "$output"
    [ "$status" -eq "$status_wanted" ] || return 1
    for pattern in "$first" "$@"; do
        grep -qE -e "$pattern" <<<"$output" || { echo "it should have said: $pattern"; return 1; }
    done
}

@test "Python's wheels: the module beside its librdkafka, and in a process" {
    binding_or_skip python
    local version module process i
    for version in 2.15.0 2.16.1; do
        module=$(echo "$PARTS/$version"/confluent_kafka/cimpl*.so)
        says 0 "^ok +needs librdkafka-[0-9a-f]+.so.1 -> .*/confluent_kafka.libs/librdkafka-[0-9a-f]+.so.1, version ${version%.*}\." \
            "$module" '[1-9][0-9]* gated calls imported'
        PYTHONPATH=$PARTS/$version LD_PRELOAD=$GATE_SO /usr/bin/python3 -c '
import confluent_kafka, time
print("ready", confluent_kafka.libversion()[0], flush=True)
time.sleep(60)' >"$BATS_TEST_TMPDIR/out" 3>&- </dev/null &
        process=$!
        for ((i = 0; i < 400; i++)); do
            ! grep -q ready "$BATS_TEST_TMPDIR/out" || break
            read -rt 0.05 <> <(:) || true
        done
        says 0 "^ok +has loaded .*/librdkafka-[0-9a-f]+.so.1, version $(sed 's/^ready //' "$BATS_TEST_TMPDIR/out")\$" "$process" \
            '^WORKS rdgate is in this process' || { kill "$process"; return 1; }
        kill "$process"
    done
}

@test "node's addons: librdkafka beside the one, exported inside the other" {
    binding_or_skip node
    local modules=$PARTS/node_modules
    version() { NODE_PATH=$modules node -p "require('$1').librdkafkaVersion"; }
    says 0 "^ok +needs librdkafka.so.1 -> .*/deps/librdkafka.so.1, version $(version node-rdkafka)\$" \
        "$modules/node-rdkafka/build/Release/node-librdkafka.node"
    says 0 "^ok +is .*.node, which has librdkafka $(version @confluentinc/kafka-javascript) inside and lets the loader bind" \
        "$modules/@confluentinc/kafka-javascript/build/Release/confluent-kafka-javascript.node"
    says 0 '^WORKS if it loads librdkafka' "$(command -v node)"
}

@test "Go linked dynamically" {
    binding_or_skip go
    says 0 '^ok +needs librdkafka.so.1 -> ' "$PARTS/service" '[1-9][0-9]* gated calls imported'
}

@test "Go as it is built by default: what its symbols allow" {
    cd "$ROOT" || return
    [ ! -e build/go.absent ] || skip "$(cat build/go.absent)"
    if ! make -s build/static/govictim >"$BATS_TEST_TMPDIR/log" 2>&1; then
        cat "$BATS_TEST_TMPDIR/log"
        ! grep -qE 'dial tcp|no such host|i/o timeout' "$BATS_TEST_TMPDIR/log" || skip "Go's modules cannot be fetched"
        return 1
    fi
    local version
    version=$(sed -n 's,.*confluent-kafka-go/v2 v\([0-9.]*\)$,\1,p' tests/static/go.mod)
    if [ -e build/zydis/libzydis.a ]; then
        RDGATE_PATCH=auto says 0 "librdkafka ${version%.*}\.[0-9]+ is inside this program: 1[0-9][0-9] of its functions will be" \
            build/static/govictim
    fi
    RDGATE_PATCH=off says 3 "librdkafka ${version%.*}\.[0-9]+ is inside this program" build/static/govictim 'go build -tags dynamic'
    strip -s -o "$BATS_TEST_TMPDIR/stripped" build/static/govictim
    RDGATE_PATCH=auto says 3 'its symbols are stripped; build it without -ldflags -s' "$BATS_TEST_TMPDIR/stripped" \
        'go build -tags dynamic'
}

@test "Rust linked dynamically" {
    binding_or_skip rust
    LD_LIBRARY_PATH=$ROOT/build/librdkafka/2.15/lib says 0 \
        "^ok +needs librdkafka.so.1 -> $ROOT/build/librdkafka/2.15/lib/librdkafka.so.1, version 2\.15\." "$PARTS/target/debug/service"
}

@test "rsyslogd, which opens its module, and the module" {
    binding_or_skip rsyslog
    says 0 '^ok +it opens libraries while it runs' "$PARTS/root/usr/sbin/rsyslogd" '^WORKS if it loads librdkafka'
    says 0 '^ok +needs librdkafka.so.1 -> ' "$PARTS/root/usr/lib/x86_64-linux-gnu/rsyslog/imkafka.so"
}

@test "pmacct" {
    binding_or_skip pmacct
    LD_LIBRARY_PATH=$PARTS/root/usr/lib/x86_64-linux-gnu says 0 '^ok +needs librdkafka.so.1 -> ' "$PARTS/root/usr/sbin/nfacctd"
}

@test "Java, whose launcher opens what opens librdkafka" {
    says 0 '^ok .* opens libraries while it runs' "$(command -v java)" '^WORKS if it loads librdkafka'
}
