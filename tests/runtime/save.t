#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SIGKILL and failing disks while ranks save, synchronously and asynchronously
#
# The long run (DL_TEST_SOAK=1) kills 1000 times, and makes each call of two ranks fail in each way.
. "$srcdir/tests/lib.sh"
python=/usr/bin/python3
"$python" -c 'import json' 2>/dev/null || skip_all "no Python"
seed=${DL_TEST_SEED:-$(date +%s)}
kills=${DL_TEST_KILLS:-$(often 4 250)}
faults=${DL_TEST_FAULTS:-$(often 12 0)}
mkdir "$work/kill" "$work/faults" "$work/ranks"
timeout 3000 "$python" "$srcdir/tests/runtime/save.py" kill "$builddir/tests/runtime/writer" "$work/kill" "$kills" "$seed" >"$work/out" 2>&1
ok $? "$kills kills each of 1 and 4 ranks, sync and async (seed $seed)"
sed 's/^/# /' "$work/out"
if nm -D "$builddir/launcher/dl" | grep -q __asan_; then
    skip "failing disks" "the sanitizer wraps these calls itself"
elif [ -e "$builddir/tests/faults/.libs/shim.so" ]; then
    timeout 600 "$python" "$srcdir/tests/runtime/save.py" faults "$builddir/tests/runtime/writer" "$builddir/tests/faults/.libs/shim.so" "$work/faults" >"$work/out" 2>&1
    ok $? "ENOSPC, EDQUOT and EIO at each call of a save"
    sed 's/^/# /' "$work/out"
    timeout 3000 "$python" "$srcdir/tests/runtime/rankfaults.py" "$builddir/tests/runtime/writer" "$builddir/tests/faults/.libs/shim.so" "$work/ranks" "$faults" "$seed" >"$work/out" 2>&1
    ok $? "one of three ranks has a disk that fails (seed $seed)"
    sed 's/^/# /' "$work/out"
else
    skip "failing disks" "no shim"
fi
done_testing
