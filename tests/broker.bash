# A real Apache Kafka for one bats file; tests/broker/broker does the work. Load it after clients.bash, whose halves
# then go to it: BOOTSTRAP is its address.

BROKER=$ROOT/tests/broker/broker

# Where there can be no broker, the tests of the file are skipped, and say why. When it was never tried, that is a
# failure: run scripts/setup.
broker_or_skip() {
    [ ! -e "$ROOT/build/broker/absent" ] || skip "no Apache Kafka: $(cat "$ROOT/build/broker/absent")"
}

broker_up() { # TOPIC PARTITIONS MESSAGES ...
    local said
    [ ! -e "$ROOT/build/broker/absent" ] || return 0
    said=$("$BROKER" start "$BATS_FILE_TMPDIR/broker")
    export BOOTSTRAP=${said#bootstrap=}
    timeout 90 "$ROOT/build/broker/fill" "$BOOTSTRAP" "$@"
}

broker_down() {
    [ ! -e "$BATS_FILE_TMPDIR/broker" ] || "$BROKER" stop "$BATS_FILE_TMPDIR/broker"
}

# A file that sets TOPICS has a broker with these as long as it runs.
setup_file() {
    broker_up "${TOPICS[@]}"
}

teardown_file() {
    broker_down
}
