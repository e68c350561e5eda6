#!/usr/bin/env bats
# The page of rdgate trace --html, in a headless Chromium.

load helper

setup() {
    command -v chromium >/dev/null || skip "no chromium (scripts/setup installs it)"
    export RDGATE_FLIGHT=$BATS_TEST_TMPDIR
    FILE=$("$ROOT/build/scenes/scene" "$BATS_TEST_TMPDIR" trouble)
    PAGE=$BATS_TEST_TMPDIR/trace.html
    "$ROOT/build/rdgate" trace --html -o "$PAGE" "$FILE"
}

page() {
    python3 "$ROOT/tests/browser/page.py" "$1" "${2:-$PAGE}" "$BATS_TEST_TMPDIR"
}

@test "the page shows every kind of bar, opens them, and obeys keys and wheel" {
    page desk
}

@test "the page shows names as they are and takes none of them for markup" {
    page words
}

@test "the page fits a phone of 390 x 844: readable, fingers open, move and zoom" {
    page phone
}

@test "the page is dark where that is wanted, and light elsewhere" {
    page dark
}

@test "100000 spans are drawn in as many boxes as there is room for" {
    page many "$ROOT/shim/cli/trace.html"
}
