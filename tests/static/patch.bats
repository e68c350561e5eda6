#!/usr/bin/env bats
# Programs with librdkafka inside: entry patching.
load ../helper

STATIC=$ROOT/build/static
PROBES=$STATIC # what plain() and with_shim() run
GATE_TEST_LIBS=

setup_file() {
    [ "$(uname -m)" = x86_64 ] || skip "entries are redirected on x86_64 only"
    [ -e "$ROOT/build/zydis/libzydis.a" ] || { echo "built without the decoder: scripts/setup, then make"; return 1; }
}

# $output without librdkafka's own lines and ours
said() { grep -v '^%\|^rdgate: ' <<<"$output"; }

expect_covered() {
    expect_ok
    not_run || ! grep -q 'finding: ' <<<"$output" || fail "should have found nothing"
    not_run || grep -q 'patched at their entries' <<<"$output" || fail "should have been patched"
}

# expect_uncovered WHY [DO]: says once why, and what helps, and the program ran as it does without us.
expect_uncovered() {
    not_run && return
    found not-covered 1
    says "librdkafka is linked into the program /"
    says "do not come through rdgate: $1."
    says "${2:-Build it against the shared librdkafka}"
}

covers() { # PROGRAM: it goes wrong without us
    plain 8 "$1"
    expect_not_ok "the poll did not return"
    RDGATE_VERBOSE=1 with_shim 20 "$1"
    expect_covered
}

@test "a close wakes a poll in a program with librdkafka inside" {
    covers close_wakes_poll
}

@test "so it does in one that exports its librdkafka" {
    covers close_exported
}

@test "so it does in one that is not position-independent, and bound at once" {
    covers close_nopie
}

@test "so it does in one that the loader was asked to start" {
    local WRAP=()
    cp "$STATIC/close_wakes_poll" "$BATS_TEST_TMPDIR/program"
    run timeout -s KILL 20 env LD_PRELOAD="$GATE_SO" RDGATE_VERBOSE=1 \
        "$(readelf -l "$STATIC/close_wakes_poll" | sed -n 's/.*interpreter: \(.*\)]/\1/p')" "$BATS_TEST_TMPDIR/program"
    RAN="through the loader" HALF=shim
    expect_covered
}

@test "so it does in one that has threads and signals before it starts" {
    for _ in 1 2 3; do
        RDGATE_VERBOSE=1 with_shim 20 restless
        expect_covered
    done
}

@test "one whose functions such a thread may have called already is left alone" {
    with_shim 3 restless_exported
    not_run || [ "$status" -eq 137 ] || fail "should have hung, as it does without us"
    expect_uncovered "threads run already, and may be in it"
}

@test "a destroy wakes a poll in it, and waits for it" {
    plain 3 destroy_vs_poll consumer_poll
    expect_hang destroy
    with_shim 20 destroy_vs_poll consumer_poll
    expect_ok
}

@test "the second of two closes gets an answer in it" {
    plain 8 two_closes
    expect_bad
    with_shim 20 two_closes
    expect_ok
}

@test "a destroy inside a callback of the handle is put off in it" {
    plain 8 destroy_in_callback
    expect_bad
    with_shim 20 destroy_in_callback
    expect_ok
}

@test "a storm of calls and closes passes in it" {
    with_shim 90 storm
    expect_ok
}

# Calm programs are the ones that touch most of the table.
alike() { # PROGRAM ARG...
    plain 60 "$@"
    expect_ok
    local before
    before=$(said)
    RDGATE_LOG=$BATS_TEST_TMPDIR/log with_shim 60 "$@" # what it finds in them is another test's matter
    expect_ok
    [ "$(said)" = "$before" ] || fail "it printed otherwise without the shim: $before"
}

@test "errors, errno and last errors are the same in it" {
    alike errnos
}

@test "queues of every kind are the same in it" {
    for kind in private partition commit main; do alike queues "$kind"; done
}

@test "events arrive in it" {
    for kind in io cb; do
        with_shim 60 events "$kind" 50
        expect_ok
        grep -qx announced=3 <<<"$output" || fail "not all events were announced"
    done
}

@test "calls from inside callbacks are the same in it" {
    alike inside reentry
}

@test "librdkafka's own unit tests pass through redirected entries" {
    RDGATE_VERBOSE=1 with_shim 60 unittest
    expect_covered
    [ "$(grep -c 'PASS:' <<<"$output")" -gt 300 ] || fail "there should have been more tests"
}

