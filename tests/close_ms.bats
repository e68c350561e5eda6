#!/usr/bin/env bats
# RDGATE_CLOSE_MS: a close that does not end is given up, and one that does sees nothing of it.
load helper

given_up() {
    plain 10 close_given_up "$@"
    expect_not_ok "did not return"
    RDGATE_CLOSE_MS=500 with_shim 30 close_given_up "$@"
    expect_ok
    not_run || [ "$(grep -c 'finding: close-stuck' <<<"$output")" -eq 1 ] || fail "should have said close-stuck once"
}

destroyed() {
    given_up "$@"
    not_run || ! grep -q 'finding: destroy-stuck' <<<"$output" || fail "should have been destroyed"
}

leaked() {
    given_up "$@"
    not_run || grep -q 'finding: destroy-stuck' <<<"$output" || fail "should have said destroy-stuck"
}

@test "a close whose revoke callback does not answer is given up, and the destroy ends" {
    for_each_lib destroyed revoke
    for_each_lib destroyed revoke leave
}

@test "a close whose revoke event is never answered is given up, and the destroy ends" {
    for_each_lib destroyed event
}

@test "a close whose coordinator is gone is given up, and the destroy leaks the handle and says so" {
    for_each_lib leaked coordinator
    for_each_lib leaked coordinator leave
}

@test "an answer that comes after the close was given up is taken, and a second close succeeds" {
    for_each_lib destroyed late
}

@test "two closes at once are both given up" {
    for_each_lib destroyed two
}

@test "a destroy without close is given up, too" {
    for_each_lib destroyed none
}

seen() {
    grep '^# \|^ok' <<<"$output"
}

healthy() {
    plain 40 close_healthy "$@"
    expect_ok
    local before
    before=$(seen)
    RDGATE_CLOSE_MS=20000 with_shim 40 close_healthy "$@"
    expect_calm
    not_run || [ -n "${GATE_HALF-}" ] || [ "$(seen)" = "$before" ] || fail "should have seen:
$before"
}

@test "a healthy close does the same with the option as without the shim" {
    for assignor in range cooperative-sticky; do
        for how in callback nothing events; do
            for_each_lib healthy "$assignor" "$how"
        done
    done
}

bounded() {
    RDGATE_CLOSE_MS=20000 with_shim 30 "$@"
    expect_ok
    not_run || ! grep -q 'finding: close-stuck' <<<"$output" || fail "should not have been given up"
}

@test "two closes, a close beside a blocked poll and an answer by another thread go on as without the option" {
    for_each_lib bounded two_closes
    for_each_lib bounded close_wakes_poll consumer_poll
    for_each_lib bounded close_wakes_poll queue_poll
    for_each_lib bounded late_unassign
    for_each_lib bounded close_with_lock
}

storm() {
    RDGATE_CLOSE_MS=$1 with_shim 60 storm 4 "$RANDOM" 6
    expect_ok
}

# Its closes mostly end within a millisecond, so this exercises the clock and not the giving up.
@test "a storm of calls ends with a limit on its closes, a short one or a long one" {
    for_each_lib storm 1
    for_each_lib storm 300
}
