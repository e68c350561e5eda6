#!/usr/bin/env bats
# Destroying a consumer while other threads use it.
load helper

destroy_vs_poll() {
    plain 3 destroy_vs_poll consumer_poll
    expect_hang destroy
    with_shim 20 destroy_vs_poll consumer_poll
    expect_ok
}

@test "a destroy wakes a consumer_poll without limit and returns" {
    for_each_lib destroy_vs_poll
}

destroy_vs_queue_poll() {
    plain 8 destroy_vs_poll queue_poll
    expect_not_ok "the poll did not return"
    with_shim 20 destroy_vs_poll queue_poll
    expect_ok
}

@test "a destroy wakes a queue_poll without limit on a queue that the application keeps" {
    for_each_lib destroy_vs_queue_poll
}
