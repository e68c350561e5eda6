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

crate() {
    sed -n 's/^rdkafka = .*"=\([0-9.]*\)".*/\1 from crates.io/p' "$HERE/Cargo.toml"
}

service() { # SCENARIO
    both "rust-$1" 100 "$PARTS/target/debug/service" "$1" "$BOOTSTRAP" GROUP orders 600
    serves "rust-$1" 603
    said "rust-$1" gated "committed: 2 Offset(200)"
    covered "rust-$1" '/service, .* patched at their entries'
}

@test "Rust, librdkafka inside: BaseConsumer, a thread polls, another commits" {
    service base
    row rust-base "rdkafka (Rust), built by default, \`BaseConsumer\`" "$(crate)"
}

@test "Rust, librdkafka inside: StreamConsumer, polled by an executor, another task commits" {
    service stream
    row rust-stream "rdkafka (Rust), built by default, \`StreamConsumer\`" "$(crate)"
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

# Cargo has cmake put each function into a section of its own, and the linker drop what the program does not call.
@test "with librdkafka built by cmake: what the linker has dropped is said, and all is as without" {
    [ -d "$PARTS/target-cmake" ] || skip "there was no cmake, or no header of curl: scripts/setup --bindings"
    both cmake 10 "$PARTS/target-cmake/debug/dropped" "$BOOTSTRAP" GROUP quiet 5
    went_wrong cmake plain
    went_wrong cmake gated
    grep -q "finding: not-covered: librdkafka is linked into the program" "$BATS_TEST_TMPDIR/cmake.gated.err"
    tr -s ' \n' ' ' <"$BATS_TEST_TMPDIR/cmake.gated.err" | grep -q "the linker has dropped functions that rdgate needs"
    tr -s ' \n' ' ' <"$BATS_TEST_TMPDIR/cmake.gated.err" | grep -q "Link it without --gc-sections"
}
