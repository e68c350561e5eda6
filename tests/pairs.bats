#!/usr/bin/env bats
# What bindings do at the same time on one handle, and may: nobody is blocked by the gate, nobody starves. What each
# call waited is printed. The other side's polls have no limit, where a binding's have one: a call that had to wait
# for the end of a poll would not come back (tests/calm/pairs.c).
load calm

pair() { # NUMBER MESSAGES: that many at least reach the side that polls, while the other calls
    local run
    for run in "${RUNS[@]}"; do
        calm "$run" pairs "$1"
        is "done" 1
        at_least got "$2"
        at_least calls 10
        quiet
        echo "# pair $1, ${run%@*} on $(basename "$(dirname "${run#*@}")" | sed 's/^\.$/the system'"'"'s/'):" \
            "$(value calls) calls, half of them below $(value wait_p50_us) us, all below $(value wait_max_us) us" >&3
    done
}

@test "close waits for the unassign that another thread gives: node" {
    pair 1 0
}

@test "a poll, and assign, pause, commit, store, unsubscribe from the main thread: node" {
    pair 2 1
}

@test "a callback that waits for other threads' assign, pause, resume and commit: AIOConsumer" {
    pair 3 0
}

@test "a poll of the consumer's queue, and one of the log queue: Go" {
    pair 4 5
}

@test "a poll of the consumer's queue without limit, and commit_queue with a queue for its reply: Go, .NET" {
    pair 5 1
}

@test "a thread for each partition's queue that stores offsets, and one that polls: Rust, vector, erlkaf" {
    pair 6 0
}

@test "polls without a pause, and polls of a partition's queue that may not wait: erlkaf" {
    pair 7 1
}

@test "a loop of polls, and consume_queue on a private queue: Haskell" {
    pair 8 1
}

@test "a listener's poll, and workers that store, commit, pause and look: Karafka" {
    pair 9 10
}

@test "consumer_poll, and rd_kafka_poll of a main queue that is not forwarded: Ruby" {
    pair 10 1
}

@test "a poll, and admin calls on the consumer whose results come in a thread of librdkafka: Ruby" {
    pair 11 1
}

@test "a poll, and io and callback events switched on and off on another queue: Ruby, Rust, Perl" {
    pair 12 1
}

@test "a poll, and a producer that sends this consumer's offsets to its transaction" {
    pair 13 1
}

@test "a poll, and calls from librdkafka's own threads, out of background events and logs" {
    pair 14 1
}

# The one that is no right of anybody's, and done by every collector: what it does without is in destroy.bats.
@test "a poll without limit, and close and destroy from a finalizer: with the shim they wake it and end" {
    local run
    for run in "${RUNS[@]}"; do
        [[ $run == with@* ]] || continue
        calm "$run" pairs 15
        is "done" 1
        at_least calls 15
        grep -q 'finding: destroy-drained: ' <<<"$ERR" || _calm_no "no word about the destroy"
        echo "# pair 15: close or destroy took at most $(value wait_max_us) us" >&3
    done
}
