# The crate rdkafka with its feature dynamic-linking, on Apache Kafka. Its default, librdkafka inside the executable, is
# not covered by a preload.

load ../clients
load ../broker
load ../bindings

# shellcheck disable=SC2034 # for broker.bash
TOPICS=(orders 3 600)

setup() {
    broker_or_skip
    binding_or_skip rust
}

rust() { # NAME SCENARIO N
    both "$1" 100 env LD_LIBRARY_PATH="$ROOT/build/librdkafka/2.15/lib" "$PARTS/target/debug/service" "$2" \
        "$BOOTSTRAP" GROUP orders "$3"
}

service() { # SCENARIO
    rust "rust-$1" "$1" 600
    serves "rust-$1" 603
    said "rust-$1" gated "committed: 2 Offset(200)"
    covered "rust-$1" 'librdkafka\.so'
}

crate() {
    echo "$(sed -n '/^name = "rdkafka"/{n;s/version = "\(.*\)"/\1/p}' "$HERE/Cargo.lock") from crates.io"
}

@test "Rust: BaseConsumer, a thread polls, another commits" {
    service base
    row rust-base "rdkafka (Rust), \`dynamic-linking\`, \`BaseConsumer\`" "$(crate)"
}

@test "Rust: StreamConsumer, polled by an executor, another task commits" {
    service stream
    row rust-stream "rdkafka (Rust), \`dynamic-linking\`, \`StreamConsumer\`" "$(crate)"
}

@test "Rust: split_partition_queue, a thread for each partition beside the one that polls" {
    service split
}

# Now and then a group needs half a minute for it, with us and without.
@test "Rust: consumers dropped in the middle of a rebalance" {
    rust rust-drop drop 12
    serves rust-drop 1
}

# Its drop polls until the consumer is closed, whatever close says: that is told, and not ended.
@test "Rust: a rebalance callback that forgets to unassign: the drop hangs, and with the shim is named" {
    RDGATE_STUCK_MS=2000 both rust-silent 20 env LD_LIBRARY_PATH="$ROOT/build/librdkafka/2.15/lib" \
        "$PARTS/target/debug/service" silent "$BOOTSTRAP" GROUP orders 0
    fell rust-silent plain
    said rust-silent gated dropping
    grep -q 'finding: rebalance-unanswered: ' "$BATS_TEST_TMPDIR/rust-silent.gated.err"
}
