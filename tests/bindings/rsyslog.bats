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
    # It ends its threads wherever they are when it is stopped, also in a close. Now and then it crashes of that without
    # us (then there is nothing to compare with); with us it is told.
    [ "$(cat "$BATS_TEST_TMPDIR/rsyslog.plain.status")" = 139 ] || same rsyslog 600
    ended rsyslog gated 0
    [ "$(wc -l <"$BATS_TEST_TMPDIR/rsyslog.gated.out")" -eq 600 ]
    was_gated rsyslog
    ! grep 'finding: ' "$BATS_TEST_TMPDIR/rsyslog.gated.err" | grep -v 'finding: owner-gone: ' >&2 || return 1
    covered rsyslog 'librdkafka\.so'
    row rsyslog "rsyslog, imkafka" "$(unpacked rsyslog-kafka)"
}
