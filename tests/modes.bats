#!/usr/bin/env bats
# RDGATE_MODE: what becomes of a call that meets another.
load helper

# collide MODE RESULT: under that mode the pause beside the poll comes to this, and the poll stays.
collide() {
    RDGATE_MODE=$1 with_shim 20 collide
    expect_ok
    grep -q "^pause: $2\$" <<<"$output" || fail "should have come to $2"
    grep -q '^the poll is still there: yes$' <<<"$output" || fail "should have left the poll alone"
}

collisions() { grep -c 'finding: collision: ' <<<"$output"; }

@test "serialize, lifetime and off let a call beside a poll through, and say nothing" {
    for mode in serialize lifetime off; do
        for_each_lib collide "$mode" NO_ERROR
        [ "$(collisions)" -eq 0 ]
    done
}

@test "refuse gives a call beside a poll an error, and names both" {
    for_each_lib collide refuse _CONFLICT
    [ "$(collisions)" -eq 1 ]
    grep -q 'rd_kafka_pause_partitions .* met rd_kafka_consumer_poll of thread' <<<"$output"
}

@test "observe lets a call beside a poll through, and names both" {
    for_each_lib collide observe NO_ERROR
    [ "$(collisions)" -eq 1 ]
    grep -q 'rd_kafka_pause_partitions .* met rd_kafka_consumer_poll of thread' <<<"$output"
}

close_wakes() {
    RDGATE_MODE=$1 with_shim 20 close_wakes_poll consumer_poll
    expect_ok
}

@test "a close wakes a poll in lifetime and refuse as well" {
    for_each_lib close_wakes lifetime
    for_each_lib close_wakes refuse
}

close_hangs() {
    RDGATE_MODE=$1 with_shim 3 close_wakes_poll consumer_poll
    expect_bad
}

@test "observe and off change nothing: a close beside a poll still hangs" {
    for_each_lib close_hangs observe
    for_each_lib close_hangs off
}
