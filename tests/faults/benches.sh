# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# Run the benches of tests/faults/ in the background of a test: source this after lib.sh.
export TMPDIR="$work" DL_TEST_SOAK="${DL_TEST_SOAK:-}"
faults=$srcdir/tests/faults
seed=${DL_TEST_SEED:-$(date +%s)}
python=python3
/usr/bin/python3 -c 'import h5py' 2>/dev/null && python=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1

limit=$(often 900 20000)
private=
begin () { # begin FILE SCRIPT ARGUMENT...: start a bench in the background, under the command in $private
    out=$work/$1
    script=$faults/$2
    shift 2
    { timeout "$limit" $private $python "$script" "$@" >"$out" 2>&1; echo $? >"$out.status"; } &
}
finish () { # finish FILE NAME: wait for that bench and check its exit status
    wait_for "$limit" test -s "$work/$1.status"
    ok "$(cat "$work/$1.status")" "$2"
    sed 's/^/# /' "$work/$1"
}
