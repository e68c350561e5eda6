#!/usr/bin/env bats
# A poll is never shorter, longer or poorer because other threads use its consumer.
load calm

@test "consumer_poll interrupted fifty times lasts its time and times out as ever" {
    for run in "${RUNS[@]}"; do
        calm "$run" preempt consumer_poll 1000 50
        is result null; is last_error _TIMED_OUT; is errno ETIMEDOUT
        at_least calls 10
        at_least elapsed_ms 995; at_most elapsed_ms 20000
        quiet
    done
}

@test "a timeout that is a multiple of 256 ms lasts as long as any other" {
    for run in "${RUNS[@]}"; do
        for calls in 0 50; do
            calm "$run" preempt consumer_poll 1024 $calls
            is result null; is last_error _TIMED_OUT; is errno ETIMEDOUT
            at_least elapsed_ms 1019; at_most elapsed_ms 20000
            quiet
            calm "$run" preempt queue_poll 1024 $calls
            is result null; at_least elapsed_ms 1019; at_most elapsed_ms 20000
        done
    done
}

@test "consume_queue on the consumer queue interrupted fifty times lasts its time and times out as ever" {
    for run in "${RUNS[@]}"; do
        calm "$run" preempt consume_queue 1000 50
        is result null; is last_error _TIMED_OUT; is errno ETIMEDOUT
        at_least calls 10
        at_least elapsed_ms 995; at_most elapsed_ms 20000
        quiet
    done
}

@test "queue_poll on the consumer queue interrupted fifty times lasts its time and returns no event" {
    for run in "${RUNS[@]}"; do
        calm "$run" preempt queue_poll 1000 50
        is result null; is last_error NO_ERROR; is errno 0
        at_least calls 10
        at_least elapsed_ms 995; at_most elapsed_ms 20000
        quiet
    done
}

@test "an empty batch interrupted fifty times lasts its time" {
    for run in "${RUNS[@]}"; do
        calm "$run" preempt batch 1000 50
        is count 0; is last_error NO_ERROR; is errno 0
        at_least calls 10
        at_least elapsed_ms 995; at_most elapsed_ms 20000
        quiet
    done
}

@test "rd_kafka_poll after poll_set_consumer interrupted fifty times lasts its time" {
    for run in "${RUNS[@]}"; do
        calm "$run" preempt poll 1000 50
        is count 0
        at_least calls 10
        at_least elapsed_ms 995; at_most elapsed_ms 20000
        quiet
    done
}

@test "consume_callback_queue interrupted fifty times lasts its time" {
    for run in "${RUNS[@]}"; do
        calm "$run" preempt callback 1000 50
        is count 0
        at_least calls 10
        at_least elapsed_ms 995; at_most elapsed_ms 20000
        quiet
    done
}

@test "a message that arrives between interruptions is delivered by that same poll" {
    for run in "${RUNS[@]}"; do
        for timeout in 30000 -1; do
            calm "$run" preempt consumer_poll $timeout 20 1
            is result message; is offsets 0:1; is last_error NO_ERROR; is errno 0; at_least calls 10; quiet
            calm "$run" preempt consume_queue $timeout 20 1
            is result message; is offsets 0:1; is last_error NO_ERROR; is errno 0; at_least calls 10; quiet
            calm "$run" preempt queue_poll $timeout 20 1
            is result Fetch; is offsets 0:1; at_least calls 10; quiet
            calm "$run" preempt poll $timeout 20 1
            is count 1; is offsets 0:1; at_least calls 10; quiet
            calm "$run" preempt callback $timeout 20 1
            is count 1; is offsets 0:1; at_least calls 10; quiet
        done
    done
}

@test "a batch whose messages come one by one between interruptions is one batch, in order" {
    for run in "${RUNS[@]}"; do
        for timeout in 30000 -1; do
            calm "$run" preempt batch $timeout 30 5
            is count 5; is offsets 0:1,0:2,0:3,0:4,0:5; is errno 0; at_least calls 20; quiet
        done
    done
}

@test "a batch that stays incomplete waits for its whole time and returns what it has" {
    for run in "${RUNS[@]}"; do
        calm "$run" preempt batch 2000 30 3
        is count 3; is offsets 0:1,0:2,0:3
        at_least elapsed_ms 1995; at_most elapsed_ms 20000
        quiet
    done
}

@test "every call leaves the result, the last error and the errno that it leaves without the shim" {
    for run in "${RUNS[@]}"; do
        calm "$run" errnos
        (( $(wc -l <<<"$OUT") > 100 )) || _calm_no "the table is too short"
        same
    done
}
