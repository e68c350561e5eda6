#!/usr/bin/env bats
# What rdgate check says of files and processes, and that it comes true when they run.
load helper

rdgate=$ROOT/build/rdgate
STATIC=$ROOT/build/static
LIB215=$ROOT/build/librdkafka/2.15

setup_file() {
    cd "$BATS_TEST_DIRNAME/.." || return
    make -s build/static/{close_wakes_poll,close_exported,close_nopie,lto,module.so,host}
    unset LD_PRELOAD RDGATE_MODE RDGATE_PATCH
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    unset LD_PRELOAD RDGATE_MODE RDGATE_PATCH
}

# With the decoder, what is inside can be redirected.
decoder() { [ -e "$ROOT/build/zydis/libzydis.a" ]; }
patch_default() { sed -n 's/^CHOICE(PATCH, patch, "\([a-z]*\)".*/\1/p' "$ROOT/shim/options.def"; }

# says STATUS PATTERN FILE [PATTERN...]: what the command says of this file. AS are words to start it with.
AS=()
says() {
    local status_wanted=$1 pattern=$2 file=$3
    shift 3
    status=0
    output=$("${AS[@]}" env ${PRELOADS:+LD_PRELOAD="$PRELOADS"} "$rdgate" check "$file" 2>"$BATS_TEST_TMPDIR/err") || status=$?
    [ -n "$output" ] || output=$(cat "$BATS_TEST_TMPDIR/err")
    echo "check $file: $status"
    echo "$output"
    [ "$status" -eq "$status_wanted" ]
    for pattern in "$pattern" "$@"; do
        grep -qE -e "$pattern" <<<"$output" || { echo "it should have said: $pattern"; return 1; }
    done
    case $status in
    0) tail -n 1 <<<"$output" | grep -q '^WORKS ' && ! grep -q '^NO ' <<<"$output" ;;
    3) grep -q '^NO ' <<<"$output" && ! grep -q '^WORKS ' <<<"$output" ;;
    111) [ "$(wc -l <"$BATS_TEST_TMPDIR/err")" -eq 1 ] && [[ $output == "rdgate check: "* ]] ;;
    esac || { echo "status and lines do not agree"; return 1; }
}

# proven COMMAND...: what the shim itself says in the process: covered, not-covered or nothing
proven() {
    local log
    log=$(mktemp "$BATS_TEST_TMPDIR/proof.XXXXXX")
    RDGATE_VERBOSE=1 RDGATE_LOG=$log LD_PRELOAD=$GATE_SO PROBE_PATIENCE_MS=1500 timeout -s KILL 20 "$@" \
        >/dev/null 2>&1 </dev/null || true
    if grep -q 'not-covered' "$log" 2>/dev/null; then
        echo not-covered
    elif grep -qE 'exit: [1-9][0-9]* calls gated' "$log" 2>/dev/null; then
        sed -n 's/^rdgate: \[[0-9]*\] librdkafka \([0-9.]*\).*/covered \1/p' "$log" | head -n 1
    else
        echo nothing
    fi
}

# comes_true FILE COMMAND...: what was said of the file is what happens; the version, too
comes_true() {
    local file=$1 version real
    shift
    run "$rdgate" check "$file"
    version=$(sed -n 's/^ok .*librdkafka.* \(version \)\?\([0-9]\+\.[0-9]\+\.[0-9]\+\).*/\2/p' <<<"$output" | head -n 1)
    real=$(proven "$@")
    echo "check $file: $status, $version; in the process: $real"
    if [ "$status" -eq 0 ]; then
        [ "$real" = "covered $version" ]
    else
        [ "$real" != "covered $version" ] && [[ $real != covered* ]]
    fi
}

build() { "${CC:-cc}" -O1 -D_GNU_SOURCE "$@"; }

# ------------------------------------------------------------------ what it knows of files

@test "dynamic programs: which librdkafka, of which version, and how many of its calls" {
    local system
    system=$(ldconfig -p | sed -n 's/.*librdkafka\.so\.1 .*=> //p' | head -n 1)
    says 0 "^ok +needs librdkafka.so.1 -> $system, version 2\." "$ROOT/build/probes/close_healthy" \
        '^ok +ELF 64-bit .*, dynamic, interpreter ld-linux-.*\(glibc\)' \
        '^note  [1-9][0-9]* gated calls imported, [1-9][0-9]* others have no gate \(-v lists them\)'
    says 0 "^ok +needs librdkafka\+\+.so.1, which needs librdkafka.so.1 -> /" "$ROOT/build/clients/cppclient"
    says 0 "^ok +needs librdkafka.so.1 -> /" "$ROOT/build/clients/goclient"
    says 0 "^ok +needs librdkafka.so.1 -> /" "$(command -v kcat)"
    says 0 "^ok +needs librdkafka.so.1 -> /" kcat
}

