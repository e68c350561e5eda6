# helper.bash: what every bats file about victims loads.
#
# A victim runs twice: plain() runs it on bare librdkafka and with_shim() under librdgate.so; the expect_* that
# follows says how it must have ended. for_each_lib repeats all that on every librdkafka there is.
#
#   GATE_SO         the shim (build/librdgate.so)
#   GATE_TEST_LIBS  directories of librdkafka builds, colon-separated; an empty one is the system's
#   RDGATE_HALF       plain | shim: run only that half, to look into one

ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
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
    [ "${RDGATE_HALF:-plain}" = plain ] || return 0
    run timeout -s KILL "$1" env -u LD_PRELOAD PROBE_PATIENCE_MS=1500 ${LIB:+LD_LIBRARY_PATH="$LIB"} "${WRAP[@]}" "$PROBES/$2" "${@:3}"
}

# with_shim SECONDS PROBE [ARG...]: under the shim; options of the shim come from the environment.
with_shim() {
    HALF=shim RAN="with_shim $*" status=- output=
    [ "${RDGATE_HALF:-shim}" = shim ] || return 0
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

# not_run: this half was left out by RDGATE_HALF.
not_run() {
    [ "${RDGATE_HALF:-$HALF}" != "$HALF" ]
}

expect_ok() {
    not_run || [ "$status" -eq 0 ] || fail "should have been all right"
}

# expect_hang STEP: killed by the timeout while it was at that step.
expect_hang() {
    not_run && return
    [ "$status" -eq 137 ] || fail "should have hung at: $1"
    [ "$(grep '^# ' <<<"$output" | tail -n 1)" = "# $1" ] || fail "should have hung elsewhere, at: $1"
}

# expect_crash: died of a signal that is not the timeout's.
expect_crash() {
    not_run || { [ "$status" -ge 128 ] && [ "$status" -ne 137 ]; } || fail "should have crashed"
}

# expect_not_ok TEXT: noticed its misfortune itself, and said this.
expect_not_ok() {
    not_run && return
    [ "$status" -eq 1 ] || fail "should have said: not ok: $1"
    grep -q "^not ok: .*$1" <<<"$output" || fail "should have said: not ok: $1"
}

# expect_bad: any of the three; for races, where it is not known which.
expect_bad() {
    not_run || [ "$status" -ne 0 ] || fail "should have gone wrong"
}
