#!/usr/bin/env bats
# What applications do inside callbacks works as before.
load calm

inside_went_well() {
    is messages 60; is commits 12; is rebalances 1; is rebalances_closed 2
    is enough_statistics 1; is enough_answers 1; is close NO_ERROR
    quiet
}

@test "every kind of callback may call its own consumer" {
    for run in "${RUNS[@]}"; do
        calm "$run" inside reentry
        inside_went_well
    done
}

@test "every kind of callback may wait for another thread that calls its consumer" {
    for run in "${RUNS[@]}"; do
        calm "$run" inside delegate
        inside_went_well
    done
}

@test "a callback gets its answer from another thread while three more call without pause" {
    for run in "${RUNS[@]}"; do
        calm "$run" inside crowd
        is served 3
        inside_went_well
    done
}
