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
