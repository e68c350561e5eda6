# helper.bash: what every bats file about victims loads.
#
# A victim runs twice: plain() runs it on bare librdkafka and with_shim() under librdgate.so; the expect_* that
# follows says how it must have ended. for_each_lib repeats all that on every librdkafka there is.
#
#   GATE_SO         the shim (build/librdgate.so)
#   GATE_TEST_LIBS  directories of librdkafka builds, colon-separated; an empty one is the system's
#   GATE_HALF       plain | shim: run only that half, to look into one

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PROBES=${PROBES:-$ROOT/build/probes}
GATE_SO=${GATE_SO:-$ROOT/build/librdgate.so}
if [ -z "${GATE_TEST_LIBS+set}" ]; then
    GATE_TEST_LIBS=
    [ ! -d "$ROOT/build/librdkafka/2.15/lib" ] || GATE_TEST_LIBS=:$ROOT/build/librdkafka/2.15/lib
fi
ulimit -c 0

# for_each_lib COMMAND [ARG...]: once per librdkafka, its directory in LIB.
for_each_lib() {
    local rest=$GATE_TEST_LIBS:
    while [ -n "$rest" ]; do
        LIB=${rest%%:*}
        rest=${rest#*:}
        echo "-- librdkafka of ${LIB:-the system}"
        "$@"
    done
}

# fail WORD...: the test ends here; says which librdkafka, which run, and all that the victim printed.
fail() {
    echo "$*"
    echo "   librdkafka: ${LIB:-the system}"
    echo "   run:        $RAN"
    echo "   status:     $status"
    echo "$output"
    return 1
}

# plain SECONDS PROBE [ARG...]: without the shim, and with little patience; killed after SECONDS.
plain() {
    HALF=plain RAN="plain $*"
    [ "${GATE_HALF:-plain}" = plain ] || return 0
    run timeout -s KILL "$1" env -u LD_PRELOAD PROBE_PATIENCE_MS=1500 ${LIB:+LD_LIBRARY_PATH="$LIB"} \
        "${WRAP[@]}" "$PROBES/$2" "${@:3}"
}

# with_shim SECONDS PROBE [ARG...]: under the shim; options of the shim come from the environment.
with_shim() {
    HALF=shim RAN="with_shim $*" status=- output=
    [ "${GATE_HALF:-shim}" = shim ] || return 0
    [ -e "$GATE_SO" ] || fail "there is no $GATE_SO: make first"
    run timeout -s KILL "$1" env LD_PRELOAD="$GATE_SO" ${LIB:+LD_LIBRARY_PATH="$LIB"} \
        "${WRAP[@]}" "$PROBES/$2" "${@:3}"
}

# lib_before VERSION: is the librdkafka of the last run older?
lib_before() {
    local have
    have=$(sed -n 's/^# librdkafka //p' <<<"$output" | head -n 1)
    [ -n "$have" ] && [ "$have" != "$1" ] && [ "$(printf '%s\n' "$have" "$1" | sort -V | head -n 1)" = "$have" ]
}

# under_valgrind COMMAND...: a run, as above, in which an invalid access is an error (status 99).
under_valgrind() {
    local WRAP=(valgrind -q --error-exitcode=99)
    "$@"
}

# not_run: this half was left out by GATE_HALF.
not_run() {
    [ "${GATE_HALF:-$HALF}" != "$HALF" ]
}

expect_ok() {
    not_run || [ "$status" -eq 0 ] || fail "should have been all right"
}

# expect_calm: all right, and the shim had nothing to say.
expect_calm() {
    expect_ok
    not_run || ! grep -q 'finding' <<<"$output" || fail "should have found nothing"
}

# expect_hang STEP: killed by the timeout while it was at that step.
expect_hang() {
    not_run && return
    [ "$status" -eq 137 ] || fail "should have hung at: $1"
    [ "$(grep '^# ' <<<"$output" | tail -n 1)" = "# $1" ] || fail "should have hung elsewhere, at: $1"
}

# expect_not_ok TEXT: noticed its misfortune itself, and said this.
expect_not_ok() {
    not_run && return
    [ "$status" -eq 1 ] || fail "should have said: not ok: $1"
    grep -q "^not ok: .*$1" <<<"$output" || fail "should have said: not ok: $1"
}

# expect_invalid: valgrind saw it touch memory that is not its own.
expect_invalid() {
    not_run || grep -q '^==[0-9]*== Invalid ' <<<"$output" || fail "should have touched freed memory"
}

# expect_bad: hung, crashed or noticed; for races, where it is not known which.
expect_bad() {
    not_run || [ "$status" -ne 0 ] || fail "should have gone wrong"
}

# right_both_ways PROBE [ARG...]: nothing is wrong without the shim, so nothing may be with it, nor be said.
right_both_ways() {
    plain 15 "$@"
    expect_ok
    with_shim 30 "$@"
    expect_calm
}

# watched SECONDS PROBE [ARG...]: under the shim, which writes to a log that the victim reads along; quick to complain.
watched() {
    LOG=$BATS_TEST_TMPDIR/log.$((RUNS_OF_TEST += 1))
    RDGATE_STUCK_MS=${RDGATE_STUCK_MS:-500} RDGATE_LOG=$LOG PROBE_LOG=$LOG with_shim "$@"
    not_run || [ ! -e "$LOG" ] || output+=$'\n'$(<"$LOG")
}

# found CODE TIMES: so often this finding was said.
found() {
    not_run || [ "$(grep -c "finding: $1:" <<<"$output")" -eq "$2" ] || fail "should have found $1 $2 times"
}

# says TEXT: some line of the report has it, wherever the line was wrapped.
says() {
    not_run || grep -qF -e "$1" <<<"$(tr -s ' \n' '  ' <<<"$output")" || fail "should have said: $1"
}
