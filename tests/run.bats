#!/usr/bin/env bats
# rdgate run: starts a program under the shim.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/.." || return
    export -n GATE_SO GATE_TEST_LIBS GATE_HALF # ours, not the shim's
    unset LD_PRELOAD "${!RDGATE_@}"
    rdgate=$PWD/build/rdgate
    so=$(realpath build/librdgate.so)
    [ -x "$rdgate" ] || { echo "there is no $rdgate: make first"; return 1; }
    # something harmless to be preloaded already
    other=$(ldd /bin/sh | sed -n 's/.*=> \(.*libc\.so[^ ]*\) .*/\1/p')
}

show() { # VARIABLE [OPTION...]: what a program sees in it
    "$rdgate" run "${@:2}" -- sh -c "echo \"\$$1\""
}

options() { # NAME VALUE of every option, with a value that is valid and not the default
    sed -n -E -e 's/^CHOICE\(([A-Z_]+), [a-z_]+, "[^"]*", "[^"]* ([a-z:N]+)".*/\1 \2/p' \
        -e 's/^NUMBER\(([A-Z_]+), [a-z_]+, ([0-9]+), ([0-9]+), ([0-9]+).*/\1 \2 \3/p' \
        -e 's/^TEXT\(([A-Z_]+),.*/\1 \/tmp\/x.%p/p' shim/options.def |
        awk 'NF == 3 {print $1, ($2 == $3 ? $3 + 1 : $3); next} {sub(/:N$/, ":7"); print}'
}

@test "the program runs with the shim's absolute path in LD_PRELOAD" {
    run show LD_PRELOAD
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = "$so" ]
}

@test "the shim is found from any directory, and through a symbolic link to the command" {
    ln -s "$rdgate" "$BATS_TEST_TMPDIR/rdgate"
    cd /
    PATH=$BATS_TEST_TMPDIR:$PATH run rdgate run -- sh -c 'echo "$LD_PRELOAD"'
    echo "$output"
    [ "$output" = "$so" ]
}

@test "what was preloaded already stays, before the shim" {
    LD_PRELOAD=$other run show LD_PRELOAD
    echo "$output"
    [ "$output" = "$other:$so" ] || [ "$output" = "$other $so" ]
}

@test "the shim is never there twice" {
    LD_PRELOAD=$so run show LD_PRELOAD
    echo "$output"
    [ "$output" = "$so" ]
    LD_PRELOAD="$so:$other" run show LD_PRELOAD
    echo "$output"
    [ "$(grep -o librdgate.so <<<"$output" | wc -l)" -eq 1 ]
    grep -qF "$other" <<<"$output"
}

@test "every option of options.def has its long name" {
    options >"$BATS_TEST_TMPDIR/options"
    cat "$BATS_TEST_TMPDIR/options"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/options")" -eq "$(grep -cE '^(CHOICE|NUMBER|TEXT)\(' shim/options.def)" ]
    while read -r name value; do
        long=$(tr 'A-Z_' 'a-z-' <<<"$name")
        run show "RDGATE_$name" "--$long=$value"
        echo "--$long=$value: $output"
        [ "$status" -eq 0 ]
        [ "$output" = "$value" ]
    done <"$BATS_TEST_TMPDIR/options"
}

@test "several options at once; an option wins over the environment" {
    RDGATE_MODE=lifetime run "$rdgate" run --mode=observe --max-wait-ms=5 -- \
        sh -c 'echo "$RDGATE_MODE $RDGATE_MAX_WAIT_MS"'
    echo "$output"
    [ "$output" = "observe 5" ]
}

@test "without an option the environment stays as it is" {
    RDGATE_MODE=lifetime run show RDGATE_MODE
    [ "$output" = lifetime ]
    run "$rdgate" run -- sh -c 'env | grep -c ^RDGATE_ || true'
    [ "$output" = 0 ]
}

@test "the program's own arguments are left alone" {
    run "$rdgate" run -- printf '<%s>' a 'b c' '' --mode=x -n
    echo "$output"
    [ "$output" = '<a><b c><><--mode=x><-n>' ]
}

@test "standard input and both outputs are the program's" {
    run bash -c "echo hello | '$rdgate' run -- sh -c 'cat; echo oops >&2' 2>'$BATS_TEST_TMPDIR/err'"
    [ "$output" = hello ]
    [ "$(cat "$BATS_TEST_TMPDIR/err")" = oops ]
}

