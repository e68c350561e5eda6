#!/usr/bin/env bats
# What librdgate.so shows to the loader: its exports, what it needs, and the flags it depends on.

setup() {
    cd "$BATS_TEST_DIRNAME/.." || return
    so=${GATE_SO:-build/librdgate.so}
    [ -e "$so" ] || { echo "there is no $so: make first"; return 1; }
}

@test "it exports the names of the table, dlsym, dlopen and pthread_cancel, nothing else" {
    {
        sed -n 's/^CALL([a-z]*, [^,]*, \(rd_kafka_[A-Za-z0-9_]*\),.*/\1/p' shim/calls.def
        printf '%s\n' dlsym dlopen pthread_cancel
    } | sort >"$BATS_TEST_TMPDIR/wanted"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/wanted")" -gt 100 ]
    nm -D --defined-only "$so" | awk '{print $3}' | sort >"$BATS_TEST_TMPDIR/found"
    diff "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/found"
}

@test "its exports have no version: with one, glibc would not take our dlsym for its own" {
    run readelf -V --wide "$so"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -q 'Version needs section' <<<"$output"
    [ "$(grep -c 'Version definition section' <<<"$output")" -eq 0 ]
    [ "$(nm -D --defined-only --with-symbol-versions "$so" | grep -c @)" -eq 0 ]
}

@test "it needs libc alone, and no librdkafka" {
    run readelf -d --wide "$so"
    echo "$output"
    [ "$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$output")" = libc.so.6 ]
    [ "$(grep -cE 'RPATH|RUNPATH|TEXTREL' <<<"$output")" -eq 0 ]
    grep -q 'soname: \[librdgate.so\]' <<<"$output"
}

@test "it asks for no rd_kafka function: those it finds at run time, in the application's copy" {
    run nm -D --undefined-only "$so"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'rd_kafka' <<<"$output")" -eq 0 ]
}

@test "it is bound at once, stays loaded, and its thread record needs no allocation" {
    run readelf -d --wide "$so"
    echo "$output"
    grep -qE 'FLAGS_1.*NOW' <<<"$output"
    grep -qE 'FLAGS_1.*NODELETE' <<<"$output"
    grep -qE '\(FLAGS\).*BIND_NOW' <<<"$output"
    grep -qE '\(FLAGS\).*STATIC_TLS' <<<"$output"
}

@test "it asks for no executable stack and for no page that is writable and executable" {
    run readelf -l --wide "$so"
    echo "$output"
    grep -qE 'GNU_STACK.* RW ' <<<"$output"
    grep -q GNU_RELRO <<<"$output"
    [ "$(grep -cE ' RWE ' <<<"$output")" -eq 0 ]
}

@test "the oldest glibc that can load it is known" {
    highest=$(nm -D --undefined-only --with-symbol-versions "$so" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    echo "# needs $highest" >&3
    [ -n "$highest" ]
}
