#!/usr/bin/env bats
# Threads and processes that leave a call in another way than by its return.
load helper

cancel_poll() {
    plain 3 cancel_poll
    expect_hang close
    with_shim 20 cancel_poll
    expect_ok
}

@test "a consumer outlives the cancellation of the thread that polls it" {
    for_each_lib cancel_poll
}

# librdkafka survives these; a gate that believes its owner still inside does not.
escape() {
    plain 15 escape "$@"
    expect_ok
    with_shim 30 escape "$@"
    expect_ok
}

@test "a stats callback may be left by longjmp" {
    for_each_lib escape longjmp stats
}

@test "a stats callback may be left by an exception" {
    for_each_lib escape throw stats
}

@test "a rebalance callback may be left by longjmp" {
    for_each_lib escape longjmp rebalance
}

@test "a rebalance callback may be left by an exception" {
    for_each_lib escape throw rebalance
}

child() {
    plain 12 fork "$1"
    expect_not_ok "the child's $1 $2"
    with_shim 30 fork "$1"
    expect_ok
}

@test "a forked child's calls on its parent's consumer return" {
    for_each_lib child assignment "did not return"
    for_each_lib child commit "did not return"
}

@test "a forked child's poll without limit of its parent's consumer returns" {
    for_each_lib child poll "did not return"
}

@test "a forked child's close of its parent's consumer returns" {
    for_each_lib child close "did not return"
}

@test "a forked child's destroy of its parent's consumer returns" {
    for_each_lib child destroy "did not return"
    for_each_lib child destroy_flags "died of signal 6"
}

cancel_waiter() {
    plain 10 cancel_waiter
    expect_ok
    with_shim 20 cancel_waiter
    expect_ok
}

@test "a thread that is cancelled while it waits for its turn ends at once and leaves the line" {
    for_each_lib cancel_waiter
}