@test "which librdkafka it finds is the one that ld.so finds" {
    local program found
    cp "$ROOT/build/probes/close_healthy" here
    mkdir lib deep
    build -o runpath "$ROOT/tests/probes/close_healthy.c" -Wl,--enable-new-dtags,-rpath,'$ORIGIN/lib' -lrdkafka -lpthread
    build -o rpath "$ROOT/tests/probes/close_healthy.c" -Wl,--disable-new-dtags,-rpath,'${ORIGIN}/lib' -lrdkafka -lpthread
    agree() {
        run "$rdgate" check "$1"
        found=$(sed -n 's/^ok .*-> \(.*\), version.*/\1/p' <<<"$output")
        [ -n "$found" ] && [ "$(realpath "$found")" = "$(realpath "$(ldd "$1" | sed -n 's/.*librdkafka.so.1 => \(.*\) (.*/\1/p')")" ] ||
            { echo "check says of $1: $found; ldd:"; ldd "$1"; return 1; }
    }
    for program in ./here ./runpath ./rpath; do
        agree "$program"
        LD_LIBRARY_PATH=/nonexistent:$LIB215/lib agree "$program"
    done
    cp "$LIB215/lib/librdkafka.so.1" lib/
    for program in ./here ./runpath ./rpath; do
        agree "$program"
        LD_LIBRARY_PATH=deep agree "$program"
    done
    LD_LIBRARY_PATH=$LIB215/lib says 0 'version 2\.15\.[0-9]' ./here
    says 0 'version 2\.15\.[0-9]' ./runpath
}

@test "known defects of that version are named, and those of others not" {
    says 0 'librdkafka 2\.0\.2 has a known defect, mended in 2\.4\.0: .*#4527' "$ROOT/build/probes/close_healthy"
    LD_LIBRARY_PATH=$LIB215/lib run "$rdgate" check "$ROOT/build/probes/close_healthy"
    [ "$(grep -c 'known defect' <<<"$output")" -eq 0 ]
}

@test "interpreters and other programs that open libraries" {
    local program
    for program in /usr/bin/python3 "$(command -v luajit)" "$ROOT/build/clients/host" "$ROOT/build/calm/loader"; do
        says 0 '^ok .*opens libraries while it runs' "$program" '^WORKS if it loads librdkafka'
    done
    says 0 '^ok +libruby.* opens libraries while it runs' "$(command -v ruby)"
}

@test "modules: with a librdkafka beside them, exported inside, and librdkafka itself" {
    local cimpl
    for cimpl in /usr/lib/python3/dist-packages/confluent_kafka/cimpl*.so; do
        says 0 '^ok +needs librdkafka.so.1 -> ' "$cimpl" '^ok +ELF 64-bit .*, a shared object'
    done
    says 0 '^ok +needs librdkafka.so.1 -> ' "$ROOT/build/clients/plugin.so"
    says 0 '^ok +is .*/librdkafka.so.1, version 2\.15' "$LIB215/lib/librdkafka.so.1"
    build -Dmain=run -isystem "$LIB215/include" -fPIC -shared -o exporting.so "$ROOT/tests/probes/close_wakes_poll.c" \
        "$LIB215/lib/librdkafka.a" -lz -lm -ldl -lpthread
    says 0 '^ok +is .*/exporting.so, which has librdkafka 2\.15' ./exporting.so
    comes_true ./exporting.so "$STATIC/host" ./exporting.so
    strip -s exporting.so
    says 0 '^ok +is .*/exporting.so, which has librdkafka 2\.15' ./exporting.so
    build -Dmain=run -isystem "$LIB215/include" -fPIC -shared -Wl,-Bsymbolic -o symbolic.so \
        "$ROOT/tests/probes/close_wakes_poll.c" "$LIB215/lib/librdkafka.a" -lz -lm -ldl -lpthread
    says 3 'librdkafka 2\.15.* is inside .*/symbolic.so, which calls it directly' ./symbolic.so 'Link it without -Bsymbolic'
    RDGATE_PATCH=auto comes_true ./symbolic.so "$STATIC/host" ./symbolic.so
    says 3 'there is no librdkafka in it, and it needs none' "$ROOT/build/calm/lib/own.so"
}

