#!/usr/bin/env bats
# Using a consumer after it was closed, or destroyed.
load helper

setup() {
    export MALLOC_PERTURB_=165 # freed memory is overwritten at once: a wrong read shows
}

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

dead() {
    plain 4 after_destroy "$1"
    expect_bad
    with_shim 15 after_destroy "$1"
    expect_ok
}

@test "a poll of a destroyed consumer returns nothing" {
    for_each_lib dead poll
}

@test "a commit on a destroyed consumer is refused" {
    for_each_lib dead commit
}

@test "any other call on a destroyed consumer is refused" {
    for_each_lib dead calls
}

@test "a destroyed consumer can be closed, which does nothing" {
    for_each_lib dead close
}

@test "a destroyed consumer can be destroyed again, which does nothing" {
    for_each_lib dead destroy
}

@test "a destroyed queue can be destroyed again, which does nothing" {
    for_each_lib dead queue_destroy
}

# librdkafka keeps a queue that somebody holds, so that this is right without the shim.
dead_queue() {
    plain 5 after_destroy queue_poll
    expect_ok
    with_shim 15 after_destroy queue_poll
    expect_ok
}

@test "a poll of a queue whose consumer was destroyed returns nothing" {
    for_each_lib dead_queue
}

# 2.0 keeps a topic that somebody holds; 2.15 reads a freed handle.
dead_topic() {
    under_valgrind plain 20 after_destroy topic_destroy
    if lib_before 2.1; then
        expect_ok
    else
        expect_invalid
    fi
    under_valgrind with_shim 30 after_destroy topic_destroy
    expect_ok
}

@test "a topic whose consumer was destroyed can be destroyed" {
    command -v valgrind >/dev/null || skip "no valgrind"
    for_each_lib dead_topic
}
