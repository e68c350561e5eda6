#!/usr/bin/env bats
# A program without librdkafka is left alone: same output, same exit code, no word, no thread, no file.
load calm

# The library makes no difference here: one run without and one with.
setup() {
    read -ra RUNS <<<"${CALM_ONLY:-without with}"
    RUNS=("${RUNS[@]/%/@}")
}

@test "true, false, ls and cat say and do what they always do" {
    for run in "${RUNS[@]}"; do
        calm_code "$run" /bin/true; is_code 0; same; same_stderr; quiet
        calm_code "$run" /bin/false; is_code 1; same; same_stderr; quiet
        calm_code "$run" /bin/ls -l "$ROOT/tests/calm"; is_code 0; same; same_stderr; quiet
        calm_code "$run" /bin/ls /nonesuch; is_code 2; same; same_stderr
        calm_code "$run" /bin/cat "$ROOT/Makefile"; is_code 0; same; same_stderr; quiet
        calm_code "$run" /bin/sh -c 'exit 9'; is_code 9; same; same_stderr; quiet
        calm_code "$run" /bin/sh -c 'kill -TERM $$'; is_code 143; same; same_stderr
    done
}

@test "a program without librdkafka gets no thread, no file and no signal handler" {
    for run in "${RUNS[@]}"; do
        calm_code "$run" alone argument 5
        is_code 5; is threads 1; is child_threads 1; is child 3; is handlers 0
        same; same_stderr; quiet
    done
}

@test "a program without librdkafka leaves nothing behind" {
    for run in "${RUNS[@]}"; do
        mkdir -p "$BATS_TEST_TMPDIR/$run"
        CALM_SET=("TMPDIR=$BATS_TEST_TMPDIR/$run" "XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR/$run" "RDGATE_FLIGHT=$BATS_TEST_TMPDIR/$run"
                  "RDGATE_LOG=$BATS_TEST_TMPDIR/$run/log-%p")
        calm "$run" alone
        [[ -z $(ls -A "$BATS_TEST_TMPDIR/$run") ]] || _calm_no "left: $(ls -A "$BATS_TEST_TMPDIR/$run")"
        quiet
    done
}

@test "bad options are no business of a program without librdkafka" {
    CALM_SET=(RDGATE_MODE=nonsense RDGATE_STUCK_MS=-x RDGATE_LOG=/nonesuch/dir/file RDGATE_NONESUCH=1 RDGATE_FLIGHT=/nonesuch
              RDGATE_VERBOSE=1)
    for run in "${RUNS[@]}"; do
        calm "$run" alone; same; same_stderr; quiet
        calm "$run" /bin/true; same; same_stderr; quiet
    done
}

@test "a static program runs as ever" {
    for run in "${RUNS[@]}"; do
        calm_code "$run" static
        is_code 7; is hello static; same; same_stderr; quiet
    done
}

@test "a program that runs with more rights than its user is left alone" {
    (( EUID == 0 )) || skip "needs root, to give rights"
    command -v setpriv >/dev/null || skip "needs setpriv"
    local dir
    dir=$(mktemp -d /tmp/rdgate-secure-XXXXXX)
    chmod 755 "$dir"
    cp "$CALM/alone" "$dir/alone"
    chmod 4755 "$dir/alone"
    # where everybody may read it: the loader must have the choice
    [[ ! -e $GATE_SO ]] || { cp "$GATE_SO" "$dir/librdgate.so"; GATE_SO=$dir/librdgate.so; }
    # env sets LD_PRELOAD after setpriv, for the program alone
    CALM_SET=(RDGATE_VERBOSE=1) CALM_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    for run in "${RUNS[@]}"; do
        calm_code "$run" "$dir/alone" x 6
        if [[ $(value secure) != 1 ]]; then
            rm -rf "$dir"
            skip "rights are not given here: $dir is mounted nosuid"
        fi
        is_code 6; is threads 1
        same; same_stderr; quiet
    done
    rm -rf "$dir"
}
