#!/usr/bin/env bats
# Threads that call whatever they like while their consumer is closed and destroyed under them.
load helper

# Which round kills plain librdkafka is a matter of luck, so it gets several.
plain_dies() {
    local round
    for round in 0 1 2 3 4 5; do
        plain 10 storm 4 $((SEED + round)) 6
        [ "$status" -eq 0 ] || break
    done
    expect_bad
}

storm() {
    plain_dies
    with_shim 60 storm 6 "$SEED" 6
    expect_ok
}

@test "a storm of calls on a consumer that is closed and destroyed under them always ends" {
    SEED=${SEED:-$RANDOM}
    echo "# seed $SEED; SEED=$SEED bats tests/storm.bats draws the same calls" >&3
    for_each_lib storm
}

storm_lifetime() {
    RDGATE_MODE=lifetime with_shim 60 storm 4 "$SEED" 6
    expect_ok
}

@test "so it does when only lifetimes are protected" {
    SEED=${SEED:-$RANDOM}
    for_each_lib storm_lifetime
}
