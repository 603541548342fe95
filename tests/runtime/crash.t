#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kill writers with SIGKILL, and simulate crashes at each boundary of their I/O:
# metrics and checkpoints survive, read with each Python's HDF5.  The long run
# takes some minutes: make check TESTS=tests/runtime/crash.t DL_TEST_SOAK=1
. "$srcdir/tests/lib.sh"
seed=${DL_TEST_SEED:-$(date +%s)}
kills=${DL_TEST_KILLS:-$(often 40 1000)}
images=${DL_TEST_IMAGES:-$(often 40 0)}
pythons=
for p in ${DL_TEST_PYTHONS:-/usr/bin/python3}; do
    "$p" -c 'import h5py' 2>/dev/null && pythons="$pythons $p"
done
[ -n "$pythons" ] || skip_all "no Python with h5py (python3-h5py)"
for p in $pythons; do
    version=$("$p" -c 'import h5py; print(h5py.version.hdf5_version)')
    mkdir "$work/run"
    timeout 3000 "$p" "$srcdir/tests/runtime/crash.py" "$builddir/tests/runtime/writer" "$work/run" "$kills" "$seed" >"$work/out" 2>&1
    ok $? "$kills kills each of loggers and savers, and a live reader, with HDF5 $version (seed $seed)"
    sed 's/^/# /' "$work/out"
    rm -rf "$work/run"
    if nm -D "$builddir/launcher/dl" | grep -q __asan_; then
        skip "crashes at boundaries of I/O" "the sanitizer wraps these calls itself"
        continue
    fi
    mkdir "$work/run"
    timeout 3000 "$p" "$srcdir/tests/runtime/boundaries.py" "$builddir/tests/runtime/writer" "$builddir/tests/fakes/.libs/trace.so" \
        "$builddir/tests/faults/.libs/shim.so" "$work/run" "$images" "$seed" >"$work/out" 2>&1
    ok $? "$images crashes at boundaries of I/O, torn writes, losses of power and refused calls, with HDF5 $version (seed $seed)"
    sed 's/^/# /' "$work/out"
    rm -rf "$work/run"
done
done_testing
