# Helpers of clients.bats: a cluster of its own, and every client in two halves, without the shim and with it.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
GATE_SO=${GATE_SO:-$ROOT/build/librdgate.so}
# shellcheck disable=SC2034 # for clients.bats
HERE=$ROOT/tests/clients
BUILD=$ROOT/build/clients

# A cluster in a process of its own, dead by itself after ten minutes whatever becomes of us.
cluster_up() { # TOPIC PARTITIONS MESSAGES ...
    local line
    coproc CLUSTER { exec timeout 600 "$BUILD/mockcluster" "$@" 2>&1 3>&-; }
    while read -r -t 30 line <&"${CLUSTER[0]}"; do
        case $line in bootstrap=*) break ;; esac
    done
    [ "${line%%=*}" = bootstrap ] || { echo "mockcluster did not start: $line" >&2; return 1; }
    export BOOTSTRAP=${line#bootstrap=} CLUSTER_PROCESS=$CLUSTER_PID
}

cluster_down() {
    [ -z "${CLUSTER_PROCESS:-}" ] || kill "$CLUSTER_PROCESS"
}

# half NAME HALF SECONDS COMMAND...: leaves NAME.HALF.{out,err,status}; GROUP in the command becomes a consumer
# group of this half. The shim is in the client only, not in env or timeout. PRELOAD_FIRST and PRELOAD_LAST are
# preload libraries that both halves have.
half() {
    local name=$1 half=$2 seconds=$3 ours="" preload status=0
    shift 3
    [ "$half" = plain ] || ours=$GATE_SO
    preload=${PRELOAD_FIRST:+$PRELOAD_FIRST:}$ours${PRELOAD_LAST:+:$PRELOAD_LAST} # empty names are no matter to ld.so
    local at=$BATS_TEST_TMPDIR/$name.$half
    timeout -s KILL "$seconds" env -u GATE_SO ${preload:+LD_PRELOAD="$preload"} RDGATE_VERBOSE=1 "${@//GROUP/$name-$half}" \
        >"$at.out" 2>"$at.err" </dev/null 3>&- || status=$?
    echo "$status" >"$at.status"
}

# both NAME SECONDS COMMAND...: the two halves at the same time.
both() {
    local name=$1 seconds=$2
    shift 2
    [ -e "$GATE_SO" ] || { echo "no shim at $GATE_SO" >&2; return 1; }
    half "$name" plain "$seconds" "$@" 2>/dev/null &
    local plain=$!
    half "$name" gated "$seconds" "$@" 2>/dev/null &
    wait "$plain" $! # by name: the clock of BATS_TEST_TIMEOUT is a child too
}

told() { # NAME HALF: everything a half said, for the one who reads a failure
    local at=$BATS_TEST_TMPDIR/$1.$2
    echo "--- $1, $2: exit status $(cat "$at.status")"
    tail -n 40 "$at.err" "$at.out"
}

ended() { # NAME HALF STATUS
    [ "$(cat "$BATS_TEST_TMPDIR/$1.$2.status")" = "$3" ] || { told "$1" "$2" >&2; return 1; }
}

# Hung (killed by the time-out, 137) or crashed (killed by a signal): not an orderly end.
fell() { # NAME HALF
    [ "$(cat "$BATS_TEST_TMPDIR/$1.$2.status")" -gt 128 ] || { told "$1" "$2" >&2; return 1; }
}

# How many calls the process says went through the gate; 0 if it says nothing.
gated() { # NAME
    sed -n 's/^rdgate: \[[0-9]*\] exit: \([0-9]*\) calls gated.*/\1/p' "$BATS_TEST_TMPDIR/$1.gated.err" |
        awk '{ n += $1 } END { print n + 0 }'
}

was_gated() { # NAME
    [ "$(gated "$1")" -gt 0 ] || { told "$1" gated >&2; return 1; }
}

# Both halves ended well and printed the same lines, LINES of them at least, in whatever order.
same() { # NAME LINES
    local at=$BATS_TEST_TMPDIR/$1
    ended "$1" plain 0 && ended "$1" gated 0 || return 1
    sort "$at.plain.out" >"$at.plain" && sort "$at.gated.out" >"$at.gated"
    diff "$at.plain" "$at.gated" >&2 || return 1
    [ "$(wc -l <"$at.gated")" -ge "$2" ] || { told "$1" gated >&2; return 1; }
}

# No message came twice. Without the shim one may: librdkafka pauses beside a poll that has taken a message and
# not yet counted it.
once() { # NAME
    grep -q '^doubled: 0' "$BATS_TEST_TMPDIR/$1.gated.err" || { told "$1" gated >&2; return 1; }
}

said() { # NAME HALF LINE
    grep -qxF "$3" "$BATS_TEST_TMPDIR/$1.$2.out" || { told "$1" "$2" >&2; return 1; }
}

# The row of README's table about this binding, from what its gated half has said: which librdkafka, how covered.
# scripts/coverage-table puts the rows together.
row() { # NAME BINDING ARTEFACT
    local said version path how=linking
    said=$(sed -n 's/^rdgate: \[[0-9]*\] librdkafka //p' "$BATS_TEST_TMPDIR/$1.gated.err")
    read -r version path < <(sed -n 's/^\([0-9.]*\) in \(.*\), [0-9]* functions.*/\1 \2/p;T;q' <<<"$said")
    [ -n "$version" ] || { told "$1" gated >&2; return 1; }
    ! grep -q '^[0-9.]* is reached through dlsym$' <<<"$said" || how='`dlsym`'
    ! grep -q 'patched at their entries' <<<"$said" || how='entry patching, inside the program'
    [[ $path != *.node ]] || how+=', inside the addon'
    mkdir -p "$ROOT/build/covered"
    echo "| $2 | $3 | $version | $how |" >"$ROOT/build/covered/$(tr -c '[:alnum:].' _ <<<"$2, $3")"
}

# What of this Debian a client is.
debian() { # PACKAGE
    # shellcheck disable=SC1091
    echo "$1 $(dpkg-query -W -f '${Version}' "$1" | sed 's/^[0-9]*://; s/-.*//') from $(. /etc/os-release && echo "${ID^} $VERSION_ID")"
}
