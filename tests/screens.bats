#!/usr/bin/env bats
# rdgate top, metrics and trace, on flight files made by hand (tests/scenes) and on one of a real victim. The
# page that trace makes is looked at by a browser in tests/browser.

load helper
bats_require_minimum_version 1.5.0

setup() {
    RDGATE=$ROOT/build/rdgate
    PROMTOOL=$(command -v promtool || echo "$ROOT/build/tools/promtool")
    export RDGATE_FLIGHT=$BATS_TEST_TMPDIR/flights TERM=xterm-256color LC_ALL=C.UTF-8
    unset XDG_RUNTIME_DIR COLUMNS
    mkdir -m 700 "$RDGATE_FLIGHT"
}

teardown() {
    [ -z "${VICTIM-}" ] || kill -KILL "$VICTIM" 2>/dev/null || true
    [ -z "${SCENE_PID-}" ] || { exec {STAY}>&-; wait "$SCENE_PID" || true; }
}

# scene NAME: the file, in FILE, of a process that has ended.
scene() {
    FILE=$("$ROOT/build/scenes/scene" "$RDGATE_FLIGHT" "$1")
}

# living NAME: the file of a process that runs until the test ends.
living() {
    local out=$BATS_TEST_TMPDIR/scene.out
    mkfifo "$BATS_TEST_TMPDIR/stay"
    "$ROOT/build/scenes/scene" "$RDGATE_FLIGHT" "$1" stay <"$BATS_TEST_TMPDIR/stay" >"$out" 3>&- &
    SCENE_PID=$!
    exec {STAY}>"$BATS_TEST_TMPDIR/stay"
    until_true "[ -s '$out' ]"
    FILE=$(cat "$out")
}

# until_true SHELL: looks again for at most 20 s.
until_true() {
    local deadline=$((SECONDS + 20))
    until eval "$1"; do
        [ "$SECONDS" -lt "$deadline" ] || { echo "never true: $1"; return 1; }
        read -rt 0.05 <> <(:) || true
    done
}

# terminal SIZE ARG...: rdgate in a terminal; what to do comes from the input (tests/scenes/terminal.py).
terminal() {
    "$ROOT/tests/scenes/terminal.py" "$1" "$RDGATE" "${@:2}"
}

# column NAME: of the table with tabs in output
column() {
    awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) n = i; next } { print $n }' <<<"$output"
}

