# Bindings from their registries, in build/bindings; tests/bindings/fetch puts them there. Load it after clients.bash.

# Where a registry cannot be reached, the tests of a binding are skipped, and say why. When it was never tried, or
# did not build, they fail.
binding_or_skip() { # NAME
    PARTS=$ROOT/build/bindings/$1
    HERE=$ROOT/tests/bindings/$1
    [ ! -e "$PARTS/absent" ] || skip "$1: $(cat "$PARTS/absent")"
    [ -e "$PARTS/stamp" ] || { echo "no $1: run tests/bindings/fetch $1" >&2; return 1; }
}

# The well-behaved service: the same lines, LINES of them, through the gate, and nothing found.
serves() { # NAME LINES
    same "$1" "$2"
    was_gated "$1"
    ! grep 'finding: ' "$BATS_TEST_TMPDIR/$1.gated.err" >&2
}

# Which librdkafka the shim says it covers: a test names the file it expects.
covered() { # NAME PATTERN
    grep -qE "^rdgate: \[[0-9]+\] librdkafka [0-9.]+ in .*$2" "$BATS_TEST_TMPDIR/$1.gated.err" ||
        { told "$1" gated >&2; return 1; }
}

# Hung, crashed or said so: anything but an orderly end. (A line that begins with ! fails no test.)
went_wrong() { # NAME HALF
    [ "$(cat "$BATS_TEST_TMPDIR/$1.$2.status")" != 0 ] || { told "$1" "$2" >&2; return 1; }
}

# What of this Debian was unpacked for a test (tests/bindings/fetch).
unpacked() { # PACKAGE
    local deb
    deb=$(cd "$PARTS" && echo "$1"_*.deb)
    deb=${deb#*_}
    deb=${deb#*%3a}
    # shellcheck disable=SC1091
    echo "$1 ${deb%%-*} from $(. /etc/os-release && echo "${ID^} $VERSION_ID")"
}
