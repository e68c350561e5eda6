# node-rdkafka (its librdkafka beside the addon) and @confluentinc/kafka-javascript (librdkafka inside it) from npm, on
# Apache Kafka. Their rebalance callback only tells the main thread; a close in a thread of the pool ends when that
# has answered.

load ../clients
load ../broker
load ../bindings

# shellcheck disable=SC2034 # for broker.bash
TOPICS=(orders 3 600)

setup() {
    broker_or_skip
    binding_or_skip node
    export NODE_PATH=$PARTS/node_modules
}

node_() { # NAME PACKAGE PROGRAM SCENARIO LINES
    PACKAGE=$2 both "$1" 40 node "$HERE/$3.js" "$4" "$BOOTSTRAP" GROUP orders 600
    serves "$1" "$5"
    said "$1" gated disconnected
}

npm_version() { # PACKAGE
    node -p "require('$1/package.json').version.replace(/^v/, '') + ' from npm, built'"
}

@test "node-rdkafka: flowing and in batches, disconnect with an assignment" {
    for mode in flowing batch; do
        node_ "rdkafka-$mode" node-rdkafka service "$mode" 604
        said "rdkafka-$mode" gated "committed: 2 200"
        covered "rdkafka-$mode" 'deps/librdkafka\.so'
    done
    row rdkafka-flowing node-rdkafka "$(npm_version node-rdkafka)"
}

@test "kafka-javascript: flowing and in batches, disconnect with an assignment" {
    for mode in flowing batch; do
        node_ "ckjs-$mode" @confluentinc/kafka-javascript service "$mode" 604
        said "ckjs-$mode" gated "committed: 2 200"
        covered "ckjs-$mode" '\.node'
    done
    row ckjs-flowing "@confluentinc/kafka-javascript, callbacks" "$(npm_version @confluentinc/kafka-javascript)"
}

@test "kafka-javascript with promises: a rebalance callback that awaits, disconnect with an assignment" {
    for mode in message batch; do
        node_ "promised-$mode" @confluentinc/kafka-javascript promised "$mode" 601
        covered "promised-$mode" '\.node'
    done
    row promised-batch "@confluentinc/kafka-javascript, promises" "$(npm_version @confluentinc/kafka-javascript)"
}

# With RDGATE_CLOSE_MS nobody waits for ever for the answer.
@test "a rebalance callback that forgets to unassign: disconnect hangs without, is named and ends with" {
    for package in node-rdkafka @confluentinc/kafka-javascript; do
        name=silent-${package##*/}
        PACKAGE=$package RDGATE_CLOSE_MS=1000 both "$name" 25 node "$HERE/service.js" silent "$BOOTSTRAP" GROUP orders 600
        fell "$name" plain
        ended "$name" gated 0
        said "$name" gated disconnected
        grep -q 'finding: close-stuck: ' "$BATS_TEST_TMPDIR/$name.gated.err"
        grep -q 'The REVOKE of 3 partitions given to .* was not answered' "$BATS_TEST_TMPDIR/$name.gated.err"
        was_gated "$name"
    done
}