@test "a library that a program needs and that keeps its librdkafka to itself" {
    echo 'int run(int, char **); int main(int n, char **v) { return run(n, v); }' >main.c
    build -o program main.c "$STATIC/module.so"
    says 3 'librdkafka is inside .*/module.so, which it needs and which keeps it to itself' ./program
    RDGATE_PATCH=auto comes_true ./program ./program
}

@test "librdkafka inside a program: off, redirected, or why not" {
    local program off='where a preload does not reach; 1[0-9][0-9] of its functions can be redirected, and RDGATE_PATCH is off'
    local on='librdkafka 2\.15.* is inside this program: 1[0-9][0-9] of its functions will be redirected'
    for program in close_wakes_poll close_exported close_nopie; do
        if decoder; then
            RDGATE_PATCH=off says 3 "librdkafka 2\.15.* is inside this program, $off" "$STATIC/$program" 'RDGATE_PATCH=auto'
            RDGATE_PATCH=auto says 0 "$on" "$STATIC/$program"
        else
            RDGATE_PATCH=auto says 3 'librdkafka 2\.15.* is inside this program: .*without the decoder' "$STATIC/$program"
        fi
        for RDGATE_PATCH in off auto; do
            export RDGATE_PATCH
            comes_true "$STATIC/$program" "$STATIC/$program"
        done
        unset RDGATE_PATCH
    done
    RDGATE_PATCH=auto says 3 'is inside this program: it was built with link-time optimisation' "$STATIC/lto"
    RDGATE_PATCH=auto comes_true "$STATIC/lto" "$STATIC/lto"
    # without a word in the environment it is what the options say
    if decoder && [ "$(patch_default)" = auto ]; then
        says 0 "$on" "$STATIC/close_wakes_poll"
    else
        says 3 'is inside this program' "$STATIC/close_wakes_poll"
    fi
}

@test "librdkafka inside a stripped program, with and without its debug file, and inside one that exports it" {
    export RDGATE_PATCH=auto
    cp "$STATIC/close_wakes_poll" program
    objcopy --only-keep-debug program program.debug
    strip -s program
    says 3 'librdkafka is inside this program: its symbols are stripped; keep them' ./program
    comes_true ./program ./program
    objcopy --add-gnu-debuglink=program.debug program
    comes_true ./program ./program
    if decoder; then says 0 '^note  its symbols are in .*/program.debug' ./program; fi
    strip -s -o exported "$STATIC/close_exported"
    comes_true ./exported ./exported
}

@test "a module that keeps its librdkafka to itself: off, redirected, stripped" {
    if decoder; then
        RDGATE_PATCH=off says 3 'is inside .*/module.so, where a preload does not reach' "$STATIC/module.so"
        RDGATE_PATCH=auto says 0 'is inside .*/module.so: 1[0-9][0-9] of its functions will be' "$STATIC/module.so"
    fi
    for RDGATE_PATCH in off auto; do
        export RDGATE_PATCH
        comes_true "$STATIC/module.so" "$STATIC/host" "$STATIC/module.so"
    done
    strip -s -o module.so "$STATIC/module.so"
    says 3 'is inside .*/module.so: its symbols are stripped' ./module.so
    comes_true ./module.so "$STATIC/host" ./module.so
}

@test "what is seen in dynamic programs and modules comes true" {
    comes_true "$ROOT/build/probes/close_healthy" "$ROOT/build/probes/close_healthy"
    LD_LIBRARY_PATH=$LIB215/lib comes_true "$ROOT/build/probes/close_healthy" "$ROOT/build/probes/close_healthy"
    comes_true "$ROOT/build/calm/lib/consume.so" "$ROOT/build/calm/loader" open now "$ROOT/build/calm/lib/consume.so" run
    comes_true "$ROOT/build/calm/lib/consume.so" "$ROOT/build/calm/loader" open now,deepbind \
        "$ROOT/build/calm/lib/consume.so" run
    RDGATE_MODE=off comes_true "$ROOT/build/probes/close_healthy" "$ROOT/build/probes/close_healthy"
}

