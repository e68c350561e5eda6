#!/usr/bin/env bats
# Callbacks that wait for other threads, which call the same consumer. All of it works without the shim; a gate that
# is held through a callback breaks it.
load helper

right_both_ways() {
    plain 15 "$@"
    expect_ok
    with_shim 30 "$@"
    expect_ok
}

@test "a pause whose caller holds a lock that the callback wants goes through" {
    for_each_lib right_both_ways interpreter_lock
}
