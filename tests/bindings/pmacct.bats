# Debian's pmacct, its telemetry daemon, on Apache Kafka: the legacy consumer, one thread, callbacks for logs and errors.

load ../clients
load ../broker
load ../bindings

# shellcheck disable=SC2034 # for broker.bash
TOPICS=(flows-plain 1 0 flows-gated 1 0)

@test "pmtelemetryd reads a topic with the legacy consumer and stops" {
    broker_or_skip
    binding_or_skip pmacct
    # GROUP: a topic for each half, as it begins at the end
    both flows 40 "$HERE/serve" "$PARTS" "$BOOTSTRAP" GROUP 200
    serves flows 200
    covered flows 'librdkafka\.so'
    row flows "pmacct, pmtelemetryd" "$(unpacked pmacct)"
}
