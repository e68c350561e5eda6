#!/usr/bin/env bats
# The table of calls against librdkafka's headers: what scripts/check-calls has to catch.

setup() {
    cd "$BATS_TEST_DIRNAME/.." || return
    table=$BATS_TEST_TMPDIR/calls.def
    header=$BATS_TEST_TMPDIR/rdkafka.h
    newest=/usr/include/librdkafka/rdkafka.h
    [ ! -f build/librdkafka/src-2.15/src/rdkafka.h ] || newest=build/librdkafka/src-2.15/src/rdkafka.h
    cp shim/calls.def "$table"
    cp "$newest" "$header"
}

all_headers() { # headers that this machine has
    ls /usr/include/librdkafka/rdkafka.h build/librdkafka/src-*/src/rdkafka.h 2>/dev/null
}

# Every header but the doctored copy's original, so that rows of newer releases are known.
others() { all_headers | grep -vFx "$newest"; }

check() { # the doctored table and header beside the true headers
    # shellcheck disable=SC2046
    run scripts/check-calls --table "$table" "$header" $(others)
    echo "$output"
}

@test "the table agrees with every header that is here" {
    run scripts/check-calls
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^check-calls: librdkafka [0-9.]*: ok' <<<"$output")" -eq "$(all_headers | wc -l)" ]
}

@test "Debian's 2.0, and 2.12 and 2.15 are among them" {
    [ -d build/librdkafka ] || skip "scripts/fetch-librdkafka was not run"
    run scripts/check-calls
    echo "$output"
    for version in 2.0 2.12 2.15; do
        grep -q "^check-calls: librdkafka $version\." <<<"$output"
    done
}

@test "a removed row is caught" {
    sed -i '/^CALL(.*, rd_kafka_seek,/d' "$table"
    check
    [ "$status" -eq 1 ]
    grep -q 'rd_kafka_seek takes or returns a handle, but has no row and no excuse' <<<"$output"
}

@test "a wrong parameter type is caught" {
    sed -i '/^CALL(.*, rd_kafka_seek,/s/int64_t offset/int32_t offset/' "$table"
    check
    [ "$status" -eq 1 ]
    grep -q 'rd_kafka_seek: the row says' <<<"$output"
    grep -q 'rd_kafka_resp_err_t (rd_kafka_topic_t \*, int32_t, int64_t, int)' <<<"$output"
}

@test "a wrong result type is caught" {
    sed -i '/^CALL(.*, rd_kafka_assignment_lost,/s/(value, int,/(value, long,/' "$table"
    check
    [ "$status" -eq 1 ]
    grep -q 'rd_kafka_assignment_lost: the row says' <<<"$output"
}

@test "a lost const and a missing parameter are caught" {
    sed -i '/^CALL(.*, rd_kafka_memberid,/s/(const rd_kafka_t/(rd_kafka_t/' "$table"
    sed -i '/^CALL(.*, rd_kafka_committed,/s/, int timeout_ms)/)/' "$table"
    check
    [ "$status" -eq 1 ]
    grep -q 'rd_kafka_memberid: the row says' <<<"$output"
    grep -q 'rd_kafka_committed: the row says' <<<"$output"
}

@test "a wrong type inside a callback parameter is caught" {
    sed -i '/^CALL(.*, rd_kafka_consume_callback,/s/void (\*consume_cb)/int (*consume_cb)/' "$table"
    check
    [ "$status" -eq 1 ]
    grep -q 'rd_kafka_consume_callback: the row says' <<<"$output"
}

@test "the names of parameters may differ" {
    sed -i '/^CALL(.*, rd_kafka_seek,/s/int64_t offset/int64_t where/' "$table"
    check
    [ "$status" -eq 0 ]
}

@test "functions added to a header are caught, whatever handle they take" {
    for handle in rd_kafka_t rd_kafka_share_t rd_kafka_queue_t rd_kafka_topic_t; do
        echo "RD_EXPORT int rd_kafka_later_$handle(int x, const $handle *it);" >>"$header"
    done
    echo 'RD_EXPORT rd_kafka_t *rd_kafka_later_born(void);' >>"$header"
    echo 'RD_EXPORT int rd_kafka_later_harmless(const char *s);' >>"$header"
    check
    [ "$status" -eq 1 ]
    for name in rd_kafka_t rd_kafka_share_t rd_kafka_queue_t rd_kafka_topic_t born; do
        grep -q "rd_kafka_later_$name takes or returns a handle" <<<"$output"
    done
    [ "$(grep -c rd_kafka_later_harmless <<<"$output")" -eq 0 ]
}

@test "an excuse that matches nothing is caught" {
    echo 'EXCUSE("rd_kafka_gone_*", "was removed")' >>"$table"
    check
    [ "$status" -eq 1 ]
    grep -q 'the excuse "rd_kafka_gone_\*" matches nothing' <<<"$output"
}

@test "a row that is in no header is caught" {
    sed 's/rd_kafka_seek,/rd_kafka_sought,/; /rd_kafka_sought/!d' shim/calls.def >>"$table"
    check
    [ "$status" -eq 1 ]
    grep -q 'rd_kafka_sought is in none of the headers' <<<"$output"
}

@test "a row that is there twice is caught" {
    grep '^CALL(.*, rd_kafka_seek,' shim/calls.def >>"$table"
    check
    [ "$status" -eq 1 ]
    grep -q 'rd_kafka_seek has a row already, in line' <<<"$output"
}

@test "something that is no rdkafka.h is refused" {
    echo 'int main(void);' >"$header"
    run scripts/check-calls "$header"
    echo "$output"
    [ "$status" -eq 1 ]
    grep -q 'not an rdkafka.h' <<<"$output"
}
