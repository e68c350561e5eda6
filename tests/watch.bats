#!/usr/bin/env bats
# What the watchdog finds: hangs, each with its report, and silence where nothing is wrong.
load helper

deadlock_answer() {
    plain 20 deadlock answer
    expect_not_ok "the close did not return"
    RDGATE_MODE=observe watched 40 deadlock answer
    expect_ok
    found deadlock 1
    says "held by T"
    says "a pthread mutex at"
    says "rd_kafka_consumer_close"
    says "(close_or_commit)"
    says "(on_rebalance)"
    says "rebalance_cb of the application"
}

@test "a close that holds the lock of the callback it waits for is a deadlock, without any gate of ours" {
    for_each_lib deadlock_answer
}

commit_returns() {
    plain 20 deadlock commit
    expect_ok
    RDGATE_MODE=observe RDGATE_STUCK_MS=5000 watched 40 deadlock commit
    expect_ok
    found deadlock 0
}

@test "a sync commit that holds that lock is none, and is not called one" {
    for_each_lib commit_returns
}

deadlock_gate() {
    watched 40 deadlock gate
    expect_ok
    found deadlock 1
    found handle-leaked 1
    says "(main)"
    says "(on_stats)"
}

@test "a destroy that waits for a callback which wants its lock is let go as soon as that is known" {
    for_each_lib deadlock_gate
}

deadlock_timed() {
    RDGATE_STUCK_MS=8000 watched 40 deadlock timed
    expect_ok
    found deadlock 0
    found destroy-drained 1
}

@test "a callback that gives up on the lock after a while is no deadlock" {
    for_each_lib deadlock_timed
}

deadlock_two() {
    watched 40 deadlock two
    expect_ok
    found deadlock 1
    says "T1 wants G"
    says "T2 wants G"
}

@test "two consumers whose callbacks destroy each other are a deadlock, and both are let go" {
    for_each_lib deadlock_two
}

@test "after a deadlock the process may end, with a code of its own or by abort" {
    RDGATE_MODE=observe RDGATE_ON_DEADLOCK=exit:7 watched 40 deadlock answer
    not_run || [ "$status" -eq 7 ] || fail "should have ended with 7"
    found deadlock 1
    RDGATE_MODE=observe RDGATE_ON_DEADLOCK=abort watched 40 deadlock answer
    not_run || [ "$status" -eq 134 ] || fail "should have aborted"
    found deadlock 1
}

stuck_callback() {
    plain 20 stuck callback
    expect_ok
    RDGATE_OWNER_STACK=always watched 40 stuck callback
    expect_ok
    found stuck-call 1
    says "stats_cb has been running"
    says "(on_stats)"
    says "moving again"
}

@test "a callback that blocks is named, with its stack, and so is that it goes on" {
    for_each_lib stuck_callback
}

stuck_nested() {
    plain 20 stuck nested
    expect_ok
    watched 40 stuck nested
    expect_ok
    found close-stuck 1
    says "rd_kafka_consumer_close > rebalance_cb"
}

@test "a callback that blocks inside a close is named with the close" {
    for_each_lib stuck_nested
}

stuck_commit() {
    plain 30 stuck commit
    expect_ok
    watched 40 stuck commit
    expect_ok
    found stuck-call 1
    says "rd_kafka_commit"
    says "moving again"
}

@test "a commit that the broker does not answer is named" {
    for_each_lib stuck_commit
}

gap() {
    plain 30 poll_gap
    expect_ok
    watched 40 poll_gap
    expect_ok
    found poll-gap 1
    found poll-exceeded 1
}

not_its_fault() {
    RDGATE_MODE=observe watched 5 destroy_fatal # a hang of librdkafka that the other modes take away
    expect_bad
    found destroy-stuck 1
    found close-debt 0
    says "the application holds nothing: not its fault"
}

@test "a destroy that hangs although nothing is held says so" {
    for_each_lib not_its_fault
}

@test "a member that stops polling is named before it is thrown out, and when it is" {
    for_each_lib gap
}

finalizer() {
    watched 20 finalizer stranger
    expect_ok
    found finalizer-destroy 1
    for who in maker poller; do
        watched 20 finalizer $who
        expect_ok
        found finalizer-destroy 0
    done
}

@test "a destroy by a thread that neither made nor polled the consumer is named, no other" {
    for_each_lib finalizer
}

young() {
    plain 20 young
    expect_ok
    watched 20 young
    expect_ok
    found poll-gap 0
    found poll-exceeded 0
}

@test "a consumer is not late before anybody has looked at it" {
    for_each_lib young
}

unclosed() {
    plain 20 finalizer nobody
    expect_ok
    watched 20 finalizer nobody
    expect_ok
    found unclosed-at-exit 1
    says "made by thread"
    watched 20 finalizer loner
    expect_ok
    found unclosed-at-exit 0
}

@test "a member of a group that is open when the process ends is named, one without a group is not" {
    for_each_lib unclosed
}

still() {
    plain 40 still 4
    expect_ok
    RDGATE_STUCK_MS=2500 watched 60 still 9
    expect_ok
    not_run || [ ! -s "$LOG" ] || fail "should have said nothing"
}

@test "nothing is said of long polls, slow callbacks, and a rebalance that another thread answers late" {
    for_each_lib still
}

@test "the watchdog is there as long as a consumer is, also in a child, and holds up no end" {
    for_each_lib right_both_ways watched
}

@test "the budget holds, and is said to be used up" {
    RDGATE_REPORTS=1 RDGATE_MODE=observe watched 60 unanswered revoke callback
    not_run || [ "$(grep -c 'finding: ' <<<"$output")" -eq 1 ] || fail "should have said one finding"
    says "further ones are only counted"
}

@test "every line in JSON is an object of the schema, whatever was found" {
    for run in "deadlock gate" "deadlock two" "stuck callback" "finalizer stranger" "leak message" "poll_gap"; do
        # Each with a file of its own, which it reads along.
        cat "$BATS_TEST_TMPDIR/json" >>"$BATS_TEST_TMPDIR/all" 2>/dev/null || true
        rm -f "$BATS_TEST_TMPDIR/json"
        # shellcheck disable=SC2086
        RDGATE_FORMAT=json RDGATE_VERBOSE=1 RDGATE_STUCK_MS=500 RDGATE_LOG=$BATS_TEST_TMPDIR/json PROBE_LOG=$BATS_TEST_TMPDIR/json \
            with_shim 30 $run
    done
    not_run || python3 - "$ROOT/shim/man/report.schema.json" "$BATS_TEST_TMPDIR/all" "$BATS_TEST_TMPDIR/json" <<'END'
import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
lines = [json.loads(line) for file in sys.argv[2:] for line in open(file)]
for line in lines:
    jsonschema.validate(line, schema)
found = {line.get("finding") for line in lines}
wanted = {"deadlock", "stuck-call", "finalizer-destroy", "close-debt", "destroy-stuck", "handle-leaked"}
assert wanted <= found, f"missing: {wanted - found}"
END
}
