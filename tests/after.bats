#!/usr/bin/env bats
# Using a consumer after it was closed, or destroyed.
load helper

lie_after_close() {
    plain 5 after_close "$1"
    expect_not_ok "returned NO_ERROR, not _DESTROY"
    with_shim 15 after_close "$1"
    expect_ok
}

@test "an assign after close says that the consumer is gone" {
    for_each_lib lie_after_close assign
}

@test "an unassign after close says that the consumer is gone" {
    for_each_lib lie_after_close unassign
}

@test "incremental assigns after close say that the consumer is gone" {
    for_each_lib lie_after_close incremental_assign
    for_each_lib lie_after_close incremental_unassign
}

@test "an asynchronous commit after close says that the consumer is gone" {
    for_each_lib lie_after_close commit_async
}

pause_after_close() {
    plain 4 after_close pause
    expect_hang destroy
    with_shim 15 after_close pause
    expect_ok
}

@test "a pause after close is refused, so that the destroy returns" {
    for_each_lib pause_after_close
}

poll_after_close() {
    plain 8 after_close poll
    expect_not_ok "the poll did not return"
    with_shim 15 after_close poll
    expect_ok
}

@test "a poll without limit after close returns" {
    for_each_lib poll_after_close
}

others_after_close() {
    plain 5 after_close others
    expect_ok
    with_shim 15 after_close others
    expect_ok
}

@test "what is refused after close already, stays refused" {
    for_each_lib others_after_close
}