@test "every function of the table that has a gate is redirected, and no memory is left open" {
    plain 10 table
    expect_ok
    [ "$(grep -c ' jump$' <<<"$output")" -eq 0 ] || fail "no entry should have been a jump to a slot"
    with_shim 10 table
    expect_calm
    local name n=0
    while read -r name; do
        grep -q "^$name jump\$" <<<"$output" || fail "$name is not redirected"
        n=$((n + 1))
    done < <(sed -n '/, PASS, /d; s/^CALL([a-z]*, [^,]*, \(rd_kafka_[A-Za-z0-9_]*\),.*/\1/p' "$ROOT/shim/calls.def")
    [ "$n" -gt 90 ] || fail "the table has not been read"
    [ "$(grep -c 'writable and executable\|not executable' <<<"$output")" -eq 0 ] || fail "memory was left open"
}

@test "every function of the table gives through its redirected entry what it gives otherwise" {
    alike every
}

@test "programs with Debian's librdkafka.a are covered, position-independent or not" {
    covers debian_close_wakes_poll
    covers debian_nopie
    RDGATE_VERBOSE=1 with_shim 60 debian_unittest
    expect_covered
}

@test "a static program says nothing, as nobody is there to say it; rdgate check does" {
    with_shim 3 static_pie
    expect_hang "join the poller"
    run "$ROOT/build/rdgate" check "$STATIC/static_pie"
    RAN="rdgate check" HALF=shim
    [ "$status" -ne 0 ] || fail "should not have been satisfied"
    grep -q "static-pie" <<<"$output" || fail "should have said what it is"
}

@test "RDGATE_PATCH=off leaves every entry alone, and says nothing" {
    plain 10 table
    local before=$output
    RDGATE_PATCH=off with_shim 10 table
    expect_ok
    [ "$output" = "$before" ] || fail "should have been as without us"
    RDGATE_MODE=off with_shim 10 table
    [ "$output" = "$before" ] || fail "should have been as without us"
}

# ------------------------------------------------------------------ modules

@test "a module that keeps its librdkafka to itself is covered from the moment that it is open" {
    plain 8 host "$STATIC/module.so"
    expect_not_ok "the poll did not return"
    RDGATE_VERBOSE=1 with_shim 20 host "$STATIC/module.so"
    expect_covered
    for _ in 1 2 3 4 5; do
        with_shim 20 host "$STATIC/module.so" 8
        expect_calm
    done
}

@test "a module with constructors is covered, too, but for what they do" {
    RDGATE_VERBOSE=1 with_shim 20 host "$STATIC/early.so"
    expect_covered
}

@test "a module whose constructors start a thread is left alone, and that is said" {
    with_shim 3 host "$STATIC/busy.so"
    expect_hang "join the poller" # as it does without us
    found not-covered 1
    says "do not come through rdgate: threads were started while it was opened, and may be in it."
}

@test "RDGATE_PATCH=off leaves a module alone, too" {
    RDGATE_PATCH=off with_shim 3 host "$STATIC/module.so"
    expect_hang "join the poller"
}

# ------------------------------------------------------------------ symbols

# stripped HOW...: the program without its symbols, as ./program, and its debug file beside it
stripped() {
    cd "$BATS_TEST_TMPDIR" || return
    PROBES=$BATS_TEST_TMPDIR
    cp "$STATIC/close_wakes_poll" program
    objcopy --only-keep-debug program program.debug
    strip -s program
}

@test "a stripped program is not covered, says so, and runs as ever" {
    stripped
    rm program.debug
    with_shim 3 program
    expect_hang "join the poller" # as it does without us
    expect_uncovered "its symbols are stripped" "Keep them, or put the debug file where gdb finds it"
}

@test "a stripped program that exports librdkafka is covered" {
    cd "$BATS_TEST_TMPDIR" || return
    PROBES=$BATS_TEST_TMPDIR
    strip -s -o program "$STATIC/close_exported"
    covers program
}

@test "a stripped program whose debug file lies beside it is covered" {
    stripped
    objcopy --add-gnu-debuglink=program.debug program
    covers program
    mkdir .debug
    mv program.debug .debug/
    covers program
}

@test "the debug file of another build is not believed" {
    stripped
    objcopy --add-gnu-debuglink=program.debug program
    objcopy --only-keep-debug "$STATIC/destroy_vs_poll" program.debug
    with_shim 3 program
    expect_hang "join the poller"
    expect_uncovered "its symbols are stripped" "Keep them"
}

@test "a program whose file is gone is covered all the same" {
    cp "$STATIC/close_wakes_poll" "$BATS_TEST_TMPDIR/program"
    run timeout -s KILL 20 env LD_PRELOAD="$GATE_SO" RDGATE_VERBOSE=1 \
        bash -c 'exec {f}<"$1"; rm "$1"; exec /proc/self/fd/$f' sh "$BATS_TEST_TMPDIR/program"
    RAN="a deleted file" HALF=shim
    expect_covered
}

@test "what link-time optimisation has left of librdkafka is not touched, and that is said" {
    with_shim 10 lto
    expect_ok
    expect_uncovered "it was built with link-time optimisation, and its functions are not all there" "Build it without"
}

