# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# TAP for shell tests: source this, call is/ok/run, end with done_testing.
n=0
failed=0

ok () { # ok STATUS NAME
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        failed=$((failed + 1))
    fi
}

is () { # is GOT WANTED NAME
    [ "$1" = "$2" ]
    ok $? "$3"
    [ "$1" = "$2" ] || printf '# got:    %s\n# wanted: %s\n' "$1" "$2"
}

like () { # like TEXT PATTERN NAME
    printf '%s\n' "$1" | grep -qE -e "$2"
    ok $? "$3"
    printf '%s\n' "$1" | grep -qE -e "$2" ||
        { echo "# no line matches: $2"; printf '%s\n' "$1" | sed 's/^/# /'; }
}

skip_all () { # skip_all WHY
    echo "1..0 # SKIP $1"
    exit 0
}

skip () { # skip NAME WHY
    n=$((n + 1))
    echo "ok $n # SKIP $1: $2"
}

# Wait until a command succeeds: wait_for SECONDS COMMAND...
wait_for () {
    left=$(($1 * 10))
    shift
    while ! "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.1
    done
}

# All nodes of the test's cluster are idle, or are after what ran has been cleared away.
unharmed () {
    wait_for 100 sh -c '[ "$(sinfo -h -N -o %T | sort -u)" = idle ]'
    is "$(sinfo -h -N -o %T | sort -u)" idle "no node was harmed"
}

done_testing () {
    echo "1..$n"
    [ "$failed" -eq 0 ]
    exit
}

work=$(mktemp -d "${TMPDIR:-/tmp}/dl-test.XXXXXX")