# ------------------------------------------------------------------ what no preload reaches

@test "static programs, with and without an address of their own, with and without librdkafka" {
    echo 'int main(void) { return 0; }' >plain.c
    build -static -o static plain.c
    build -static-pie -o static-pie plain.c
    build -static -isystem "$LIB215/include" -o inside "$ROOT/tests/probes/close_wakes_poll.c" "$LIB215/lib/librdkafka.a" \
        -lz -lm -ldl -lpthread 2>/dev/null
    says 3 'ELF 64-bit .*, static: no interpreter, so nothing is ever preloaded; and there is no librdkafka' ./static
    says 3 'ELF 64-bit .*, static-pie: no interpreter' ./static-pie
    says 3 'ELF 64-bit .*, static: no interpreter.*librdkafka is inside, 2\.15' ./inside 'Build it with an interpreter and'
    says 3 'static: no interpreter' "$ROOT/build/calm/static"
    comes_true ./inside ./inside
}

@test "musl, other machines, other word sizes" {
    build -o musl "$ROOT/tests/probes/close_healthy.c" -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1 -lrdkafka -lpthread
    says 3 'interpreter ld-musl-x86_64.so.1: musl, and librdgate.so is built for glibc' ./musl 'not even start'
    local here there=aarch64 number='\267'
    here=$(uname -m)
    [ "$here" = x86_64 ] || there=x86-64 number='\076'
    cp "$ROOT/build/probes/close_healthy" other
    printf '%b' "$number\000" | dd of=other bs=1 seek=18 conv=notrunc status=none
    says 3 "ELF 64-bit $there; librdgate.so is 64-bit" ./other
    printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0' >narrow
    says 3 'ELF 32-bit i386; librdgate.so is 64-bit' ./narrow
    printf '\177ELF\2\2\1\0\0\0\0\0\0\0\0\0\0\2\0\026\0\0\0\1' >big
    says 3 'ELF 64-bit s390 \(big-endian\); librdgate.so is' ./big
    "${CC:-cc}" -c -o object.o -x c - <<<'int x;'
    says 3 'neither a program nor a shared object' ./object.o
}

@test "setuid, setgid and capabilities" {
    says 3 '^NO +it is setuid' "$(command -v su)" 'the loader ignores LD_PRELOAD'
    cp "$ROOT/build/probes/close_healthy" program
    chmod u+s program
    says 3 '^NO +it is setuid' ./program '^ok +needs librdkafka'
    chmod u-s,g+s program
    says 3 '^NO +it is setgid' ./program
    chmod g-s program
    says 0 WORKS ./program
    # cap_net_raw=ep, as setcap writes it
    python3 -c 'import os, struct; os.setxattr("program", "security.capability", struct.pack("<5I", 0x2000001, 1 << 13, 0, 0, 0))' ||
        skip "only root may give capabilities to a file"
    says 3 '^NO +it is given capabilities' ./program 'AmbientCapabilities'
}

@test "programs without librdkafka, and with one that is missing" {
    says 3 'there is no librdkafka in it, it needs none, and it opens no libraries' "$(command -v true)"
    echo 'int rd_kafka_new(void) { return 0; }' | build -shared -fPIC -Wl,-soname,librdkafka.so.99 -o librdkafka.so.99 -x c -
    mkdir away
    echo 'int rd_kafka_new(void); int main(void) { return rd_kafka_new(); }' | build -o program -x c - -x none librdkafka.so.99
    mv librdkafka.so.99 away
    says 3 'librdkafka.so.99, which is needed, is not found' ./program 'LD_LIBRARY_PATH'
    # whatever the file is called, the symbols decide
    LD_LIBRARY_PATH=away says 3 'nothing that it needs offers the functions of librdkafka that it asks for' ./program
}

# ------------------------------------------------------------------ scripts

@test "scripts: what runs them is checked, and that is said" {
    printf '#!%s\nprint()\n' "$(command -v luajit)" >script
    says 0 '^ok +a script, run by /.*luajit' ./script '^WORKS if it loads'
    printf '#!/usr/bin/env -S A=b kcat -C\n' >script
    says 0 '^ok +a script, run by /usr/bin/env -S' ./script '^ok +needs librdkafka'
    printf '#!/usr/bin/env no-such-thing\n' >script
    says 3 'a script, run by /usr/bin/env no-such-thing, which is not found' ./script
    printf '#! %s/script\n' "$PWD" >script
    says 111 'too many scripts' ./script
    printf '#!' >script
    says 111 'neither an ELF file nor a script' ./script
    printf '#!/nonexistent/interpreter\n' >script
    says 3 'run by /nonexistent/interpreter, which is not found' ./script
}

