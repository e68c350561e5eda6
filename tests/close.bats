#!/usr/bin/env bats
# Closing a consumer while other threads use it.
load helper

poll_is_woken_by_close() {
    plain 8 close_wakes_poll "$1"
    expect_not_ok "the poll did not return"
    with_shim 20 close_wakes_poll "$1"
    expect_ok
}

@test "a close wakes a consumer_poll without limit" {
    for_each_lib poll_is_woken_by_close consumer_poll
}

@test "a close wakes a queue_poll without limit" {
    for_each_lib poll_is_woken_by_close queue_poll
}

woken_under_shim() {
    with_shim 20 close_wakes_poll "$1"
    expect_ok
}

# Without the shim they hang like the two above; seen once, not in every run.
@test "a close wakes every other call that polls the consumer's queue" {
    for kind in poll queue_poll_callback consume_queue consume_batch_queue consume_callback_queue; do
        for_each_lib woken_under_shim "$kind"
    done
}

two_closes() {
    plain 10 two_closes
    expect_not_ok "the second close did not return"
    with_shim 20 two_closes
    expect_ok
}

@test "of two closes at once both return" {
    for_each_lib two_closes
}

# Right without the shim: a gate that is held through the close breaks it.
late_unassign() {
    plain 15 late_unassign
    expect_ok
    RDGATE_FORMAT=json with_shim 30 late_unassign
    expect_ok
    ! grep '"finding"' <<<"$output" || fail "should have found nothing"
}

@test "a revoke may be answered by another thread, later, during the close" {
    for_each_lib late_unassign
}

# Right without the shim: a gate that waits for the poll breaks it.
close_with_lock() {
    plain 10 close_with_lock
    expect_ok
    with_shim 20 close_with_lock
    expect_ok
}

@test "a close does not wait for a callback that waits for the closer's lock" {
    for_each_lib close_with_lock
}
