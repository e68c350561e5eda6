#!/usr/bin/env bats
# rdgate dump and rdgate ps: what a victim left behind when it was killed in the middle of its misfortune.
load helper

setup() {
    RDGATE=$ROOT/build/rdgate
    FLIGHT=$BATS_TEST_TMPDIR/flight
    PIDS=()
    [ -x "$RDGATE" ] || { echo "there is no $RDGATE: make first"; return 1; }
}

teardown() {
    local pid
    for pid in "${PIDS[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    [ -z "${OPEN-}" ] || rm -rf "$OPEN"
}

# begin PROBE [ARG...]: a victim that keeps hanging, in the background; its process in PID.
begin() {
    rm -rf "$FLIGHT"
    env LD_PRELOAD="$GATE_SO" ${LIB:+LD_LIBRARY_PATH="$LIB"} RDGATE_FLIGHT="$FLIGHT" RDGATE_STUCK_MS=500 \
        RDGATE_LOG="$BATS_TEST_TMPDIR/log" PROBE_LOG=/dev/null PROBE_PATIENCE_MS=60000 \
        "$PROBES/$1" "${@:2}" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    PID=$!
    PIDS+=("$PID")
    RAN=$*
}

# has TEXT...: the dump in $output has all of them, wherever lines are wrapped.
has() {
    local text all
    all=$(tr -s ' \n' '  ' <<<"$output")
    for text; do
        [[ $all == *"$text"* ]] || return 1
    done
}

# shows WHAT TEXT...: within half a minute the dump of WHAT has all of the texts.
shows() {
    local until=$((SECONDS + 30))
    while [ "$SECONDS" -lt "$until" ]; do
        run "$RDGATE" dump "$1"
        ! has "${@:2}" || return 0
        kill -0 "$PID" 2>/dev/null || fail "$RAN: the victim has ended: $(<"$BATS_TEST_TMPDIR/out")"
        read -rt 0.1 <> <(:) || true
    done
    fail "$RAN: the dump should have had: ${*:2}"
}

