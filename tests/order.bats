#!/usr/bin/env bats
# Nobody waits who does not want to, everybody else is served, and in the order of arrival.
load calm

@test "a poll with timeout 0 never waits for a long call of another thread" {
    for run in "${RUNS[@]}"; do
        calm "$run" nowait 0
        is holder_inside 1; is holder NO_ERROR; is messages 3
        is consumer_poll_timed_out 200; is consume_queue_timed_out 200
        quiet
    done
}

@test "a poll with a timeout waits for a long call of another thread no longer than that" {
    for run in "${RUNS[@]}"; do
        calm "$run" nowait 100
        is holder_inside 1; is holder NO_ERROR; is messages 3
        is consumer_poll_timed_out 3; is consume_queue_timed_out 3
        is consumer_poll_early 0; is consume_queue_early 0; is queue_poll_early 0; is batch_early 0; is poll_early 0
        quiet
    done
}

@test "twenty threads that call beside one poll(-1) are all served" {
    for run in "${RUNS[@]}"; do
        calm "$run" waiters served
        is served 20; is poll_inside 1; is poll message; is offset 1
        quiet
    done
}

@test "twenty waiters behind a long call are served in the order of their arrival, asleep meanwhile" {
    for run in "${RUNS[@]}"; do
        calm "$run" waiters ordered
        is holder_inside 1; is served 20
        is order 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19
        at_most cpu_ms 500
        is poll_inside 1; is poll message; is offset 1
        quiet
    done
}

@test "a poll that an event has asked for takes what is there, although a long call of another thread is inside" {
    for run in "${RUNS[@]}"; do
        for how in "fd" "cb" "cb 20" "fd 20"; do
            # shellcheck disable=SC2086 # two words
            calm "$run" told $how
            is got 4
            is long_calls 4
            quiet
        done
    done
}
