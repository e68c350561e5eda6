#!/usr/bin/env bats
# make install: what goes where.

setup_file() {
    cd "$BATS_TEST_DIRNAME/.." || return
    export DEST=$BATS_FILE_TMPDIR/root
    export BUILD=$BATS_FILE_TMPDIR/build
    make -s -j"$(nproc)" B="$BUILD" PREFIX=/usr DESTDIR="$DEST" install >"$BATS_FILE_TMPDIR/log" 2>&1 || {
        cat "$BATS_FILE_TMPDIR/log"
        return 1
    }
}

setup() { cd "$BATS_TEST_DIRNAME/.." || return; }

@test "install puts the library, the command and its data under PREFIX, and nothing else" {
    run bash -c 'cd "$DEST" && find . ! -type d | sort'
    echo "$output"
    [ "$output" = "./usr/bin/rdgate
./usr/lib/librdgate.so
./usr/share/rdgate/rdgate.grafana.json
./usr/share/rdgate/rdgate.rules.yml" ]
}

@test "the library is readable, the command executable" {
    [ "$(stat -c %a "$DEST/usr/lib/librdgate.so")" = 644 ]
    [ "$(stat -c %a "$DEST/usr/bin/rdgate")" = 755 ]
}

@test "LIBDIR, BINDIR and DATADIR may be elsewhere" {
    dest=$BATS_TEST_TMPDIR/elsewhere
    make -s B="$BUILD" DESTDIR="$dest" LIBDIR=/opt/l BINDIR=/opt/b DATADIR=/opt/d install
    run bash -c "cd '$dest' && find . ! -type d | sort"
    echo "$output"
    [ "$output" = "./opt/b/rdgate
./opt/d/rdgate.grafana.json
./opt/d/rdgate.rules.yml
./opt/l/librdgate.so" ]
}

@test "installing again replaces the file: a program that runs keeps the old one" {
    before=$(stat -c %i "$DEST/usr/lib/librdgate.so")
    exec 4<"$DEST/usr/lib/librdgate.so"
    make -s B="$BUILD" PREFIX=/usr DESTDIR="$DEST" install
    [ "$(stat -c %i "$DEST/usr/lib/librdgate.so")" != "$before" ]
    [ "$(stat -L -c %i "/proc/self/fd/4")" = "$before" ] || [ "$(stat -L -c %i "/dev/fd/4")" = "$before" ]
    exec 4<&-
    [ "$(find "$DEST" ! -type d | wc -l)" -eq 4 ]
}

@test "the installed command finds the library that was installed with it" {
    run "$DEST/usr/bin/rdgate" run -n -- true
    echo "$output"
    [ "$status" -eq 0 ]
    grep -qF "LD_PRELOAD=$(realpath "$DEST")/usr/lib/librdgate.so" <<<"$output"
}