# ------------------------------------------------------------------ what it does not trust

@test "what is no program gets one line and 111" {
    mkdir directory
    mkfifo fifo
    : >empty
    truncate -s 5T huge || truncate -s 100G huge
    echo text >text
    head -c 40 "$(command -v kcat)" >short
    ln -s nowhere dangling
    ln -s loop loop
    says 111 'is a directory' ./directory
    says 111 'is not a regular file' ./fifo
    says 111 'is not a regular file' /dev/null
    says 111 'is empty' ./empty
    says 111 'is larger than 4 GiB' ./huge
    says 111 'is neither an ELF file nor a script' ./text
    says 111 'cut short' ./short
    says 111 'No such file' ./dangling
    says 111 'symbolic links' ./loop
    says 111 'No such file' ./missing
    says 111 'neither in PATH nor here' no-such-program-anywhere
    says 111 'there is no process' 99999999
    says 111 'File name too long' "./$(printf 'x%.0s' {1..300})"
}

@test "files that cannot be read get one line" {
    cp "$(command -v kcat)" secret
    chmod 0 secret
    # root reads everything, unless it is told not to
    [ "$(id -u)" -ne 0 ] || AS=(setpriv "--bounding-set=-dac_override,-dac_read_search")
    says 111 'Permission denied' ./secret
}

@test "damaged files are answered within the second, and nothing of them gets to the terminal as it is" {
    local i at size
    cp "$(command -v kcat)" good
    size=$(stat -c %s good)
    for i in {1..60}; do
        cp good damaged
        for at in $((RANDOM % 64)) $((64 + RANDOM % 700)) $((RANDOM * 32768 % size)) $((size - 1 - RANDOM % 2000)); do
            printf '%b' "\\$(printf %o $((RANDOM % 256)))\\377" | dd of=damaged bs=1 seek="$at" conv=notrunc status=none
        done
        run timeout 5 "$rdgate" check ./damaged
        echo "$i: $status"
        case $status in 0 | 3 | 111) ;; *) cp damaged "$BATS_TMPDIR/damaged"; return 1 ;; esac
    done
    printf '#!/bin/\033[31mred\n' >colour
    run "$rdgate" check ./colour
    [[ $output != *$'\033'* ]]
}

# ------------------------------------------------------------------ what stands around

@test "other preloads are named, and whether they come first" {
    PRELOADS=/nonexistent/libother.so says 0 'LD_PRELOAD names /nonexistent/libother.so, which comes before librdgate.so' kcat
    PRELOADS=$GATE_SO:/nonexistent/libother.so says 0 'LD_PRELOAD names /nonexistent/libother.so, which comes behind' kcat
    PRELOADS=$ROOT/build/clients/count.so says 0 'count.so, which comes before librdgate.so; it has functions of librdkafka' kcat
}

@test "RDGATE_MODE=off in the environment is an answer, too" {
    RDGATE_MODE=off says 3 'RDGATE_MODE=off in the environment turns rdgate off' kcat
}

@test "without librdgate.so nothing works" {
    [ ! -e /usr/local/lib/librdgate.so ] || skip "one is installed in /usr/local/lib"
    cp "$rdgate" alone
    rdgate=./alone says 3 'librdgate.so is neither beside rdgate nor in /usr/local/lib' kcat
}

# ------------------------------------------------------------------ the command

@test "how it is used, and the exit codes" {
    run "$rdgate" check
    [ "$status" -eq 100 ]
    run "$rdgate" check --nonsense kcat
    [ "$status" -eq 100 ]
    run "$rdgate" check kcat kcat
    [ "$status" -eq 100 ]
    run "$rdgate" check --help
    [ "$status" -eq 0 ]
    for code in 0 3 100 111; do grep -qw "$code" <<<"$output"; done
    run bash -c "'$rdgate' check kcat >/dev/full"
    [ "$status" -eq 111 ]
}

