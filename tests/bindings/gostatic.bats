# confluent-kafka-go v2 as it is built by default, with the librdkafka of its module inside, on Apache Kafka.

load ../clients
load ../broker
load ../bindings

# shellcheck disable=SC2034 # for broker.bash
TOPICS=(orders 3 600 quiet 1 0)

setup() {
    broker_or_skip
    binding_or_skip gostatic
}

go_() { # NAME SECONDS SCENARIO TOPIC N
    both "$1" "$2" "$PARTS/service" "$3" "$BOOTSTRAP" GROUP "$4" "$5"
}

@test "Go, librdkafka inside: a service whose goroutines share a Consumer, with a logs channel" {
    go_ go 40 serve orders 600
    serves go 603
    said go gated "committed: 2 200"
    covered go '/service, .* patched at their entries'
    row go "confluent-kafka-go, built by default" \
        "$(sed -n 's/^require .* \(v[0-9.]*\)$/\1/p' "$HERE/go.mod") from the Go module proxy"
}

@test "Go, librdkafka inside: Close against three polls without limit hangs or crashes without, ends with" {
    go_ goclose 12 close quiet 0
    went_wrong goclose plain
    ended goclose gated 0
    said goclose gated "Close returned"
    said goclose gated "polls ended"
    was_gated goclose
}

@test "Go, librdkafka inside: consumers closed beside their polls crash without, end with" {
    go_ gochurn 40 churn quiet 20
    went_wrong gochurn plain
    ended gochurn gated 0
    said gochurn gated "churned 20"
    was_gated gochurn
}
