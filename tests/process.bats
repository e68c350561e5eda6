#!/usr/bin/env bats
# Signals, children, threads and handles come and go as before.
load calm

@test "signals run their handlers and do not shorten a poll that makes way for others" {
    for run in "${RUNS[@]}"; do
        calm "$run" signals poll
        is poll _TIMED_OUT; is poll_errno ETIMEDOUT
        at_least poll_ms 1495; at_least handled 5
        quiet
    done
}

@test "a thread that waits behind a long call runs its signal handlers at once" {
    for run in "${RUNS[@]}"; do
        calm "$run" signals wait
        is holder_inside 1; is poll_inside 1; is handled 60
        is holder NO_ERROR; is poll message
        quiet
    done
}

@test "children of a program with a busy consumer end as they should, and the consumer does not notice" {
    for run in "${RUNS[@]}"; do
        calm "$run" forks
        is forked 10; is exited 10; is executed 10; is spawned 10; is opened 10; is run 10
        is poll_inside 1; is poll message
        quiet
    done
}

@test "many short-lived threads and consumers, on addresses used again, are all served" {
    for run in "${RUNS[@]}"; do
        calm "$run" churn
        is calls 1200; is consumers 60
        quiet
    done
}