@test "top shows the troubled consumers first, with who is inside and who waits" {
    scene trouble
    run "$RDGATE" top -1 "$FILE"
    echo "$output"
    [ "$status" -eq 0 ]
    first=$(grep -A 1 '^gate' <<<"$output" | tail -n 1)
    [[ $first == G1*orders#consumer-1*HD-R--*main/4182*"consumer_poll > rebalance_cb"*" 2 "* ]]
    grep -q 'G2 .* audit#consumer-2 .* ------ ' <<<"$output"
    grep -q 'H held too long   D in a deadlock' <<<"$output"
    grep -q 'has ended: this is how it was left' <<<"$output"
}

@test "top --tsv is a table for machines: every line as many fields as the first" {
    living trouble
    run --separate-stderr "$RDGATE" top --tsv "$SCENE_PID"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(awk -F '\t' '{ print NF }' <<<"$output" | sort -u | wc -l)" -eq 1 ]
    [ "$(column gate | head -n 1)" = G1 ]
    [ "$(column flags | head -n 1)" = HD-R-- ]
    [ "$(column waiting | paste -sd ' ')" = "2 0 0 0" ]
    [ "$(column call | head -n 1)" = rd_kafka_consumer_poll ]
    [ "$(column calls | sort -u)" = 4211 ]
}

@test "top -1 knows the rates of a process that runs" {
    living calm
    run "$RDGATE" top -1 -i 0.5 "$SCENE_PID"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ ${lines[1]##* } =~ ^[1-9][0-9.]*k?$ ]]
}

@test "top --gate tells all about one consumer, down to its last events" {
    scene trouble
    run "$RDGATE" top -1 --gate 1 "$FILE"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -q '^inside *main/4182: rd_kafka_consumer_poll > rebalance_cb, 12.4s' <<<"$output"
    grep -q '^waits *committer/4183: rd_kafka_commit, 12.1s, for main/4182' <<<"$output"
    grep -q '^finding *deadlock, 11.0s ago: rd_kafka_commit on consumer' <<<"$output"
    grep -q 'committer/4183 *rd_kafka_commit waits at the gate for main/4182 in rd_kafka_consumer_poll' <<<"$output"
}

@test "escape sequences in a consumer's name do not reach the terminal" {
    scene trouble
    for how in -1 --tsv; do
        run "$RDGATE" top "$how" "$FILE"
        [ "$status" -eq 0 ]
        [[ $output != *$'\x1b'* ]]
        grep -qF 'mail ?[31m</script><b>"quoted" \ é#consumer-4' <<<"$output"
    done
    LC_ALL=C run "$RDGATE" top -1 "$FILE"
    grep -qF '\ ?#consumer-4' <<<"$output"
}

@test "top in a terminal: rows, one consumer, back, help, resized to nothing and again, left with q" {
    living trouble
    terminal 120x24 top "$SCENE_PID" <<'END'
wait IN A DEADLOCK
wait orders#consumer-1
wait H held too long
fits
key j
key enter
wait last events
wait rebalance_cb
key escape
wait by trouble
key s
wait by name
key s
wait by rate
key space
wait (stopped)
key ?
wait usage: rdgate top
key escape
wait by rate
resize 40x8
wait orders#co
gone calls/s
fits
resize 7x2
fits
resize 1x1
fits
resize 200x50
wait calls/s
wait poll gap
key q
ends 0
END
}

@test "top ends when its terminal goes away, and when it is told to" {
    living calm
    terminal 80x24 top "$SCENE_PID" <<'END'
wait orders#consumer-1
hangup
ends 129
END
    terminal 80x24 top "$SCENE_PID" <<'END'
wait orders#consumer-1
signal SIGTERM
ends 143
END
}

@test "top on a terminal that is not known shows its table once" {
    scene trouble
    for TERM in "" no-such-terminal; do
        terminal 120x24 top "$FILE" <<'END'
wait is not known (TERM)
wait orders#consumer-1
ends 0
END
    done
    unset TERM
    terminal 120x24 top "$FILE" <<'END'
wait is not known (TERM)
wait orders#consumer-1
ends 0
END
}

@test "top into a pipe prints once; a reader that has gone is no trouble" {
    scene trouble
    run bash -c '"$0" top "$1" 2>/dev/null | head -n 1' "$RDGATE" "$FILE"
    echo "$output"
    [[ $output == gate* ]]
    run bash -c 'set -o pipefail; "$0" top --tsv "$1" 2>/dev/null | true' "$RDGATE" "$FILE"
    [ "$status" -eq 0 ] || [ "$status" -eq 141 ] || [ "$status" -eq 1 ]
    [ -z "$output" ]
}

@test "top sees consumers come and go, and says when a process has ended" {
    living calm
    terminal 120x24 top "$SCENE_PID" <<END
wait orders#consumer-1
fits
END
    run --separate-stderr "$RDGATE" top --tsv # of all processes, perhaps of others as well
    [ "$status" -eq 0 ]
    [ "$(column pid | grep -cx "$SCENE_PID")" -eq 1 ]
    exec {STAY}>&-
    wait "$SCENE_PID"
    local gone=$SCENE_PID
    SCENE_PID=
    run --separate-stderr "$RDGATE" top --tsv
    [ "$(column pid | grep -cx "$gone")" -eq 0 ]
    run "$RDGATE" top -1 "$gone"
    echo "$output"
    [ "$status" -eq 4 ]
    [ "$output" = "rdgate top: there is no process $gone, and it left no flight file behind" ]
}

@test "metrics are what promtool asks of them" {
    [ -x "$PROMTOOL" ] || skip "no promtool (scripts/fetch-promtool fetches it)"
    living trouble
    "$RDGATE" metrics >"$BATS_TEST_TMPDIR/rdgate.prom"
    run "$PROMTOOL" check metrics <"$BATS_TEST_TMPDIR/rdgate.prom"
    echo "$output"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    grep -qF 'rdgate_gate_deadlocked{pid="'"$SCENE_PID"'",program="billing",gate="G1",consumer="orders#consumer-1",group="billing"} 1' \
        "$BATS_TEST_TMPDIR/rdgate.prom"
    grep -qF 'consumer="mail ?[31m</script><b>\"quoted\" \\ é#consumer-4",group="po?st"' "$BATS_TEST_TMPDIR/rdgate.prom"
    grep -q 'rdgate_findings_total{.*finding="deadlock"} 1$' "$BATS_TEST_TMPDIR/rdgate.prom"
    grep -q 'rdgate_gate_wait_seconds_bucket{.*gate="G1".*le="+Inf"} 22$' "$BATS_TEST_TMPDIR/rdgate.prom"
}

@test "processes of two containers that have the same number do not spoil the metrics" {
    scene container-7001
    scene container-7002
    run --separate-stderr "$RDGATE" metrics
    [ "$status" -eq 0 ]
    grep -q '^rdgate_calls_total{pid="1@7001",' <<<"$output"
    grep -q '^rdgate_calls_total{pid="1@7002",' <<<"$output"
    [ -z "$(grep -v '^#' <<<"$output" | sed 's/ [^ ]*$//' | sort | uniq -d)" ]
    run --separate-stderr "$RDGATE" top --tsv
    [ "$(column pid | grep -cx 1)" -eq 2 ]
}

@test "metrics of whatever runs, be it nothing, are metrics" {
    [ -x "$PROMTOOL" ] || skip "no promtool (scripts/fetch-promtool fetches it)"
    run --separate-stderr "$RDGATE" metrics
    [ "$status" -eq 0 ]
    grep -qxE 'rdgate_processes [0-9]+' <<<"$output"
    run "$PROMTOOL" check metrics <<<"$output"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "metrics --output writes the file whole or not at all" {
    scene trouble
    out=$BATS_TEST_TMPDIR/collector
    mkdir "$out"
    umask 077
    echo old >"$out/rdgate.prom"
    "$RDGATE" metrics --output "$out/rdgate.prom" "$FILE"
    grep -q '^rdgate_processes 1$' "$out/rdgate.prom"
    [ "$(stat -c %a "$out/rdgate.prom")" = 644 ]
    [ "$(ls -A "$out")" = rdgate.prom ]
    run "$RDGATE" metrics --output "$out/no/such/rdgate.prom" "$FILE"
    [ "$status" -eq 1 ]
    [ "$output" = "rdgate metrics: $out/no/such/rdgate.prom cannot be written: No such file or directory" ]
    run bash -c 'ulimit -f 1; trap "" XFSZ; exec "$0" metrics --output "$1" "$2"' "$RDGATE" "$out/rdgate.prom" "$FILE"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"cannot be written: File too large" ]]
    [ "$(ls -A "$out")" = rdgate.prom ]
    grep -q '^rdgate_processes 1$' "$out/rdgate.prom"
}

@test "the alert rules are sound, and fire when they should and only then" {
    [ -x "$PROMTOOL" ] || skip "no promtool (scripts/fetch-promtool fetches it)"
    run "$PROMTOOL" check rules "$ROOT/shim/data/rdgate.rules.yml"
    echo "$output"
    [ "$status" -eq 0 ]
    run "$PROMTOOL" test rules "$ROOT/tests/scenes/rules.test.yml"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "rules and dashboard ask only for what metrics prints" {
    living trouble
    "$RDGATE" metrics >"$BATS_TEST_TMPDIR/rdgate.prom"
    printed=$(sed -nE 's/^(rdgate_[a-z_]+)[{ ].*/\1/p' "$BATS_TEST_TMPDIR/rdgate.prom" | sort -u)
    asked=$(grep -ohE 'rdgate_[a-z_]+' "$ROOT"/shim/data/*.yml "$ROOT"/shim/data/*.json | sort -u)
    echo "asked for and not printed: $(comm -23 <(echo "$asked") <(echo "$printed"))"
    [ -z "$(comm -23 <(echo "$asked") <(echo "$printed"))" ]
    python3 -m json.tool "$ROOT/shim/data/rdgate.grafana.json" >/dev/null
}

@test "trace --chrome is what Chrome and Perfetto read" {
    scene trouble
    "$RDGATE" trace --chrome -o "$BATS_TEST_TMPDIR/trace.json" "$FILE"
    python3 "$ROOT/tests/scenes/chrome_trace.py" "$BATS_TEST_TMPDIR/trace.json"
    jq -e '[.traceEvents[] | select(.ph == "X" and .name == "rebalance_cb" and .args.ended == "not yet")] | length == 1' \
        "$BATS_TEST_TMPDIR/trace.json"
    jq -e '[.traceEvents[] | select(.name == "waits: rd_kafka_commit" and .args["waits for"] == "main/4182" and .dur > 12e6)] | length == 1' \
        "$BATS_TEST_TMPDIR/trace.json"
}

@test "trace --html is one page that asks for nothing, and the data cannot leave its place" {
    scene trouble
    "$RDGATE" trace --html -o "$BATS_TEST_TMPDIR/trace.html" "$FILE"
    [ "$(grep -c '</script>' "$BATS_TEST_TMPDIR/trace.html")" -eq 2 ]
    [ "$(grep -cE '(src|href)="?(https?:)?//' "$BATS_TEST_TMPDIR/trace.html")" -eq 0 ]
    sed -n 's,.*<script type="application/json" id="data">\(.*\)</script>.*,\1,p' "$BATS_TEST_TMPDIR/trace.html" |
        jq -e '.program == "billing" and (.findings | length) == 2 and (.spans.start | length) == (.spans.kind | length)'
}

@test "a file that is hostile, cut, empty or none gives one line, or a picture, and no crash" {
    living calm
    head -c 5000 "$FILE" >"$BATS_TEST_TMPDIR/cut"
    : >"$BATS_TEST_TMPDIR/nothing"
    head -c 900000 /dev/urandom >"$BATS_TEST_TMPDIR/noise"
    for file in cut nothing noise missing; do
        for how in "top -1" "top --tsv" "top -1 -g 3" metrics "trace --chrome" "trace --html"; do
            read -ra words <<<"$how"
            run --separate-stderr "$RDGATE" "${words[@]}" "$BATS_TEST_TMPDIR/$file"
            echo "$file, $how: $status ${stderr-}"
            [ "$status" -eq 4 ]
            [ -z "$output" ]
            [ "$(wc -l <<<"${stderr-}")" -eq 1 ]
        done
    done
    for seed in $(seq 12); do
        scene "hostile-$seed"
        for how in "top -1" "top --tsv" "top -1 -g 3" metrics "trace --chrome" "trace --html"; do
            read -ra words <<<"$how"
            "$RDGATE" "${words[@]}" "$FILE" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || [ $? -eq 4 ]
            case $how in
            *chrome) python3 "$ROOT/tests/scenes/chrome_trace.py" "$BATS_TEST_TMPDIR/out" ;;
            metrics) [ ! -x "$PROMTOOL" ] || "$PROMTOOL" check metrics <"$BATS_TEST_TMPDIR/out" ;;
            *html) sed -n 's,.*id="data">\(.*\)</script>.*,\1,p' "$BATS_TEST_TMPDIR/out" | jq -e .spans >/dev/null ;;
            esac
        done
        rm "$FILE"
    done
}

@test "wrong command lines are told from right ones" {
    for how in "top --no-such" "top 1 2" "top -g 0 1" "top -g 1" "top -i 0" "top -s x" "metrics -x" "metrics 1 2" \
        "trace --html" "trace 1" "trace --html --no 1"; do
        read -ra words <<<"$how"
        run "$RDGATE" "${words[@]}"
        echo "$how: $status"
        [ "$status" -eq 2 ]
        [ -n "$output" ]
    done
    for how in top metrics trace; do
        run --separate-stderr "$RDGATE" "$how" --help
        [ "$status" -eq 0 ]
        [[ $output == "usage: rdgate $how"* ]]
    done
}

@test "spoiled files, thousands of them, neither crash nor hang what shows them" {
    scene trouble
    run "$ROOT/build/fuzz/screens" "$FILE" 5
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "a real deadlock is seen by top, metrics and trace while it lasts and after the kill" {
    LD_PRELOAD=$GATE_SO RDGATE_STUCK_MS=500 RDGATE_LOG=/dev/null "$PROBES/deadlock" >/dev/null 2>&1 3>&- &
    VICTIM=$!
    until_true "'$RDGATE' top --tsv $VICTIM 2>/dev/null | grep -q $'\tHD'"
    "$RDGATE" metrics "$VICTIM" | grep -q '^rdgate_gate_deadlocked{.*} 1$'
    FILE=$(echo "$RDGATE_FLIGHT/$VICTIM".*)
    kill -KILL "$VICTIM"
    wait "$VICTIM" || true
    VICTIM=
    run --separate-stderr "$RDGATE" top --tsv "$FILE"
    echo "$output"
    [[ $(column flags) == HD* ]]
    "$RDGATE" trace --chrome "$FILE" | jq -e '[.traceEvents[] | select(.name == "finding: deadlock")] | length > 0'
}
