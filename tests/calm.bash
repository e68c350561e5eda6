# calm.bash: run a calm program without and with the shim, on every librdkafka, and judge its key=value lines.
# A test loops over RUNS: for run in "${RUNS[@]}"; do calm "$run" PROGRAM ARGS; is KEY VALUE; done
ROOT=${ROOT:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}
GATE_SO=${GATE_SO:-$ROOT/build/librdgate.so}
CALM=$ROOT/build/calm

# Library directories from GATE_TEST_LIBS, colon-separated; an empty element is the system's librdkafka.
_calm_runs() {
    local libs=${GATE_TEST_LIBS-} kind dir
    RUNS=()
    libs+=:
    while [[ $libs ]]; do
        dir=${libs%%:*}
        libs=${libs#*:}
        # CALM_ONLY=without judges the programs themselves, before there is a shim
        for kind in ${CALM_ONLY:-without with}; do RUNS+=("$kind@$dir"); done
    done
}
_calm_runs

# env words for one run
_calm_env() {
    CALM_ENV=(env -u LD_PRELOAD)
    [[ ${1#*@} ]] && CALM_ENV+=("LD_LIBRARY_PATH=${1#*@}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
    if [[ $1 == with@* ]]; then
        [[ -e $GATE_SO ]] || { echo "no shim: $GATE_SO"; return 1; }
        CALM_ENV+=("LD_PRELOAD=$GATE_SO")
    fi
    CALM_ENV+=("${CALM_SET[@]}")
}

# what the runs without the shim gave
declare -gA CALM_CODE=() CALM_OUT=() CALM_ERR=()
# more environment for the program, as NAME=value; a command that starts it
CALM_SET=() CALM_AS=()

# calm RUN PROGRAM ARGS...: stdout in OUT, stderr in ERR. A program with a slash is not one of ours.
calm() {
    calm_code "$@"
    (( CODE == 0 )) || _calm_no "exit code $CODE"
}

# The same for a program that may fail: exit code in CODE.
calm_code() {
    local run=$1 program=$2
    shift
    RUN=$run CMD="$*" CODE=0
    [[ $program == */* ]] || program=$CALM/$program
    _calm_env "$run"
    OUT=$(timeout -k 5 "${CALM_TIMEOUT:-90}" "${CALM_AS[@]}" "${CALM_ENV[@]}" "$program" "${@:2}" \
        2>"$BATS_TEST_TMPDIR/err") || CODE=$?
    ERR=$(<"$BATS_TEST_TMPDIR/err")
    if [[ $run == without@* ]]; then
        local key="${run#*@} $CMD"
        CALM_CODE[$key]=$CODE CALM_OUT[$key]=$OUT CALM_ERR[$key]=$ERR
    fi
}

# calm_begin RUN PROGRAM ARGS... in setup_file starts it in the background; calm_end with the same words waits
# for it and judges it as calm does. For programs that take long because time has to pass.
calm_begin() {
    local file
    file=$(_calm_file "$@")
    _calm_env "$1" || return
    (
        rc=0
        timeout -k 5 "${CALM_TIMEOUT:-120}" "${CALM_ENV[@]}" "$CALM/$2" "${@:3}" >"$file.out" 2>"$file.err" || rc=$?
        echo $rc >"$file.tmp" && mv "$file.tmp" "$file.rc"
    ) </dev/null 3>&- &
}
calm_end() {
    local file deadline=$((SECONDS + 150))
    RUN=$1 CMD="${*:2}"
    file=$(_calm_file "$@")
    until [[ -e $file.rc ]]; do
        (( SECONDS < deadline )) || _calm_no "has not ended"
        sleep 0.1
    done
    OUT=$(<"$file.out") ERR=$(<"$file.err")
    (( $(<"$file.rc") == 0 )) || _calm_no "exit code $(<"$file.rc")"
}
_calm_file() { local words="$*"; echo "$BATS_FILE_TMPDIR/${words//[^a-zA-Z0-9.@_-]/_}"; }

_calm_no() {
    printf '%s\n' "$RUN: $CMD: $*" "--- stdout" "$OUT" "--- stderr" "$ERR"
    return 1
}

value() { sed -n "s/^$1=//p" <<<"$OUT"; }

# is KEY VALUE
is() {
    [[ $(value "$1") == "$2" ]] || _calm_no "$1 is '$(value "$1")', not '$2'"
}

# is_lines KEY VALUE N: there are N such lines, all with that value
is_lines() {
    local v n=0
    while read -r v; do
        [[ $v == "$2" ]] || _calm_no "$1 is '$v', not '$2'"
        n=$((n + 1))
    done < <(value "$1")
    (( n == $3 )) || _calm_no "$1 is there $n times, not $3"
}

# is_code N: the exit code, after calm_code
is_code() {
    (( CODE == $1 )) || _calm_no "exit code $CODE, not $1"
}

# at_least KEY N, at_most KEY N
at_least() {
    local v
    v=$(value "$1")
    [[ $v =~ ^-?[0-9]+$ && $v -ge $2 ]] || _calm_no "$1 is '$v', less than $2"
}
at_most() {
    local v
    v=$(value "$1")
    [[ $v =~ ^-?[0-9]+$ && $v -le $2 ]] || _calm_no "$1 is '$v', more than $2"
}

# Nothing was said on stderr: a calm program gives the shim no reason to speak.
quiet() {
    [[ -z $ERR ]] || _calm_no "stderr is not empty"
}

# Exit code and stdout are those of the run without the shim before; nothing about stderr.
same() {
    local key="${RUN#*@} $CMD"
    [[ $CODE == "${CALM_CODE[$key]-}" ]] || _calm_no "exit code $CODE, without the shim ${CALM_CODE[$key]-none}"
    [[ $OUT == "${CALM_OUT[$key]-}" ]] ||
        _calm_no "stdout differs from the run without the shim: $(diff <(echo "${CALM_OUT[$key]-}") <(echo "$OUT"))"
}

same_stderr() {
    [[ $ERR == "${CALM_ERR["${RUN#*@} $CMD"]-}" ]] || _calm_no "stderr differs from the run without the shim"
}

# Is this the run with the shim?
shimmed() { [[ $RUN == with@* ]]; }
