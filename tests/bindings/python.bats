# confluent-kafka from PyPI, its wheels with librdkafka inside, on Apache Kafka: 2.15 has no gate of its own, 2.16 has
# one (a call that finds another inside tries again each millisecond, for as long as that takes). That gate stands
# above librdkafka: what waits at it never reaches us.

load ../clients
load ../broker
load ../bindings

# shellcheck disable=SC2034 # for broker.bash
TOPICS=(orders 3 600 quiet 1 0)

setup() {
    broker_or_skip
    binding_or_skip python
}

python() { # NAME SECONDS VERSION PROGRAM SCENARIO TOPIC N
    both "$1" "$2" env PYTHONPATH="$PARTS/$3" /usr/bin/python3 -u "$HERE/$4.py" "$5" "$BOOTSTRAP" GROUP "$6" "$7"
}

@test "2.15: a service whose threads share a Consumer" {
    python sync 40 2.15.0 service serve orders 600
    serves sync 601
    said sync gated "committed: [(0, 200), (1, 200), (2, 200)]"
    covered sync 'confluent_kafka.libs/librdkafka-[0-9a-f]+\.so'
    row sync "confluent-kafka (Python), \`Consumer\`" "wheel 2.15.0 from PyPI"
}

@test "2.15: close against poll(-1) crashes without, ends with" {
    python syncclose 15 2.15.0 service close quiet 0
    fell syncclose plain
    ended syncclose gated 0
    said syncclose gated "close returned"
    was_gated syncclose
}

@test "2.15: consumers closed beside their polls hang or crash without, end with" {
    python churn 20 2.15.0 service churn quiet 20
    fell churn plain
    ended churn gated 0
    said churn gated "churned 20"
    was_gated churn
}

aio() { # VERSION SCENARIO...
    local version=$1 scenario
    shift
    for scenario; do
        python "aio-$scenario" 40 "$version" aio "$scenario" orders 600
        serves "aio-$scenario" 601
        said "aio-$scenario" gated "committed: [(0, 200), (1, 200), (2, 200)]"
    done
}

@test "2.15: AIOConsumer with its two workers, calls gathered in a callback, beside it, and after it" {
    aio 2.15.0 serve gather beside outlive
    row aio-serve "confluent-kafka (Python), \`AIOConsumer\`" "wheel 2.15.0 from PyPI"
}

@test "2.15: AIOConsumer: close against poll(-1) hangs without, ends with" {
    python aioclose 12 2.15.0 aio close quiet 0
    fell aioclose plain
    ended aioclose gated 0
    said aioclose gated "close returned"
    said aioclose gated "poll(-1) ended: True"
    was_gated aioclose
}

# Its gate is held for a whole poll and not handed over: calls of other threads come in by luck, and this service and
# this close have none. We stand below it, and nothing of that reaches us; it must not get worse.
@test "2.16: what waits at its own gate waits there with us as without" {
    python service216 15 2.16.1 service serve orders 600
    python close216 12 2.16.1 service close quiet 0
    for name in service216 close216; do
        [ "$(cat "$BATS_TEST_TMPDIR/$name.plain.status")" = "$(cat "$BATS_TEST_TMPDIR/$name.gated.status")" ] ||
            { told $name plain; told $name gated; return 1; } >&2
        ! grep 'finding: ' "$BATS_TEST_TMPDIR/$name.gated.err" >&2 || return 1
    done
}

# Calls beside a poll are not compared: behind its gate they come in by luck, and now and then never, with us or
# without.
@test "2.16: AIOConsumer, calls gathered in a callback" {
    aio 2.16.1 inline
    row aio-inline "confluent-kafka (Python), \`AIOConsumer\`" "wheel 2.16.1 from PyPI"
    covered aio-inline 'confluent_kafka.libs/librdkafka-[0-9a-f]+\.so'
}