@test "-v lists the calls without a gate, each with its reason" {
    run "$rdgate" check -v kcat
    [ "$status" -eq 0 ]
    local n
    n=$(sed -n 's/.* gated calls imported, \([0-9]*\) others.*/\1/p' <<<"$output")
    [ "$n" -gt 10 ]
    [ "$(grep -cE '^note  no gate: rd_kafka_[A-Za-z0-9_]+: .' <<<"$output")" -eq "$n" ]
    grep -q 'no gate: rd_kafka_producev: producers only' <<<"$output"
    # those and the gated ones are all that it imports
    [ "$(nm -D -u "$(command -v kcat)" | grep -c ' rd_kafka_')" -eq \
        "$(($(sed -n 's/^note  \([0-9]*\) gated calls.*/\1/p' <<<"$output") + n))" ]
}

@test "--json says the same to machines" {
    json() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1" <<<"$output"; }
    valid() {
        /usr/bin/python3 -c 'import json, jsonschema, sys; jsonschema.validate(json.load(sys.stdin), json.load(open(sys.argv[1])))' \
            "$ROOT/shim/man/check.schema.json" <<<"$output"
    }
    local file
    for file in kcat "$STATIC/close_exported" "$STATIC/module.so" "$(command -v luajit)" /bin/true $$; do
        run "$rdgate" check --json "$file"
        valid || { echo "$output"; return 1; }
    done
    run "$rdgate" check --json kcat
    [ "$status" -eq 0 ]
    [ "$(json 'd["v"], d["works"], d["by"], d["target"]')" = "(1, True, ['preload'], 'kcat')" ]
    [ "$(json 'd["librdkafka"][0]["version"], d["librdkafka"][0]["covered"]')" = "('2.0.2', True)" ]
    [ "$(json '4527 in [x["upstream"] for x in d["librdkafka"][0]["defects"]]')" = True ]
    [ "$(json 'd["gated"] > 5 and "rd_kafka_producev" in d["others"]')" = True ]
    run "$rdgate" check --json "$(command -v su)"
    [ "$status" -eq 3 ]
    [ "$(json 'd["works"], d["by"], [l["is"] for l in d["lines"]]')" = "(False, [], ['ok', 'no'])" ]
    printf '#!/bin/"\033\351\\\n' >odd
    run "$rdgate" check --json ./odd
    valid
    [ "$(json 'd["lines"][0]["text"][:22]')" = 'a script, run by /bin/' ]
}

# ------------------------------------------------------------------ processes

# alive COMMAND...: in the background; PROCESS is its pid, and it has said "ready"
alive() {
    local i
    : >ready
    "$@" >ready 2>errors 3>&- </dev/null &
    PROCESS=$!
    for ((i = 0; i < 200; i++)); do
        if grep -q ready ready; then return; fi
        kill -0 "$PROCESS" || break
        read -rt 0.05 <> <(:) || true
    done
    cat ready errors
    return 1
}

teardown() {
    [ -z "${PROCESS-}" ] || kill "$PROCESS" 2>/dev/null || true
}

end() {
    kill "$PROCESS"
    wait "$PROCESS" || true
    PROCESS=
}

