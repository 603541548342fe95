#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the digits example: resumes as if it had never stopped, obeys stops, in C and in Python
. "$srcdir/tests/lib.sh"
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$srcdir"/contrib/examples/digits/* .
ln -sf "$builddir/contrib/examples/digits/digits" digits
unset DL_DIR DL_ATTEMPT_DIR

# ---- 9 epochs at once, and in three pieces
export DL_SEED=5 DL_HP_hidden=40 DL_HP_lr=0.2
DL_RUN_DIR=whole DL_LENGTH=9 ./digits >whole.out
is $? 0 "nine epochs"
for length in 1 3 9; do
    DL_RUN_DIR=pieces DL_LENGTH=$length ./digits
done >pieces.out
is "$(grep '^epoch' pieces.out)" "$(cat whole.out)" "resumed training gives the same numbers"
is "$(grep -c '^restored' pieces.out)" 2 "from checkpoints"
is "$(ls -d pieces/a.*)" "pieces/a.1
pieces/a.2
pieces/a.3" "each start is an attempt of its own"

# ---- a stop request in the middle
DL_RUN_DIR=stop DL_LENGTH=100000 ./digits >stop.out &
pid=$!
wait_for 10 grep -q 'epoch 3 ' stop.out
kill -TERM $pid
wait $pid
is $? 0 "a stop request ends it with status 0"
last=$(sed -n 's/^epoch \([0-9]*\) .*/\1/p' stop.out | tail -1)
[ "$last" -lt 100000 ]
ok $? "before its time, after epoch $last"
DL_RUN_DIR=stop DL_LENGTH=$((last + 1)) ./digits >stop.out
like "$(cat stop.out)" "^restored epoch $last" "and the epoch it had finished is saved"
unset DL_SEED DL_HP_hidden DL_HP_lr

# ---- an open metrics file is a plain HDF5 file
DL_RUN_DIR=live DL_LENGTH=100000 ./digits >/dev/null &
pid=$!
wait_for 10 test -f live/a.1/metrics.h5
if command -v h5dump >/dev/null; then
    like "$(h5dump -H live/a.1/metrics.h5)" 'DATASET "metrics"' "h5dump reads it while the trainer runs"
else
    skip "h5dump" "no hdf5-tools"
fi
kill -KILL $pid
wait $pid 2>/dev/null

# ---- the sweep over the script that knows nothing of us
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    PATH=/usr/bin:$PATH timeout 120 dl run --local python.conf >out 2>&1
    is $? 0 "the sweep in Python"
    like "$(cat out)" '^best accuracy 0\.[89]' "finds something that works"
    is "$(cat digits-python-0001/log/0* | grep -c '"op":"fail"')" 0 "no trial failed"
else
    skip "the sweep in Python" "no python3-numpy"
fi
done_testing
