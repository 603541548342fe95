#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the Python package with PyTorch: models, moments, random numbers, loaders; killed in mid-epoch
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
case $CFLAGS in *sanitize*) skip_all "slow under sanitizers" ;; esac
need_package numpy h5py torch
cd "$work" || exit 1

tap parts $python "$here/parts.py"

# ---- killed in mid-epoch, the training goes on as if nothing had been
for workers in 0 2; do
    whole=$($python "$here/train.py" "whole$workers" 4 $workers 0 2>/dev/null | tail -1)
    $python "$here/train.py" "cut$workers" 4 $workers 0.2 >/dev/null 2>&1 &
    pid=$!
    wait_for 300 ls "cut$workers/a.1/ckpt/00000014.h5"
    kill -9 $pid
    wait $pid 2>/dev/null
    $python "$here/train.py" "cut$workers" 4 $workers 0 >cut.out 2>/dev/null
    like "$(head -1 cut.out)" '^from (14|21|28|35|42) [0-3] [1-9]' "$workers workers: killed, it goes on in the middle of an epoch"
    is "$(tail -1 cut.out)" "$whole" "$workers workers: with the same weights, moments and random numbers"
    like "$whole" '^step 44 weights [0-9a-f]{64}$' "$workers workers: at the end"
done
done_testing
