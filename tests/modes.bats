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

every_kind() {
    plain 20 collisions
    expect_ok
    local before=$output call
    RDGATE_MODE=observe with_shim 20 collisions
    expect_ok
    not_run && return
    [ -n "${GATE_HALF-}" ] || [ "$(grep '^#\|^ok' <<<"$output")" = "$(grep '^#\|^ok' <<<"$before")" ] ||
        fail "should have come to the same as: $before"
    for call in pause_partitions assignment subscription unsubscribe memberid consumer_poll; do
        [ "$(grep -c "finding: collision: rd_kafka_$call of" <<<"$output")" -eq 1 ] || fail "should have named $call once"
    done
    [ "$(collisions)" -eq 6 ] || fail "should have named nothing else"
}

@test "observe names each kind of collision once, and changes no result" {
    for_each_lib every_kind
}
