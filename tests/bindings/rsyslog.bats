# Debian's rsyslog with its module imkafka, on Apache Kafka: a poll in a thread for each input, a close in another.

load ../clients
load ../broker
load ../bindings

# shellcheck disable=SC2034 # for broker.bash
TOPICS=(orders 3 600)

@test "rsyslogd reads a topic and stops" {
    broker_or_skip
    binding_or_skip rsyslog
    both rsyslog 40 "$HERE/serve" "$PARTS" "$BOOTSTRAP" GROUP orders 600
    serves rsyslog 600
    covered rsyslog 'librdkafka\.so'
}
