#!/usr/bin/env bats
# Batch consume beside calls that change the partitions.
load helper

# librdkafka 2.1 mended it; before, everything is lost.
batch_beside_pause() {
    plain 12 batch_pause
    if lib_before 2.1; then
        expect_not_ok "messages\|lost or doubled"
    else
        expect_ok
    fi
    with_shim 30 batch_pause
    expect_calm
}

@test "batches lose nothing while another thread pauses and resumes" {
    for_each_lib batch_beside_pause
}
