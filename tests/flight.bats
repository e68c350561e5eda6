#!/usr/bin/env bats
# The flight file: where it is made, when it goes, and that whatever goes wrong with it harms nobody.
load helper
bats_require_minimum_version 1.5.0

setup() {
    RDGATE=$ROOT/build/rdgate
    FLIGHT=$BATS_TEST_TMPDIR/flight
    OUT=$BATS_TEST_TMPDIR/out
    PIDS=()
    [ -x "$RDGATE" ] || { echo "there is no $RDGATE: make first"; return 1; }
}

teardown() {
    local pid
    for pid in "${PIDS[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
}

# consumer [NAME=VALUE...]: a program with one consumer and nothing wrong, as it should be.
consumer() {
    run env LD_PRELOAD="$GATE_SO" RDGATE_FLIGHT="$FLIGHT" "$@" "$PROBES/plain_consumer"
    echo "$output"
    [ "$status" -eq 0 ] && [[ $output == *"close: NO_ERROR"*ok* ]]
}

# silent: it has said nothing but its own words.
silent() { ! grep rdgate <<<"$output"; }

# start_of PID: when the process began, as in the name of its file.
start_of() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f20; }

@test "a clean end takes the file away; RDGATE_FLIGHT_KEEP=1 leaves it; off makes none" {
    consumer; silent
    [ -d "$FLIGHT" ] && [ -z "$(ls -A "$FLIGHT")" ]
    consumer RDGATE_FLIGHT_KEEP=1; silent
    file=$(echo "$FLIGHT"/*)
    [[ $(basename "$file") =~ ^[0-9]+\.[0-9]+$ ]]
    [ "$(stat -c '%a %U' "$file")" = "600 $(id -un)" ]
    [ "$(stat -c '%a' "$FLIGHT")" = 700 ]
    [ "$(stat -c '%s' "$file")" -le 1048576 ]
    run "$RDGATE" dump "$file"
    [[ $output == *"has ended and kept its file"* ]]
    rm -r "$FLIGHT"
    consumer RDGATE_FLIGHT=off RDGATE_FLIGHT_KEEP=1 XDG_RUNTIME_DIR="$BATS_TEST_TMPDIR"; silent
    [ -z "$(find "$BATS_TEST_TMPDIR" -name '[0-9]*.[0-9]*')" ]
}

@test "it lies under XDG_RUNTIME_DIR, or under /dev/shm where that is not ours alone; RDGATE_VERBOSE says where" {
    mkdir -m 700 "$BATS_TEST_TMPDIR/run"
    consumer XDG_RUNTIME_DIR="$BATS_TEST_TMPDIR/run" RDGATE_FLIGHT=auto RDGATE_VERBOSE=1
    grep -qE "flight file $BATS_TEST_TMPDIR/run/rdgate/[0-9]+\.[0-9]+$" <<<"$output"
    chmod 755 "$BATS_TEST_TMPDIR/run"
    consumer XDG_RUNTIME_DIR="$BATS_TEST_TMPDIR/run" RDGATE_FLIGHT=auto RDGATE_VERBOSE=1
    grep -qE "flight file /dev/shm/rdgate-$EUID/[0-9]+\.[0-9]+$" <<<"$output"
    consumer XDG_RUNTIME_DIR=relative RDGATE_FLIGHT=auto RDGATE_VERBOSE=1
    grep -qE "flight file /dev/shm/rdgate-$EUID/" <<<"$output"
}

@test "a program that makes no consumer makes no file" {
    run env LD_PRELOAD="$GATE_SO" RDGATE_FLIGHT="$FLIGHT" RDGATE_FLIGHT_KEEP=1 /bin/echo hello
    [ "$output" = hello ]
    [ ! -e "$FLIGHT" ]
}

@test "a limit on the size of files: no file, no signal, no word" {
    run bash -c 'ulimit -f 100; exec "$@"' - env LD_PRELOAD="$GATE_SO" RDGATE_FLIGHT="$FLIGHT" RDGATE_FLIGHT_KEEP=1 "$PROBES/plain_consumer"
    echo "$output"
    [ "$status" -eq 0 ]; silent
    [ -z "$(ls -A "$FLIGHT")" ]
    run bash -c 'ulimit -f 100; exec "$@"' - env LD_PRELOAD="$GATE_SO" RDGATE_FLIGHT="$FLIGHT" RDGATE_VERBOSE=1 "$PROBES/plain_consumer"
    grep -q 'no flight file: RLIMIT_FSIZE is too small' <<<"$output"
}

# mounted OPTIONS: the program with its flight file on a file system of its own, which nobody else sees.
mounted() {
    mkdir -p "$FLIGHT"
    run unshare -m bash -c 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"' - "$1" "$FLIGHT" \
        env LD_PRELOAD="$GATE_SO" RDGATE_FLIGHT="$FLIGHT" "${@:2}" "$PROBES/plain_consumer"
    echo "$output"
    [ "$status" -eq 0 ] && [[ $output == *"close: NO_ERROR"*ok* ]]
}

@test "a full or read-only file system harms nobody" {
    (( EUID == 0 )) || skip "needs root, to mount"
    mounted size=64k; silent
    mounted size=64k RDGATE_VERBOSE=1
    grep -q 'no flight file: no space left' <<<"$output"
    mounted ro; silent
    mounted ro RDGATE_VERBOSE=1
    grep -q 'no flight file: the file system is read-only' <<<"$output"
    # The same where it usually is: /dev/shm, full.
    run unshare -m bash -c 'mount -t tmpfs -o size=16k none /dev/shm && exec "$@"' - env -u XDG_RUNTIME_DIR LD_PRELOAD="$GATE_SO" \
        RDGATE_VERBOSE=1 "$PROBES/plain_consumer"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -q 'no flight file: no space left' <<<"$output"
}

@test "links that somebody has planted are not followed" {
    mkdir -m 700 "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/elsewhere"
    ln -s "$BATS_TEST_TMPDIR/elsewhere" "$BATS_TEST_TMPDIR/run/rdgate"
    consumer XDG_RUNTIME_DIR="$BATS_TEST_TMPDIR/run" RDGATE_FLIGHT=auto RDGATE_VERBOSE=1
    grep -qE "flight file /dev/shm/" <<<"$output"
    [ -z "$(ls -A "$BATS_TEST_TMPDIR/elsewhere")" ]
    # A link of the very name that the file will have; the process stays the same by exec.
    mkdir "$FLIGHT"
    echo precious >"$BATS_TEST_TMPDIR/precious"
    run env LD_PRELOAD="$GATE_SO" RDGATE_FLIGHT="$FLIGHT" RDGATE_FLIGHT_KEEP=1 bash -c '
        name=$$.$(sed "s/.*) //" /proc/$$/stat | cut -d" " -f20)
        ln -s "$1/precious" "$RDGATE_FLIGHT/$name"
        exec "$2/plain_consumer"' - "$BATS_TEST_TMPDIR" "$PROBES"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(<"$BATS_TEST_TMPDIR/precious")" = precious ]
    file=$(echo "$FLIGHT"/*)
    [ ! -L "$file" ] && [ "$(stat -c %s "$file")" -gt 100000 ]
}

@test "a directory in which others may replace the file gets none" {
    mkdir -p "$FLIGHT"
    chmod 777 "$FLIGHT"
    consumer RDGATE_FLIGHT_KEEP=1; silent
    [ -z "$(ls -A "$FLIGHT")" ]
    consumer RDGATE_VERBOSE=1
    grep -q 'no flight file: the directory is not ours alone' <<<"$output"
    chmod 1777 "$FLIGHT" # as /tmp is
    consumer RDGATE_FLIGHT_KEEP=1
    [ "$(find "$FLIGHT" -type f | wc -l)" -eq 1 ]
}

@test "of the dead the newest 16 stay; the living and what is no flight file are left alone" {
    mkdir -m 700 "$FLIGHT"
    sleep 60 &
    PIDS+=("$!")
    : >"$FLIGHT/$!.$(start_of $!)"
    : >"$FLIGHT/notes.txt"
    ln -s notes.txt "$FLIGHT/1.99"
    for i in {10..39}; do # process 1 did not begin in the year 3000
        : >"$FLIGHT/1.99999999999$i"
        touch -d "2020-01-01 00:00:$i" "$FLIGHT/1.99999999999$i"
    done
    touch -d 2001-01-01 "$FLIGHT/$!."*
    consumer
    ls "$FLIGHT"
    left=("$FLIGHT"/1.99999999999*)
    [ "${#left[@]}" -eq 16 ]
    [ -e "$FLIGHT/1.9999999999939" ] && [ -e "$FLIGHT/1.9999999999924" ] && [ ! -e "$FLIGHT/1.9999999999923" ]
    [ -e "$FLIGHT/notes.txt" ] && [ -L "$FLIGHT/1.99" ] && ls "$FLIGHT/$!."*
}

forked() {
    rm -rf "$FLIGHT"
    run env LD_PRELOAD="$GATE_SO" ${LIB:+LD_LIBRARY_PATH="$LIB"} RDGATE_FLIGHT="$FLIGHT" RDGATE_FLIGHT_KEEP=1 "$PROBES/$1" "${@:2}"
    [ "$status" -eq 0 ] || fail "should have been all right"
    [ "$(find "$FLIGHT" -type f | wc -l)" -eq 2 ] || fail "each should have a file of its own: $(ls "$FLIGHT")"
    local file child='' parent=''
    for file in "$FLIGHT"/*; do
        run "$RDGATE" dump --events 1000 "$file"
        if grep -q "forked from process" <<<"$output"; then child=$output; else parent=$output; fi
    done
    [ -n "$child" ] && [ -n "$parent" ] || fail "one should have been forked from the other"
    PARENT=$parent CHILD=$child
}

a_child_of_its_own() {
    forked watched
    # What the parent wrote it wrote itself: all its events are of its own two threads.
    [ "$(grep -c '^Consumer' <<<"$CHILD")" -eq 1 ] || fail "the child has one consumer"
    [ "$(grep -c '^Consumer' <<<"$PARENT")" -eq 3 ] || fail "the parent has three"
    forked fork commit
    grep -q 'finding: use-after-fork' <<<"$CHILD" || fail "the child should know what it did"
    ! grep -q 'use-after-fork' <<<"$PARENT" || fail "the parent did nothing"
}

@test "a forked child writes a file of its own, never its parent's" {
    for_each_lib a_child_of_its_own
}

@test "what is found is in the file, also beyond RDGATE_REPORTS" {
    run env LD_PRELOAD="$GATE_SO" RDGATE_FLIGHT="$FLIGHT" RDGATE_FLIGHT_KEEP=1 RDGATE_REPORTS=0 RDGATE_MODE=observe "$PROBES/collide"
    [ "$status" -eq 0 ]
    [[ $output != *'finding: collision'* ]]
    run "$RDGATE" dump "$FLIGHT"/*
    grep -q 'collision: rd_kafka_pause_partitions of T1 met rd_kafka_consumer_poll.*(not reported: RDGATE_REPORTS)' <<<"$output" ||
        fail "should have had the finding"
}

@test "what a gate has done is counted, and its events tell how" {
    run env LD_PRELOAD="$GATE_SO" RDGATE_FLIGHT="$FLIGHT" RDGATE_FLIGHT_KEEP=1 "$PROBES/collide"
    [ "$status" -eq 0 ]
    "$RDGATE" dump --json "$FLIGHT"/* >"$OUT"
    python3 - "$OUT" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
c = d["consumers"][0]
assert c["counts"]["preemptions"] >= 1 and c["counts"]["waits"] >= 1 and c["counts"]["findings"] == 0, c
assert sum(c["waits_log2_us"]) == c["counts"]["waits"], c
pause = [e["event"] for e in d["events"] if e["call"] == "rd_kafka_pause_partitions"]
assert pause[0] == "call_begins" and pause[-1] == "call_ends" and "preempts" in pause, pause
assert any(e["event"] == "wait_ends" and e["call"] == "rd_kafka_consumer_poll" and e["value"] > 0 for e in d["events"])
assert [e["event"] for e in d["events"]].count("destroyed") == 1
END
}

@test "run --exit-code N: N if anything was found and the program was content, whoever found it" {
    run "$RDGATE" run --exit-code 9 --observe --report "$OUT" -- sh -c "$PROBES/collide; true"
    echo "$output"
    [ "$status" -eq 9 ]
    grep -q 'finding: collision' "$OUT"
    run "$RDGATE" run --exit-code=9 --observe -- sh -c "$PROBES/collide; exit 3"
    [ "$status" -eq 3 ]
    run "$RDGATE" run --exit-code 9 -- "$PROBES/plain_consumer"
    echo "$output"
    [ "$status" -eq 0 ]; silent
    run "$RDGATE" run --exit-code 9 -- sh -c 'kill -TERM $$'
    [ "$status" -eq 143 ]
    run "$RDGATE" run --exit-code 9 -- true
    [ "$status" -eq 0 ]
    grep -q 'no consumer was seen' <<<"$output"
    run -127 "$RDGATE" run --exit-code 9 -- no-such-program-anywhere
    for bad in 0 256 x ''; do
        run "$RDGATE" run --exit-code "$bad" -- touch "$BATS_TEST_TMPDIR/started"
        [ "$status" -eq 2 ] && [ ! -e "$BATS_TEST_TMPDIR/started" ]
    done
}

@test "run --exit-code passes signals on, and leaves nothing behind" {
    mkdir -m 700 "$BATS_TEST_TMPDIR/run"
    mkdir -p "$BATS_TEST_TMPDIR/run/rdgate"
    chmod 700 "$BATS_TEST_TMPDIR/run/rdgate"
    XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR/run "$RDGATE" run --exit-code 9 -- \
        bash -c 'trap "exit 5" TERM; echo ready >"$0"; while :; do read -rt 1 <> <(:); done' "$BATS_TEST_TMPDIR/ready" 3>&- &
    pid=$!
    PIDS+=("$pid")
    for _ in {1..200}; do [ ! -s "$BATS_TEST_TMPDIR/ready" ] || break; read -rt 0.1 <> <(:) || true; done
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 5 ]
    [ -z "$(ls -A "$BATS_TEST_TMPDIR/run/rdgate")" ]
}
