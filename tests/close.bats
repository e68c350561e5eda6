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

# A gate that is held through the close breaks this.
@test "a revoke may be answered by another thread, later, during the close" {
    for_each_lib right_both_ways late_unassign
}

# A gate that waits for the poll breaks this.
@test "a close does not wait for a callback that waits for the closer's lock" {
    for_each_lib right_both_ways close_with_lock
}

# Which close loses its message is chance; one of the first 50 does.
four_pollers() {
    plain 20 four_pollers 200
    expect_not_ok "close number [0-9]* did not return"
    with_shim 60 four_pollers 200
    expect_ok
}

@test "200 closes beside four looping pollers all return" {
    for_each_lib four_pollers
}

# Which call is lost is chance, and sometimes librdkafka fails an assertion instead.
group_calls() {
    plain 10 group_calls 10
    expect_bad
    with_shim 60 group_calls 10
    expect_ok
}

@test "calls that race a close are all answered" {
    for_each_lib group_calls
}

@test "a close by close_queue and closed goes on as without the shim" {
    for_each_lib right_both_ways close_queue
}

close_by_queue_fatal() {
    plain 8 close_queue fatal
    expect_not_ok "never closed"
    with_shim 20 close_queue fatal
    expect_ok
}

@test "a wait for closed ends, although close_queue failed" {
    for_each_lib close_by_queue_fatal
}

# librdkafka #4884. Without the shim the assign is lost once in 25 runs on 2.15, and was never on 2.0.2.
late_assign() {
    with_shim 30 close_queue late_assign
    expect_ok
}

@test "an assign event that comes late, during close_queue, can be answered" {
    for_each_lib late_assign
}

@test "a poll whose callback ends beside a close returns, and does not wait for the close" {
    for_each_lib right_both_ways close_beside_callback
}

sliced_poll() {
    plain 10 sliced_poll
    expect_bad
    with_shim 20 sliced_poll
    expect_ok
}

@test "a poll in slices whose handle has become NULL is told so" {
    for_each_lib sliced_poll
}
