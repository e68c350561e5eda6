#!/usr/bin/env bats
# Destroying a consumer while other threads use it.
load helper

destroy_vs_poll() {
    plain 3 destroy_vs_poll consumer_poll
    expect_hang destroy
    with_shim 20 destroy_vs_poll consumer_poll
    expect_ok
}

@test "a destroy wakes a consumer_poll without limit and returns" {
    for_each_lib destroy_vs_poll
}

destroy_vs_queue_poll() {
    plain 8 destroy_vs_poll queue_poll
    expect_not_ok "the poll did not return"
    with_shim 20 destroy_vs_poll queue_poll
    expect_ok
}

@test "a destroy wakes a queue_poll without limit on a queue that the application keeps" {
    for_each_lib destroy_vs_queue_poll
}

reply_queue() {
    plain 8 reply_queue
    expect_not_ok "the poll for the reply did not return"
    with_shim 20 reply_queue
    expect_ok
}

@test "a destroy wakes a wait without limit for a reply that will not come" {
    for_each_lib reply_queue
}

# Without the shim either the destroy never gets round the loop, or the loop reads freed memory.
destroy_loop() {
    under_valgrind plain 8 destroy_loop 5
    expect_bad
    under_valgrind with_shim 60 destroy_loop 20
    expect_ok
}

@test "a destroy amid a loop of polls frees nothing that the loop still reads" {
    command -v valgrind >/dev/null || skip "no valgrind"
    for_each_lib destroy_loop
}

destroy_loop_long() {
    plain 8 destroy_loop 500
    expect_bad
    with_shim 120 destroy_loop 500
    expect_ok
}

@test "500 destroys amid a loop of polls" {
    for_each_lib destroy_loop_long
}

destroy_in_callback() {
    plain 10 destroy_in_callback
    expect_bad
    under_valgrind with_shim 30 destroy_in_callback
    expect_ok
}

@test "a destroy inside a callback of the same consumer waits for the call around it" {
    command -v valgrind >/dev/null || skip "no valgrind"
    for_each_lib destroy_in_callback
}

destroy_fatal() {
    plain 3 destroy_fatal
    expect_hang destroy
    with_shim 10 destroy_fatal
    expect_ok
}

@test "a consumer that had a fatal error can be destroyed" {
    for_each_lib destroy_fatal
}

holder() {
    plain 6 holder
    expect_bad
    with_shim 30 holder
    expect_ok
}

@test "a destroy does not keep a caller waiting who holds a message that the destroy waits for" {
    for_each_lib holder
}

main_queue_callback() {
    plain 8 main_queue_callback
    expect_bad
    with_shim 30 main_queue_callback
    expect_ok
}

@test "a callback of the main queue calls beside a poll, and the destroy waits for it" {
    for_each_lib main_queue_callback
}

exit_destroy() {
    plain 4 exit_destroy
    expect_hang destroy
    with_shim 20 exit_destroy
    expect_ok
}

@test "a destroy at exit wakes the poll of a thread that is still there" {
    for_each_lib exit_destroy
}
