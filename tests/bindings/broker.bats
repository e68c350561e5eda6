# Real clients on a real broker: Apache Kafka, each client without the shim and with it, and the same comes out.

load ../clients
load ../broker

# shellcheck disable=SC2034 # for broker.bash
TOPICS=(orders 3 600 quiet 1 0)

setup() {
    broker_or_skip
    LIB_OLD=() LIB_NEW=(env LD_LIBRARY_PATH="$ROOT/build/librdkafka/2.15/lib")
}

member() { # NAME LIB... -- CONF=VALUE...: a well-behaved service in C
    local name=$1 lib=()
    shift
    while [ "$1" != -- ]; do
        lib+=("$1")
        shift
    done
    MESSAGES=600 both "$name" 40 "${lib[@]}" "$ROOT/build/broker/member" "$BOOTSTRAP" GROUP orders "${@:2}"
    same "$name" 600
    was_gated "$name"
    ! grep 'finding: ' "$BATS_TEST_TMPDIR/$name.gated.err" >&2 || return 1
}

@test "a service in C: eager and cooperative, librdkafka 2.0.2" {
    member eager "${LIB_OLD[@]}" -- partition.assignment.strategy=range,roundrobin
    member cooperative "${LIB_OLD[@]}" -- partition.assignment.strategy=cooperative-sticky
}

@test "a service in C: the classic and the new group protocol, librdkafka 2.15" {
    member classic "${LIB_NEW[@]}" -- group.protocol=classic
    member consumer "${LIB_NEW[@]}" -- group.protocol=consumer
    row consumer "C, classic and new group protocol" "compiled here"
}

@test "a service in C: static members of both protocols, librdkafka 2.15" {
    # an id of its own for each half: each is a group of its own
    member static "${LIB_NEW[@]}" -- group.instance.id=one
    member newstatic "${LIB_NEW[@]}" -- group.instance.id=one group.protocol=consumer
}

@test "kcat in a consumer group" {
    both kcat 30 kcat -b "$BOOTSTRAP" -G GROUP -X auto.offset.reset=earliest -c 600 -f '%t %p %o %s\n' orders
    same kcat 600
    was_gated kcat
}

@test "C++: a thread consumes, another pauses, resumes and commits" {
    both cpp 40 "$BUILD/cppclient" consume "$BOOTSTRAP" GROUP orders 600
    same cpp 601
    once cpp
    was_gated cpp
}

@test "Debian's Python client: close against poll(-1) hangs without, ends with" {
    both pyclose 12 /usr/bin/python3 "$HERE/client.py" close "$BOOTSTRAP" GROUP quiet 0
    fell pyclose plain
    ended pyclose gated 0
    said pyclose gated "afterwards: Consumer closed"
    said pyclose gated closed
}
