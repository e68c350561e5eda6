# The crate rdkafka as it is built by default, with librdkafka inside, on Apache Kafka.

load ../clients
load ../broker
load ../bindings

# shellcheck disable=SC2034 # for broker.bash
TOPICS=(orders 3 600 quiet 1 0)

setup() {
    broker_or_skip
    binding_or_skip ruststatic
}

service() { # SCENARIO
    both "rust-$1" 100 "$PARTS/target/debug/service" "$1" "$BOOTSTRAP" GROUP orders 600
    serves "rust-$1" 603
    said "rust-$1" gated "committed: 2 Offset(200)"
    covered "rust-$1" '/service, .* patched at their entries'
}

@test "Rust, librdkafka inside: BaseConsumer, a thread polls, another commits" {
    service base
}

@test "Rust, librdkafka inside: StreamConsumer, polled by an executor, another task commits" {
    service stream
}

@test "Rust, librdkafka inside: split_partition_queue, a thread for each partition beside the one that polls" {
    service split
}

drops() { # NAME TARGET
    both "$1" 30 "$PARTS/$2/debug/dropped" "$BOOTSTRAP" GROUP quiet 5
    went_wrong "$1" plain
    ended "$1" gated 0
    said "$1" gated "dropped 5"
    covered "$1" '/dropped, .* patched at their entries'
}

@test "Rust, librdkafka inside: consumers dropped beside a poll hang or crash without, end with" {
    drops dropped target
}

@test "the same, with librdkafka built by cmake" {
    [ -d "$PARTS/target-cmake" ] || skip "there was no cmake, or no header of curl: scripts/setup --bindings"
    drops cmake target-cmake
}
