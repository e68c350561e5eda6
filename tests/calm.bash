# calm.bash: run a calm program without and with the shim, on every librdkafka, and judge its key=value lines.
# A test loops over RUNS: for run in "${RUNS[@]}"; do calm "$run" PROGRAM ARGS; is KEY VALUE; done
ROOT=${ROOT:-$(cd "$BATS_TEST_DIRNAME/.." && pwd)}
RDGATE_SO=${RDGATE_SO:-$ROOT/build/librdgate.so}
CALM=$ROOT/build/calm

# Library directories from RDGATE_TEST_LIBS, colon-separated; an empty element is the system's librdkafka.
_calm_runs() {
    local libs=${RDGATE_TEST_LIBS-} kind dir
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
    local name
    CALM_ENV=(env -u LD_PRELOAD)
    # the tests' own settings are not options of the shim
    for name in "${!RDGATE_@}"; do CALM_ENV+=(-u "$name"); done
    [[ ${1#*@} ]] && CALM_ENV+=("LD_LIBRARY_PATH=${1#*@}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
    if [[ $1 == with@* ]]; then
        [[ -e $RDGATE_SO ]] || { echo "no shim: $RDGATE_SO"; return 1; }
        CALM_ENV+=("LD_PRELOAD=$RDGATE_SO")
    fi
}

declare -gA CALM_WITHOUT=()

# calm RUN PROGRAM ARGS...: stdout in OUT, stderr in ERR
calm() {
    local run=$1 rc=0
    shift
    RUN=$run CMD="$*"
    _calm_env "$run"
    OUT=$(timeout -k 5 "${CALM_TIMEOUT:-90}" "${CALM_ENV[@]}" "$CALM/$1" "${@:2}" 2>"$BATS_TEST_TMPDIR/err") || rc=$?
    ERR=$(<"$BATS_TEST_TMPDIR/err")
    [[ $run == with@* ]] || CALM_WITHOUT["${run#*@} $CMD"]=$OUT
    (( rc == 0 )) || _calm_no "exit code $rc"
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

# at_least KEY N, at_most KEY N
at_least() {
    local v
    v=$(value "$1")
    [[ $v =~ ^-?[0-9]+$ ]] && (( v >= $2 )) || _calm_no "$1 is '$v', less than $2"
}
at_most() {
    local v
    v=$(value "$1")
    [[ $v =~ ^-?[0-9]+$ ]] && (( v <= $2 )) || _calm_no "$1 is '$v', more than $2"
}

# Nothing was said on stderr: a calm program gives the shim no reason to speak.
quiet() {
    [[ -z $ERR ]] || _calm_no "stderr is not empty"
}

# The whole output is the same as that of the run without the shim just before.
same() {
    local before=${CALM_WITHOUT["${RUN#*@} $CMD"]-}
    [[ $OUT && $OUT == "$before" ]] ||
        _calm_no "differs from the run without the shim: $(diff <(echo "$before") <(echo "$OUT"))"
}

# Is this the run with the shim?
shimmed() { [[ $RUN == with@* ]]; }
