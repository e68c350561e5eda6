#!/usr/bin/env bats
# What the application owes: things it has not given back, rebalances it has not answered.
load helper

# leaked KIND WHAT CALL
leaked() {
    plain 20 leak "$1"
    expect_not_ok "the destroy did not return"
    watched 30 leak "$1"
    expect_ok
    found close-debt 1
    found destroy-stuck 1
    says "the application still holds 1 $2"
    says "1 $2, from $3 in thread"
    says "moving again"
}

@test "a destroy that one message holds up names the call and the thread that got it" {
    for_each_lib leaked message message rd_kafka_consumer_poll
    for_each_lib leaked batch message rd_kafka_consume_batch_queue
}

@test "so does one that an event holds up" {
    for_each_lib leaked event event rd_kafka_queue_poll
}

@test "so does one that a list with references to partitions holds up" {
    for_each_lib leaked pause "offset list" rd_kafka_pause_partitions
    for_each_lib leaked resume "offset list" rd_kafka_resume_partitions
    for_each_lib leaked store "offset list" rd_kafka_offsets_store
    for_each_lib leaked assignment "offset list" rd_kafka_assignment
    for_each_lib leaked copy "offset list" rd_kafka_topic_partition_list_copy
}

harmless() {
    for kind in nothing position committed times commit topic queue; do
        plain 20 leak $kind
        expect_ok
        watched 30 leak $kind
        expect_ok
        found close-debt 0
        found destroy-stuck 0
    done
}

@test "what holds up no destroy is no debt" {
    for_each_lib harmless
}

# unanswered REBALANCE HOW
unanswered() {
    plain 30 unanswered "$@"
    expect_not_ok "the close did not return"
    watched 40 unanswered "$@"
    expect_ok
    found rebalance-unanswered 2
    found close-debt 1
    found close-stuck 1
    says "moving again"
}

@test "a rebalance whose callback returns without answer is named at once, when it is old, and as the close begins" {
    for_each_lib unanswered revoke callback
    for_each_lib unanswered assign callback
}

@test "so is one whose event is destroyed without answer" {
    for_each_lib unanswered revoke event
}

silent() {
    PROBE_PATIENCE_MS=3000 plain 30 close_queue silent
    expect_not_ok "never closed"
    watched 40 close_queue silent
    expect_ok
    found rebalance-unanswered 2
    says "REVOKE"
}

@test "so is one of a close that the application polls itself, when it is old" {
    for_each_lib silent
}

forgiven() {
    plain 30 unanswered assign event
    expect_ok
    watched 40 unanswered assign event
    expect_ok
    found rebalance-unanswered 2
    found close-debt 0
    found close-stuck 0
}

@test "an assignment whose event is destroyed is named, but no debt: the close forgives it" {
    for_each_lib forgiven
}

# misanswered HOW
misanswered() {
    plain 30 misanswered "$1"
    expect_ok
    local before
    before=$(grep "^# $1" <<<"$output")
    watched 40 misanswered "$1"
    expect_ok
    not_run || [ -n "${GATE_HALF-}" ] || [ "$(grep "^# $1" <<<"$output")" = "$before" ] || fail "should have been told $before"
    found rebalance-misanswered 1
}

@test "an assignment answered with NULL, and a revocation answered with partitions, are named" {
    for_each_lib misanswered null
    for_each_lib misanswered list
}

@test "an answer in the words of another protocol is named" {
    for_each_lib misanswered eager
    for_each_lib misanswered cooperative
}