# ------------------------------------------------------------------ systems that forbid it

denied() { # MODE
    local WRAP=("$STATIC/deny" "$1")
    RDGATE_VERBOSE=1 with_shim "${2:-20}" close_wakes_poll
}

@test "it is covered where nothing may become executable, and where /proc/self/mem or memfd fail" {
    for mode in mdwe mem memfd execmem; do
        denied "$mode"
        expect_covered
    done
}

@test "where every way is forbidden that is said, and the program runs as ever" {
    denied all 3
    expect_hang "join the poller"
    expect_uncovered "this system does not let code be changed (/proc/self/mem: errno 5, memfd: errno 38, mprotect: errno 13)"
}

@test "a breakpoint on a patched function stops, and its stack is whole" {
    run timeout -s KILL 60 gdb -q -batch -ex "set exec-wrapper env LD_PRELOAD=$GATE_SO" -ex 'set breakpoint pending on' \
        -ex 'break main' -ex run -ex 'break rd_kafka_queue_get_consumer' -ex continue -ex 'bt' \
        -ex 'break rd_kafka_destroy_app' -ex 'delete 2' -ex continue -ex 'bt' -ex kill "$STATIC/close_wakes_poll"
    RAN=gdb HALF=shim
    echo "$output"
    [ "$(grep -c '^#[0-9]* .* main (' <<<"$output")" -ge 2 ] || fail "both stacks should lead to main"
    grep -q '^#[0-9]* .*rd_kafka_destroy ' <<<"$output" || fail "the stack should show rd_kafka_destroy"
}

@test "perf sees whole stacks through redirected entries" {
    command -v perf >/dev/null || skip "no perf here"
    local data=$BATS_TEST_TMPDIR/perf.data
    timeout 60 perf record -q -o "$data" -e cpu-clock -F 500 --call-graph dwarf,32768 env LD_PRELOAD="$GATE_SO" "$STATIC/spin" \
        >"$BATS_TEST_TMPDIR/perf.log" 2>&1 || skip "perf is not allowed here: $(tail -n 1 "$BATS_TEST_TMPDIR/perf.log")"
    # one line a sample: its frames, innermost first
    run awk -v RS= '/librdgate\.so/ { n++; if (/ main[+ ]/) whole++; if ($0 ~ /rd_kafka_q_[a-z_]*[+ ].*librdgate\.so.* main[+ ]/) through++ }
        END { print n + 0, whole + 0, through + 0 }' <(perf script -i "$data" -F ip,sym,dso 2>/dev/null | sed '/^$/!s/$/ ;/')
    echo "samples in or below the shim, of these up to main, with librdkafka below: $output"
    read -r n whole through <<<"$output"
    [ "$n" -gt 20 ] && [ "$through" -gt 5 ]
    [ $((whole * 10)) -ge $((n * 9)) ]
}

# ------------------------------------------------------------------ cost

@test "a program without librdkafka is not even looked into" {
    for program in /bin/true "$(command -v bash)"; do
        run strace -f -e trace=open,openat,mmap env LD_PRELOAD="$GATE_SO" "$program" -c true
        [ "$status" -eq 0 ]
        [ "$(grep -c 'proc/self/\(exe\|maps\|mem\)' <<<"$output")" -eq 0 ] || fail "should not have opened anything"
    done
}

# ------------------------------------------------------------------ Go

go_or_skip() {
    [ ! -e "$ROOT/build/go.absent" ] || skip "$(<"$ROOT/build/go.absent")"
}

go_covers() { # PROGRAM KIND
    go_or_skip
    plain 4 "$1" "$2"
    [ "$1" = govictim-race ] || expect_bad # the race detector slows it down, and it may get away
    RDGATE_VERBOSE=1 with_shim 20 "$1" "$2"
    expect_ok # whether its poll is late enough to be told that the handle is gone is a matter of chance
    not_run || grep -q 'patched at their entries' <<<"$output" || fail "should have been patched"
}

@test "confluent-kafka-go as it is built by default: a close beside Poll returns" {
    go_covers govictim poll
}

@test "confluent-kafka-go as it is built by default: a close beside ReadMessage returns" {
    go_covers govictim read
}

# The race detector sees that the binding's own Close and Poll race for its fields: that is not ours to mend.
@test "confluent-kafka-go built with -race: the same" {
    export GORACE=exitcode=0
    go_covers govictim-race poll
    go_covers govictim-race read
}

@test "confluent-kafka-go stripped with -ldflags -s is not covered, and is told how to be" {
    go_or_skip
    PROBES=$BATS_TEST_TMPDIR
    strip -s -o "$PROBES/program" "$STATIC/govictim"
    with_shim 4 program poll
    expect_uncovered "its symbols are stripped" "Build it without -ldflags -s (-w may stay), or with -tags dynamic."
}
