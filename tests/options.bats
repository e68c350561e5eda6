#!/usr/bin/env bats
# The shim's own options: a bad one is named on one line and ignored; the program never notices.

setup() {
    cd "$BATS_TEST_DIRNAME/.." || return
    so=${GATE_SO:-$PWD/build/librdgate.so}
    [ -e "$so" ] || { echo "there is no $so: make first"; return 1; }
    unset LD_PRELOAD "${!RDGATE_@}"
    probe=build/probes/plain_consumer
    err=$BATS_TEST_TMPDIR/err
    expected=$("$probe")
}

# with [NAME=VALUE...]: the probe under the shim; its standard error goes to $err
with() {
    run bash -c 'err=$1 so=$2 probe=$3; shift 3; exec env "$@" LD_PRELOAD="$so" "$probe" 2>"$err"' \
        bash "$err" "$so" "$probe" "$@"
    echo "status $status"
    echo "$output"
    echo "standard error:"
    cat "$err"
}

unaffected() {
    [ "$status" -eq 0 ]
    [ "$output" = "$expected" ]
}

said() { # N lines, all of them ours
    [ "$(wc -l <"$err")" -eq "$1" ]
    [ "$(grep -c rdgate "$err")" -eq "$1" ]
}

@test "without options a program that does nothing wrong sees no output" {
    with
    unaffected
    said 0
}

@test "a valid option is no reason to speak" {
    for mode in serialize lifetime refuse observe off; do
        with RDGATE_MODE=$mode RDGATE_MAX_WAIT_MS=1000
        unaffected
        said 0
    done
}

@test "RDGATE_MODE=banana: one line with the name, the value and the valid ones" {
    with RDGATE_MODE=banana
    unaffected
    said 1
    grep -q 'RDGATE_MODE' "$err"
    grep -q 'banana' "$err"
    for mode in serialize lifetime refuse observe off; do grep -q "$mode" "$err"; done
}

@test "RDGATE_MOD=x: one line with the nearest valid name" {
    with RDGATE_MOD=x
    unaffected
    said 1
    grep -q 'RDGATE_MOD\b' "$err"
    grep -q 'RDGATE_MODE\b' "$err"
}

@test "a number that is none, negative, or too large is named" {
    for value in abc -1 12x 99999999999999999999 ''; do
        with RDGATE_MAX_WAIT_MS="$value"
        unaffected
        said 1
        grep -q 'RDGATE_MAX_WAIT_MS' "$err"
        grep -q '0 to ' "$err"
    done
}

@test "each bad option has its own line, and the good ones hold" {
    with RDGATE_MODE=banana RDGATE_MOD=x RDGATE_MAX_WAIT_MS=1000
    unaffected
    said 2
}

@test "a value full of control characters and without end is shown harmless and cut" {
    with RDGATE_MODE="$(printf '\033[31m\n%2000d' 1)"
    unaffected
    said 1
    [ "$(LC_ALL=C grep -c '[^ -~]' "$err")" -eq 0 ]
    [ "$(wc -c <"$err")" -lt 400 ]
}

@test "a process without librdkafka says nothing, bad options or not" {
    run env LD_PRELOAD="$so" RDGATE_MODE=banana RDGATE_MOD=x RDGATE_VERBOSE=1 /bin/echo hello
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = hello ]
}

@test "RDGATE_VERBOSE=1 proves that we are in, and which librdkafka we are in front of" {
    with RDGATE_VERBOSE=1
    unaffected
    count=$(wc -l <"$err")
    [ "$count" -ge 2 ]
    said "$count"
    grep -q 'librdkafka' "$err"
}

@test "RDGATE_LOG=FILE takes the lines, %p is the process, and it is appended to" {
    log=$BATS_TEST_TMPDIR/log
    echo before >"$log"
    with RDGATE_VERBOSE=1 RDGATE_LOG="$log"
    unaffected
    said 0
    [ "$(head -n 1 "$log")" = before ]
    [ "$(wc -l <"$log")" -ge 3 ]
    with RDGATE_VERBOSE=1 RDGATE_LOG="$BATS_TEST_TMPDIR/of-%p.log"
    unaffected
    ls "$BATS_TEST_TMPDIR"/of-*.log
    [[ $(basename "$BATS_TEST_TMPDIR"/of-*.log) =~ ^of-[0-9]+\.log$ ]]
}

@test "RDGATE_LOG that cannot be opened: the lines go to standard error" {
    with RDGATE_VERBOSE=1 RDGATE_LOG=/no/such/directory/log
    unaffected
    grep -q rdgate "$err"
}
