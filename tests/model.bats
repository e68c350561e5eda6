#!/usr/bin/env bats
# The protocol of the gate as a model (tests/model/*.pml), looked through to its end by spin; and that it would see if
# something was wrong: each of its mutants is caught.

MODEL=$BATS_TEST_DIRNAME/model

# looked NAME DEFINES...: errors in ERRORS, what went wrong in WHAT
looked() {
    local at=$BATS_TEST_TMPDIR/look
    mkdir -p "$at"
    (
        cd "$at"
        cp "$MODEL/$1.pml" .
        spin "${@:2}" -a "$1.pml" >said 2>&1 && cc -O1 -DSAFETY -DCOLLAPSE -w -o pan pan.c || { cat said; exit 1; }
        timeout 100 ./pan -m100000 >said 2>&1 || true
    ) || return 1
    ERRORS=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' "$at/said")
    WHAT=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' "$at/said")
    ! grep -E 'out of memory|max search depth|truncated' "$at/said" || return 1
    echo "# $*: $(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' "$at/said") states${WHAT:+, $WHAT}" >&3
}

verified() {
    looked "$@"
    [ "$ERRORS" = 0 ] || { echo "$WHAT"; return 1; }
}

caught() { # NAME MUTANTS DEFINES...
    local mutant
    for mutant in $2; do
        looked "$1" "${@:3}" -DMUTANT="$mutant"
        [ "$ERRORS" = 1 ] || { echo "mutant $mutant of $1 was not caught"; return 1; }
    done
}

@test "the word: two or three visits are alone in librdkafka or lend, and nobody sleeps for ever" {
    verified word -DN=3 -DROUNDS=1
    verified word -DN=2 -DROUNDS=3
}

@test "the gate: polls, calls, a close that is answered, a destroy and guards all end, and the application sees no yield" {
    verified gate
}

@test "the gate: a poll that an event has asked for gets every message" {
    verified gate -DEVENTS
}

@test "each mutant of the word is caught" {
    caught word "1 2 3 4 5 6" -DN=2 -DROUNDS=2
}

@test "each mutant of the gate is caught" {
    caught gate "1 2 3 4 5 6 8 9 10"
    caught gate 7 -DEVENTS
}

@test "what the models say they stand for is there" {
    local names
    names=$(cat "$MODEL"/*.pml | sed -n '/^ \*   here /,/^ \*$/p' | grep -v '  here  ' | awk -F'   *' '{ print $3 }' |
        tr -s ', ' '\n' | sort -u)
    [ "$(wc -l <<<"$names")" -gt 15 ]
    while read -r name; do
        grep -qE "^[a-z].*\b$name\(" "$BATS_TEST_DIRNAME/../shim/gate.c" || { echo "gate.c has no $name"; return 1; }
    done <<<"$names"
}