@test "it ends as the program does: status, signal, and the same process" {
    run "$rdgate" run -- sh -c 'exit 42'
    [ "$status" -eq 42 ]
    run "$rdgate" run -- sh -c 'kill -KILL $$'
    [ "$status" -eq 137 ]
    "$rdgate" run -- sh -c 'echo $$ >"$0"' "$BATS_TEST_TMPDIR/pid" &
    pid=$!
    wait "$pid"
    [ "$(cat "$BATS_TEST_TMPDIR/pid")" -eq "$pid" ]
}

@test "a program that does not exist: 127 and a line that names it" {
    run -127 "$rdgate" run -- no-such-program-anywhere
    echo "$output"
    [ "${#lines[@]}" -eq 1 ]
    grep -q 'no-such-program-anywhere' <<<"$output"
}

@test "a program that cannot be executed: 126 and a line that names it" {
    echo x >"$BATS_TEST_TMPDIR/plain"
    run "$rdgate" run -- "$BATS_TEST_TMPDIR/plain"
    echo "$output"
    [ "$status" -eq 126 ]
    [ "${#lines[@]}" -eq 1 ]
    grep -qF "$BATS_TEST_TMPDIR/plain" <<<"$output"
}

@test "an unknown option: 2, and the nearest valid one is named" {
    run "$rdgate" run --mod=observe -- true
    echo "$output"
    [ "$status" -eq 2 ]
    grep -q -e '--mod\b' <<<"$output"
    grep -q -e '--mode\b' <<<"$output"
    run "$rdgate" run --max-wait=5 -- true
    echo "$output"
    [ "$status" -eq 2 ]
    grep -q -e '--max-wait-ms' <<<"$output"
}

@test "a bad value: 2, nothing is started, and the valid values are named" {
    run "$rdgate" run --mode=banana -- touch "$BATS_TEST_TMPDIR/started"
    echo "$output"
    [ "$status" -eq 2 ]
    grep -q banana <<<"$output"
    for mode in serialize lifetime refuse observe off; do grep -q "$mode" <<<"$output"; done
    [ ! -e "$BATS_TEST_TMPDIR/started" ]
}

@test "no program: 2 and how it is used" {
    run "$rdgate" run
    echo "$output"
    [ "$status" -eq 2 ]
    grep -q 'rdgate run' <<<"$output"
    run "$rdgate" run --
    [ "$status" -eq 2 ]
}

@test "-n prints what it would do, and does nothing" {
    run "$rdgate" run -n --mode=observe -- touch "$BATS_TEST_TMPDIR/touched"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -qF "LD_PRELOAD=$so" <<<"$output"
    grep -qF "RDGATE_MODE=observe" <<<"$output"
    grep -qF "touch $BATS_TEST_TMPDIR/touched" <<<"$output"
    [ ! -e "$BATS_TEST_TMPDIR/touched" ]
}

@test "what -n prints can be given to a shell" {
    line=$("$rdgate" run -n --log='/tmp/a b' -- sh -c 'printf "<%s>" "$RDGATE_LOG" "$LD_PRELOAD" "$@"' sh "it's" 'c  d')
    echo "$line"
    run sh -c "$line"
    echo "$output"
    [ "$output" = "</tmp/a b><$so><it's><c  d>" ]
}

@test "without its library: 125, and a line that says where it looked" {
    [ ! -e /usr/local/lib/librdgate.so ] || skip "one is installed in /usr/local/lib"
    mkdir -p "$BATS_TEST_TMPDIR/bin"
    cp "$rdgate" "$BATS_TEST_TMPDIR/bin/rdgate"
    run "$BATS_TEST_TMPDIR/bin/rdgate" run -- touch "$BATS_TEST_TMPDIR/started"
    echo "$output"
    [ "$status" -eq 125 ]
    [ "${#lines[@]}" -eq 1 ]
    grep -q 'librdgate.so' <<<"$output"
    grep -q '/usr/local/lib' <<<"$output"
    [ ! -e "$BATS_TEST_TMPDIR/started" ]
}

@test "a librdgate.so in the current directory is never taken" {
    [ ! -e /usr/local/lib/librdgate.so ] || skip "one is installed in /usr/local/lib"
    mkdir -p "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/evil"
    cp "$rdgate" "$BATS_TEST_TMPDIR/bin/rdgate"
    cp "$so" "$BATS_TEST_TMPDIR/evil/librdgate.so"
    cd "$BATS_TEST_TMPDIR/evil"
    run "$BATS_TEST_TMPDIR/bin/rdgate" run -- true
    [ "$status" -eq 125 ]
}
