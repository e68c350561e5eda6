#!/usr/bin/env bats
# All that reads ELF files, against rubbish: a minute here, longer with make fuzz FUZZ_SECONDS=600.

export BATS_TEST_TIMEOUT=400

@test "whatever an ELF file says, nothing outside of it is touched, and there is an end to reading it" {
    cd "$BATS_TEST_DIRNAME/.."
    run make fuzz FUZZ_SECONDS="${FUZZ_SECONDS:-60}" B="${B:-build}"
    echo "$output" | tail -n 60
    [ "$status" -eq 0 ]
    [ "$(sed -n 's/^stat::number_of_executed_units: *//p' <<<"$output")" -gt 10000 ]
}

@test "it begins with every kind of file that is told apart, and none is larger than 8 KiB" {
    "$BATS_TEST_DIRNAME/fuzz/seeds" "$BATS_TEST_TMPDIR/seeds"
    [ "$(find "$BATS_TEST_TMPDIR/seeds" -type f | wc -l)" -ge 12 ]
    [ "$(find "$BATS_TEST_TMPDIR/seeds" -type f -size +8k | wc -l)" -eq 0 ]
    rdgate=$BATS_TEST_DIRNAME/../build/rdgate
    while read -r file text; do
        run env RDGATE_PATCH=off "$rdgate" check "$BATS_TEST_TMPDIR/seeds/$file"
        echo "$file: $output"
        grep -q "$text" <<<"$output"
    done <<'TABLE'
library version 2.15.1
hidden librdkafka 2.15.1 is inside
module a shared object
program librdkafka 2.15.1 is inside this program
linked its symbols are in
stripped librdkafka is inside this program: its symbols are stripped
static static: no interpreter
static-pie static-pie: no interpreter
object neither a program nor a shared object
narrow ELF 32-bit i386
script a script, run by /usr/bin/env -S python3
header ELF 64-bit
TABLE
}
