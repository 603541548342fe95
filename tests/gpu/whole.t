#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# case: order 1, seconds 15
# programs, modules and the Python package of the bundle find their libraries on this host
. "$srcdir/tests/lib.sh"
cd "$DL_GPU_BUNDLE" || exit 1

missing=$(find bin lib tests contrib -type f \( -perm -u+x -o -name '*.so*' \) ! -name slurmdl-mpi.so -exec ldd {} + 2>/dev/null |
    awk '/^[^\t]/ { f = $1 } /not found/ { print f, $1 }')
[ -n "$DL_GPU_STAND_INS" ] && missing=$(echo "$missing" | grep -v -e libcudart -e libnccl)
is "$missing" "" "each program and module finds its libraries"
out=$(bin/dl --version 2>&1)
is $? 0 "dl runs: $out"
out=$("$PYTHON" -c 'import slurmdl, slurmdl.comm; print(slurmdl.__file__)' 2>&1)
is $? 0 "the Python package loads"
echo "# $out" | tail -n 3
if [ -n "$DL_GPU_STAND_INS" ]; then
    skip "the driver has a GPU" "stand-ins"
else
    out=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1)
    is $? 0 "the driver has a GPU: $out"
fi
done_testing