# Python, with what is to be done before it waits.
sits() { exec /usr/bin/python3 -c "import ctypes, os, time
$1
print('ready', flush=True)
time.sleep(60)"; }
kafka='k = ctypes.CDLL("librdkafka.so.1")'

@test "a process with rdgate, and librdkafka" {
    LD_PRELOAD=$GATE_SO alive sits "$kafka"
    says 0 "^ok +process $PROCESS runs /usr/bin/python3" "$PROCESS" "^ok +$GATE_SO is loaded" \
        '^ok +has loaded /.*librdkafka.so.1, version 2\.0' '^WORKS rdgate is in this process'
    end
    LD_PRELOAD=$GATE_SO alive sits ''
    says 0 'no librdkafka is loaded in it yet' "$PROCESS"
    end
    LD_PRELOAD=$GATE_SO RDGATE_MODE=off alive sits "$kafka"
    says 3 'RDGATE_MODE=off in its environment turns rdgate off' "$PROCESS"
    end
}

@test "a process without rdgate: why, and what to do" {
    alive sits "$kafka"
    says 3 'librdgate.so is not loaded: nothing named it' "$PROCESS" 'rdgate run -- ' \
        '^ok +has loaded /.*librdkafka.so.1, version 2\.0'
    end
    LD_PRELOAD=/nonexistent/librdgate.so alive sits "$kafka"
    says 3 'librdgate.so is not loaded: the process sees no /nonexistent/librdgate.so' "$PROCESS"
    end
    alive sits "$kafka; s = ctypes.CDLL('$GATE_SO')"
    says 0 'neither LD_PRELOAD nor .* named it: whoever opened it did so late' "$PROCESS"
    end
}

@test "a process whose files have been replaced since" {
    cp "$GATE_SO" librdgate.so
    cp "$LIB215/lib/librdkafka.so.1" .
    LD_PRELOAD=$PWD/librdgate.so alive sits "k = ctypes.CDLL('$PWD/librdkafka.so.1')"
    rm librdgate.so librdkafka.so.1
    says 0 'that file has been replaced or removed since' "$PROCESS" '/librdgate.so is loaded'
    if [ "$(id -u)" -eq 0 ]; then
        says 0 'librdkafka.so.1 has been replaced or removed since' "$PROCESS" 'version 2\.15'
    fi
    end
}

@test "a process with librdkafka inside: whether it is redirected is seen in its memory" {
    decoder || skip "built without the decoder: scripts/fetch-zydis"
    cat >sit.c <<'C'
#include <librdkafka/rdkafka.h>
#include <unistd.h>
int main(void) { return puts("ready") < 0 || fflush(stdout) || pause(); }
void *keep[] = {(void *)rd_kafka_new, (void *)rd_kafka_consumer_close, (void *)rd_kafka_consumer_poll, (void *)rd_kafka_destroy};
C
    build -isystem "$LIB215/include" -o sit sit.c "$LIB215/lib/librdkafka.a" -lz -lm -ldl -lpthread
    LD_PRELOAD=$GATE_SO RDGATE_PATCH=auto alive ./sit
    says 0 'is inside this program: 1[0-9][0-9] of its functions are redirected' "$PROCESS"
    end
    LD_PRELOAD=$GATE_SO RDGATE_PATCH=off alive ./sit
    says 3 'where a preload does not reach' "$PROCESS"
    end
    RDGATE_PATCH=auto alive ./sit
    says 3 'its functions have not been redirected' "$PROCESS" 'librdgate.so is not loaded'
    end
}

@test "a process with a seccomp filter" {
    LD_PRELOAD=$GATE_SO alive sits "$kafka
class F(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_void_p)]
allow = (ctypes.c_ubyte * 8).from_buffer_copy(bytes([6, 0, 0, 0, 0, 0, 0xff, 0x7f]))
c = ctypes.CDLL(None)
assert c.prctl(38, 1, 0, 0, 0) == 0 and c.prctl(22, 2, ctypes.byref(F(1, ctypes.addressof(allow)))) == 0"
    says 0 'a seccomp filter is on it' "$PROCESS"
    end
}

@test "a process in a container: is librdgate.so there?" {
    local file inside=()
    mkdir -p root/opt
    printf '#include <stdio.h>\n#include <unistd.h>\nint main(void) { return puts("ready") < 0 || fflush(stdout) || pause(); }' >sit.c
    build -o root/sit sit.c -Wl,--no-as-needed -lrdkafka
    { ldd root/sit; ldd "$GATE_SO"; } | grep -oE '/[^ ]+' | sort -u | while read -r file; do
        mkdir -p "root$(dirname "$file")"
        cp -L "$file" "root$file"
    done
    if [ "$(id -u)" -ne 0 ]; then inside=(unshare -r); fi
    alive "${inside[@]}" chroot root /sit
    says 3 'librdgate.so is not loaded: nothing named it' "$PROCESS" '^ok +has loaded /.*librdkafka.so.1, version' \
        'has a root of its own .*, and there is no .*/librdgate.so there'
    end
    alive "${inside[@]}" env LD_PRELOAD=/opt/librdgate.so chroot root /sit
    says 3 'librdgate.so is not loaded: the process sees no /opt/librdgate.so' "$PROCESS"
    end
    cp "$GATE_SO" root/opt/
    alive "${inside[@]}" env LD_PRELOAD=/opt/librdgate.so chroot root /sit
    says 0 '^ok +/opt/librdgate.so is loaded' "$PROCESS" '^ok +has loaded /.*librdkafka.so.1, version'
    end
}
