#!/usr/bin/env bats
# Queues that are not the consumer queue go their own way, and the consumer queue announces what it did before.
load calm

@test "a private queue polled for ever beside consumer_poll disturbs nobody" {
    for run in "${RUNS[@]}"; do
        calm "$run" queues private
        is messages 100; is own_inside 1; is own "(NONE)"
        quiet
    done
}

@test "a partition queue and the consumer queue, polled by two threads, both get all their messages in order" {
    for run in "${RUNS[@]}"; do
        calm "$run" queues partition
        is consumer_messages 2000; is partition_messages 2000; is disorder 0; is foreign 0
        quiet
    done
}

@test "a thread that sits in poll(-1) on a partition queue or on the consumer queue does not hold up the other" {
    for run in "${RUNS[@]}"; do
        calm "$run" queues partition_idle
        is own_inside 1; is own Fetch
        is partition_messages 100; is disorder 0; is consumer_inside 1; is sitting message
        quiet
    done
}

@test "commit_queue with a queue of its own is answered while another thread sits in consumer_poll(-1)" {
    for run in "${RUNS[@]}"; do
        calm "$run" queues commit
        is answers 20; is consumer_inside 1; is sitting message
        quiet
    done
}

@test "the log queue is served beside consumer_poll(-1)" {
    for run in "${RUNS[@]}"; do
        calm "$run" queues log
        at_least logs 20; is consumer_inside 1; is sitting message
        quiet
    done
}

@test "rd_kafka_poll on a main queue of its own gets statistics beside consumer_poll(-1)" {
    for run in "${RUNS[@]}"; do
        calm "$run" queues main
        is stats 5; is consumer_inside 1; is sitting message
        quiet
    done
}

@test "a pipe that announces messages gets one byte at most for a call that interrupts a poll" {
    for run in "${RUNS[@]}"; do
        calm "$run" events io 50
        at_least calls 10; is poll null; is too_many 0; is announced 3
        quiet
    done
}

@test "a callback that announces messages runs once at most for a call that interrupts a poll" {
    for run in "${RUNS[@]}"; do
        calm "$run" events cb 50
        at_least calls 10; is poll null; is too_many 0; is announced 3
        quiet
    done
}