# died: the victim is killed; only its file is left.
died() {
    kill -KILL "$PID"
    wait "$PID" 2>/dev/null || true
    FILE=$(echo "$FLIGHT"/*)
    [ -f "$FILE" ] || fail "$RAN: there should be one file: $FILE"
}

# The table: TOPIC | MODE | PROBE ARG... | what the dump must name: finding, call, thread or debt; separated by ;
victims() { # TOPIC
    sed -n "s/^ *$1 *| *//p" <<'END'
        close    | observe | close_wakes_poll consumer_poll | of group "victims", closed; rd_kafka_consumer_poll on rdkafka#consumer-2, which is closed, inside for; rd_kafka_consumer_close meets rd_kafka_consumer_poll
        close    | observe | close_wakes_poll queue_poll | of group "victims", closed; rd_kafka_queue_poll on rdkafka#consumer-2, which is closed, inside for
        close    | observe | two_closes | finding: close-stuck: rd_kafka_consumer_close; another close of the consumer has ended meanwhile
        close    | serialize | stuck nested | finding: close-stuck: rd_kafka_consumer_close; it runs your callback: rd_kafka_consumer_close > rebalance_cb
        destroy  | observe | destroy_vs_poll consumer_poll | finding: destroy-stuck: rd_kafka_destroy; is in rd_kafka_consumer_poll beside it; (poller)
        destroy  | observe | exit_destroy | finding: destroy-stuck: rd_kafka_destroy; is in rd_kafka_consumer_poll beside it
        destroy  | observe | destroy_fatal | finding: destroy-stuck: rd_kafka_destroy; the application holds nothing: not its fault
        destroy  | observe | reply_queue | rd_kafka_queue_poll on rdkafka#consumer-2, which is gone
        destroy  | serialize | leak message | finding: destroy-stuck: rd_kafka_destroy; the application still holds 1 message
        destroy  | serialize | leak event | finding: destroy-stuck: rd_kafka_destroy; the application still holds 1 event
        deadlock | observe | deadlock answer | finding: deadlock: rd_kafka_consumer_close; T1 wants; a pthread mutex at; T2 rd_kafka_consumer_poll, in rebalance_cb; (close_or_commit)
        deadlock | observe | deadlock two | finding: destroy-stuck: rd_kafka_destroy; > stats_cb > rd_kafka_destroy on; is in rd_kafka_consumer_poll beside it
        stuck    | serialize | stuck callback | finding: stuck-call: rd_kafka_consumer_poll; stats_cb has been running
        stuck    | serialize | stuck commit | finding: stuck-call: rd_kafka_commit; (committer)
        stuck    | serialize | unanswered revoke callback | finding: rebalance-unanswered; the answer to a rebalance
        stuck    | serialize | unanswered revoke event | finding: rebalance-unanswered; the answer to a rebalance
        stuck    | serialize | poll_gap | finding: poll-exceeded; gets an assignment
END
}

killed_in_the_middle() {
    local line mode probe texts
    while IFS='|' read -r mode probe texts; do
        local wanted=()
        while IFS= read -r line; do wanted+=("$line"); done < <(sed 's/; */\n/g; s/^ *//' <<<"$texts")
        # shellcheck disable=SC2086
        RDGATE_MODE=${mode// /} begin $probe
        shows "$PID" "${wanted[@]}"
        died
        run "$RDGATE" dump "$FILE"
        [ "$status" -eq 0 ] || fail "$RAN: dump failed"
        has "ended without cleaning up" "${wanted[@]}" || fail "$RAN: after death the dump should have had: $texts"
    done < <(victims "$1")
}

@test "killed in a close that hangs, a victim leaves behind who is to blame" {
    for_each_lib killed_in_the_middle close
}

@test "the same in a destroy that hangs" {
    for_each_lib killed_in_the_middle destroy
}

@test "the same in a deadlock" {
    for_each_lib killed_in_the_middle deadlock
}

@test "the same in a call, callback or rebalance that is stuck, and in a gap between polls" {
    for_each_lib killed_in_the_middle stuck
}

@test "what began after the last look is there as well" {
    RDGATE_MODE=observe begin deadlock answer
    shows "$PID" "finding: deadlock"
    died
    # As if the watchdog had never looked: no threads, no snapshot; the events alone tell it.
    python3 - "$FILE" <<'END'
import struct, sys
with open(sys.argv[1], "r+b") as f:
    f.seek(4096 + 256 * 512)
    f.write(bytes(128 * 128))  # threads
    f.seek(184)
    f.write(struct.pack("<qQII", 1, 0, 0, 0))  # looked, looks, look, snapshot
END
    run "$RDGATE" dump "$FILE"
    has "rd_kafka_consumer_close on rdkafka#consumer-2, begun" "rd_kafka_consumer_poll > rebalance_cb on rdkafka#consumer-2, begun" \
        "(after the last look)" "Nothing stood still" || fail "the events should have said it"
}

@test "--json is one object of what the text says, and --events bounds it" {
    RDGATE_MODE=observe begin deadlock answer
    shows "$PID" "finding: deadlock"
    died
    "$RDGATE" dump --json "$FILE" >"$BATS_TEST_TMPDIR/json"
    "$RDGATE" dump --json --events 0 "$FILE" >"$BATS_TEST_TMPDIR/none"
    python3 - "$BATS_TEST_TMPDIR/json" "$BATS_TEST_TMPDIR/none" "$ROOT/shim/man/report.schema.json" <<'END'
import json, sys
import jsonschema
d, none = (json.load(open(f)) for f in sys.argv[1:3])
assert d["v"] == 1 and d["state"] == "died" and d["program"] == "deadlock", d
assert [c["group"] for c in d["consumers"]] == ["victims"], d["consumers"]
assert any(t["calls"] == [{"call": "rd_kafka_consumer_close"}] for t in d["threads"]), d["threads"]
assert any(c.get("callback") == "rebalance_cb" for t in d["threads"] for c in t["calls"])
assert any(v["finding"] == "deadlock" for v in d["stands"]), d["stands"]
schema = json.load(open(sys.argv[3]))
for v in d["stands"]:
    jsonschema.validate(v, schema)
assert any(f["finding"] == "deadlock" and f["severity"] == "error" for f in d["findings"])
assert [e["event"] for e in d["events"]][:2] == ["born", "call_begins"]
assert any(e["event"] == "rebalance" for e in d["events"])
assert none["events"] == [] and none["events_lost"] > 0
END
}

@test "--reports has the report as it was written, with the stacks that were taken" {
    RDGATE_MODE=observe begin deadlock answer
    shows "$PID" "finding: deadlock"
    died
    run "$RDGATE" dump --reports "$FILE"
    has "stack, asked of the thread just now:" "(on_rebalance)" || fail "should have had the stack"
}

@test "--stacks takes the stacks of a running process, and says why not of a dead one" {
    RDGATE_MODE=observe begin deadlock answer
    shows "$PID" "finding: deadlock"
    run "$RDGATE" dump --stacks "$PID"
    if (( EUID != 0 )) && [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" -ne 0 ]; then
        has "Stacks" "ptrace_scope" || fail "should have said why not"
    else
        has "on_rebalance" "close_or_commit" "rdk:main" || fail "should have had the stacks"
    fi
    died
    run "$RDGATE" dump --stacks "$FILE"
    [ "$status" -eq 0 ]
    has "the process is not there any more" || fail "should have said why not"
}

@test "ps tells the running from the stuck and the dead" {
    RDGATE_MODE=observe begin deadlock answer
    shows "$PID" "finding: deadlock"
    RDGATE_FLIGHT=$FLIGHT run "$RDGATE" ps
    grep -E "^ +$PID +deadlock +1 +stuck +[1-9][0-9]* +deadlock" <<<"$output" || fail "should be stuck"
    died
    RDGATE_FLIGHT=$FLIGHT run "$RDGATE" ps
    grep -E "^ +$PID +deadlock +1 +dead +[1-9][0-9]* +$FILE" <<<"$output" || fail "should be dead"
    RDGATE_FLIGHT=$FLIGHT run "$RDGATE" ps --json
    python3 -c 'import json, sys
mine = [p for p in json.load(sys.stdin) if p["pid"] == int(sys.argv[1])]
assert len(mine) == 1 and mine[0]["state"] == "dead" and mine[0]["findings"] > 0, mine' "$PID" <<<"$output"
    # Not by the number of another process that lives, but by its own, although it is dead.
    cp "$FILE" "$FLIGHT/$$.1"
    RDGATE_FLIGHT=$FLIGHT run "$RDGATE" dump $$
    has "process $$ has no flight file" || fail "process $$ is another one"
    RDGATE_FLIGHT=$FLIGHT run "$RDGATE" dump "$PID"
    has "ended without cleaning up" || fail "should have found the file of the dead process"
}

@test "what cannot be read gets one line and its own exit code" {
    cd "$BATS_TEST_TMPDIR"
    head -c 900000 /dev/zero >zeros
    head -c 900000 /dev/urandom >noise
    : >empty
    ln -s zeros link
    for what in zeros noise empty link . /dev/null no-such-file 999999999 $$; do
        run "$RDGATE" dump "$what"
        echo "$what: $output"
        [ "$status" -eq 4 ]
        [ "${#lines[@]}" -eq 1 ]
        [[ ${lines[0]} == "rdgate dump: "* ]]
    done
    for arguments in "" "--no-such" "--events x 1" "--stuck-ms -1 1" "1 2"; do
        # shellcheck disable=SC2086
        run "$RDGATE" dump $arguments
        echo "$arguments: $output"
        [ "$status" -eq 2 ]
    done
    run "$RDGATE" ps --no-such
    [ "$status" -eq 2 ]
}

@test "the file of another user is refused in one line" {
    (( EUID == 0 )) || skip "needs root, to be two users"
    begin stuck commit
    shows "$PID" "finding: stuck-call"
    OPEN=$(mktemp -d) # where everybody can look
    chmod 755 "$OPEN"
    cp "$RDGATE" "$FLIGHT"/* "$OPEN"
    nobody() { run setpriv --reuid 65534 --regid 65534 --clear-groups "$OPEN/rdgate" dump "$1"; }
    nobody "$(echo "$OPEN"/*.*)"
    [ "$status" -eq 4 ] || fail "should have been refused"
    has "belongs to user 0: read it as that user, or as root" || fail "should have said whose it is"
    nobody "$(echo "$FLIGHT"/*)"
    [ "$status" -eq 4 ] || fail "should have been refused"
    has "lies where only another user may look" || fail "should have said why"
    nobody "$PID"
    [ "$status" -eq 4 ] || fail "should have been refused"
    has "process $PID belongs to another user" || fail "should have said whose it is"
}

@test "a file that is written all the time is read whole" {
    begin storm 20
    shows "$PID" "Consumer"
    for _ in {1..60}; do
        kill -0 "$PID" 2>/dev/null || break
        run "$RDGATE" dump --json "$PID"
        [ "$status" -eq 0 ] || { kill -0 "$PID" 2>/dev/null && fail "should have been read"; break; }
        python3 -c 'import json, sys; json.load(sys.stdin)' <<<"$output"
    done
}

@test "spoiled files do no harm" {
    begin stuck commit
    shows "$PID" "finding: stuck-call"
    died
    run "$ROOT/build/fuzz/dump" "$FILE" 5
    [ "$status" -eq 0 ] || fail "the reader fell over"
}
