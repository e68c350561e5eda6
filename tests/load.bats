#!/usr/bin/env bats
# However librdkafka comes into the process, it works as before, and what the loader says is what it said.
load calm

# Files of the librdkafka that each element of GATE_TEST_LIBS stands for
library() {
    local dir=${1#*@}
    if [[ $dir ]]; then
        echo "$dir/librdkafka.so.1"
    else
        ldconfig -p | sed -n 's/.*librdkafka\.so\.1 .*=> //p' | head -n 1
    fi
}

@test "a plugin linked with librdkafka consumes, however it is opened, and again after dlclose" {
    for run in "${RUNS[@]}"; do
        for flags in now lazy,global now,local,deepbind lazy,global,deepbind now,deepbind,nodelete; do
            calm "$run" loader open $flags "$CALM/lib/consume.so" run
            is_lines run 3 2; is_lines close NO_ERROR 2; is_lines dlclose 0 2
            quiet
        done
    done
}

@test "a plugin without librdkafka gets with RTLD_DEEPBIND its own functions, and without it the program's" {
    for run in "${RUNS[@]}"; do
        calm "$run" loader open now "$CALM/lib/own.so" run; is_lines whose program 2; same; quiet
        calm "$run" loader open now,deepbind "$CALM/lib/own.so" run; is_lines whose plugin 2; same; quiet
        calm "$run" loader open lazy,global,deepbind "$CALM/lib/own.so" run; is_lines whose plugin 2; same; quiet
    done
}

@test "a plugin is found by a relative path after chdir" {
    mkdir -p "$BATS_TEST_TMPDIR/far/away"
    cp "$CALM/lib/consume.so" "$BATS_TEST_TMPDIR/far/away/plugin.so"
    for run in "${RUNS[@]}"; do
        calm "$run" loader open now ./away/plugin.so run "$BATS_TEST_TMPDIR/far"; is_lines run 3 2; quiet
        calm "$run" loader open now,deepbind ./away/plugin.so run "$BATS_TEST_TMPDIR/far"; is_lines run 3 2; quiet
        calm "$run" loader open now plugin.so run "$BATS_TEST_TMPDIR/far/away"; same; quiet
    done
}

@test "a plugin finds its sibling through its own RUNPATH and its own origin" {
    mkdir -p "$BATS_TEST_TMPDIR/plugins/deep"
    cp "$CALM/lib/outer.so" "$BATS_TEST_TMPDIR/plugins"
    cp "$CALM/lib/sibling.so" "$BATS_TEST_TMPDIR/plugins/deep"
    for run in "${RUNS[@]}"; do
        for flags in now lazy,global,deepbind; do
            calm "$run" loader open $flags "$BATS_TEST_TMPDIR/plugins/outer.so" run
            is_lines "by name" 42 2; is_lines "by name, deepbind" 42 2
            is_lines "by origin" 42 2; is_lines "by origin, deepbind" 42 2
            is_lines run 0 2
            same; quiet
        done
    done
}

@test "dlerror says of missing things what it says without the shim" {
    for run in "${RUNS[@]}"; do
        calm "$run" loader errors libm.so.6
        same; quiet
    done
}

@test "a program that asks whether librdkafka is there is told the truth" {
    for run in "${RUNS[@]}"; do
        calm "$run" loader probe
        [[ $OUT != *found* ]] || _calm_no "found what is not there"
        same; quiet
    done
}

@test "a function of librdkafka has one address" {
    for run in "${RUNS[@]}"; do
        calm "$run" loader stable "$(library "$run")"
        is missing 0; is changes 0
        same; quiet
    done
}

@test "two librdkafka in one process keep to themselves" {
    local other first
    for run in "${RUNS[@]}"; do
        for other in "${RUNS[@]}"; do
            [[ ${other#*@} != "${run#*@}" ]] || continue
            first=$(library "$run") other=$(library "$other")
            [[ $first && $other ]] || skip "two versions are needed, see GATE_TEST_LIBS"
            calm "${run%%@*}@" twolibs "$first" "$other"
            [[ $(value a_version) != "$(value b_version)" ]] || _calm_no "the versions are the same"
            is a_last_error _TIMED_OUT; is b_last_error NO_ERROR
            is inside 1; is b_inside 1; is a_messages 2; is b_messages $'4\n5'
            is a_close NO_ERROR; is b_close NO_ERROR; is a_closed 1; is b_closed 0
            is a_dlclose 0; is b_dlclose 0
            same; quiet
            COUNT=$((${COUNT:-0} + 1))
        done
    done
    (( ${COUNT:-0} > 0 )) || skip "two versions are needed, see GATE_TEST_LIBS"
}

@test "functions newer than the build's header work where the library has them, and are missing where it has not" {
    for run in "${RUNS[@]}"; do
        calm "$run" newer; is rd_kafka_consumer_poll there; is rd_kafka_nonsense missing; same; quiet
    done
}
