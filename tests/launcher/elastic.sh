# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# Helpers for ranks of dl elastic: source this after lib.sh.
dl=
trap '[ -z "$dl" ] || kill "$dl" 2>/dev/null; clean_up' EXIT
ranks=$builddir/tests/runtime/comm/elastic.t
[ -x "$ranks" ] || skip_all "no cmocka"
cd "$work" || exit 1
cp "$srcdir"/contrib/examples/digits/digits.csv.gz .
export DL_COMM_TIMEOUT=5 DL_ELASTIC_SETTLE=4 DL_ELASTIC_TIMEOUT=20
PATH=$PATH:/usr/sbin

# kill_rank UNIT PROGRAM: kill a process of that unit
kill_rank () {
    for p in /proc/[0-9]*; do
        [ "$(cat "$p/comm" 2>/dev/null)" = "${2##*/}" ] || continue
        tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -qx "DL_ELASTIC_UNIT=$1" || continue
        tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -q "^DL_ELASTIC_DIR=$work/" || continue
        kill -9 "${p#/proc/}" && return
    done
    return 1
}

# await_world RANKS [LOST [TIMES]]: wait until such a world was reported, TIMES times in all
await_world () { wait_for 300 sh -c "[ \"\$(grep -c 'world [0-9]* has $1 ranks, ${2:-.*} lost' out)\" -ge ${3:-1} ]"; }
