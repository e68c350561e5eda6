#!/usr/bin/env bats
# A member of a group that polls stays one, and a group gets every message once.
load calm

# Each takes more than max.poll.interval.ms: all at once.
setup_file() {
    for run in "${RUNS[@]}"; do
        for kind in busy parked parked_finite parked_commit multiple256 multiple32; do
            calm_begin "$run" evict $kind
        done
    done
}

stays() {
    is evictions 0; is errors ""; is same_member 1; is messages 2
    quiet
}

@test "a member that sits in poll(-1) beside a call each millisecond is not evicted" {
    for run in "${RUNS[@]}"; do
        calm_end "$run" evict busy
        is enough_calls 1
        stays
    done
}

@test "a member whose poll(-1) makes way for a call of 8 s is not evicted" {
    for run in "${RUNS[@]}"; do
        calm_end "$run" evict parked
        is call NO_ERROR; at_least call_ms 7500
        stays
    done
}

@test "a member whose poll of 20 s makes way for a call of 8 s is not evicted" {
    for run in "${RUNS[@]}"; do
        calm_end "$run" evict parked_finite
        is call NO_ERROR; at_least call_ms 7500
        stays
    done
}

@test "a member whose poll(-1) makes way for a commit of 8 s is not evicted" {
    for run in "${RUNS[@]}"; do
        calm_end "$run" evict parked_commit
        is call NO_ERROR; at_least call_ms 7500
        stays
    done
}

# librdkafka 2.6 and later evict such a member by themselves; that is a defect the shim takes away.
@test "a member whose poll has a timeout that is a multiple of 256 ms is not evicted" {
    for run in "${RUNS[@]}"; do
        calm_end "$run" evict multiple256
        if shimmed || (( $(value version) < 0x020600ff )); then stays; fi
    done
}

@test "a member whose queue_poll has a timeout that is a multiple of 32 ms is not evicted" {
    for run in "${RUNS[@]}"; do
        calm_end "$run" evict multiple32
        if shimmed || (( $(value version) < 0x020600ff )); then stays; fi
    done
}

# Without the shim by one thread a consumer: pause and resume beside a poll may repeat a message then.
@test "three processes of a group get 100000 messages once each, with three threads on each consumer" {
    for run in "${RUNS[@]}"; do
        case $run in
            without@*) calm "$run" crowd single ;;
            with@*) calm "$run" crowd threads; at_least calls 50 ;;
        esac
        is messages 100000; is doubled 0; is gaps 0; is rebalances 0; is bad_exits 0
        quiet
    done
}
