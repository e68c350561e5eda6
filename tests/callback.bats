#!/usr/bin/env bats
# Callbacks that wait for other threads, which call the same consumer. All of it works without the shim; a gate that
# is held through a callback breaks it.
load helper

@test "a pause whose caller holds a lock that the callback wants goes through" {
    for_each_lib right_both_ways interpreter_lock
}

@test "a rebalance is answered by another thread while three more are at the gate" {
    for_each_lib right_both_ways delegate
}

@test "a pool of two workers answers a rebalance although one of them collides with the poll" {
    for_each_lib right_both_ways pool
}

@test "two threads that a callback waits for both get through" {
    for_each_lib right_both_ways siblings
}
