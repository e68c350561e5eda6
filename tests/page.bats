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

@test "the pictures of the README can be made anew, and are small" {
    "$ROOT/scripts/pictures" "$BATS_TEST_TMPDIR/pictures"
    python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$BATS_TEST_TMPDIR/pictures/top.svg"
    grep -q 'IN A DEADLOCK' "$BATS_TEST_TMPDIR/pictures/top.svg"
    [ "$(head -c 8 "$BATS_TEST_TMPDIR/pictures/trace.png" | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ]
    for picture in "$BATS_TEST_TMPDIR"/pictures/* "$ROOT"/shim/man/pictures/*; do
        [ "$(stat -c %s "$picture")" -lt 100000 ]
    done
}
