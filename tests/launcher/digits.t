#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The digits example in C and in Python: a resumed run gives the same numbers, and a stop request is obeyed.
. "$srcdir/tests/lib.sh"
cp "$srcdir"/contrib/examples/digits/* .
ln -sf "$builddir/contrib/examples/digits/digits" digits
unset DL_DIR DL_ATTEMPT_DIR
export OMP_NUM_THREADS=1

# ---- 9 epochs at once and in three pieces
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
pieces/a.3" "each start is a separate attempt"
is "$(DL_RUN_DIR=pieces DL_LENGTH=1 DL_LENGTH_KNOWN=0 ./digits)" "restored epoch 9" "a length that is only a default hides no checkpoint"
is "$(DL_RUN_DIR=pieces DL_LENGTH=1 ./digits | grep -c 'restored epoch 9')" 0 "a known length does"

# ---- a checkpoint that cannot be restored
DL_RUN_DIR=bad DL_LENGTH=1 ./digits >bad.out
ckpt=$(ls bad/a.1/ckpt/*.h5)
# damage the weights, not the zeros after them
printf 'damage' | dd of="$ckpt" bs=1 seek=$(($(stat -c %s "$ckpt") / 4)) conv=notrunc 2>/dev/null
DL_RUN_DIR=bad DL_LENGTH=2 ./digits >bad.out 2>&1
is $? 78 "a damaged checkpoint: a retry would not help"
like "$(cat bad.out)" 'every checkpoint is damaged' "and it says why"
truncate -s 100 "$ckpt"
DL_RUN_DIR=bad DL_LENGTH=2 ./digits >bad.out 2>&1
is "$?" 78 "nor if it was truncated"
like "$(cat bad.out)" 'every checkpoint is damaged.*(a\.1/ckpt/00000001.h5)' "and names the file"

# ---- a stop request in mid-training
DL_RUN_DIR=stop DL_LENGTH=100000 ./digits >stop.out &
pid=$!
wait_for 300 grep -q 'epoch 3 ' stop.out
kill -TERM $pid
wait $pid
is $? 0 "a stop request ends it with status 0"
last=$(sed -n 's/^epoch \([0-9]*\) .*/\1/p' stop.out | tail -1)
holds "before its end, after epoch $last" [ "$last" -lt 100000 ]
DL_RUN_DIR=stop DL_LENGTH=$((last + 1)) ./digits >stop.out
like "$(cat stop.out)" "^restored epoch $last" "and the epoch it had finished is saved"
unset DL_SEED DL_HP_hidden DL_HP_lr

# ---- a trial that starts from another trial's checkpoint
export DL_SEED=5 DL_HP_hidden=40 DL_HP_lr=0.2
mkdir -p trials/0001
(export DL_RUN_DIR=trials/0001; DL_LENGTH=4 ./digits; DL_LENGTH=6 ./digits) >first.out
DL_CHECKPOINT_DIR=$PWD/trials/0001/a.1 DL_CHECKPOINT_LENGTH=4 DL_RUN_DIR=trials/0002 DL_LENGTH=6 ./digits >clone.out
is "$(head -1 clone.out)" "restored epoch 4" "a clone begins at the other trial's length"
is "$(tail -2 clone.out)" "$(tail -2 first.out)" "with its weights"
DL_CHECKPOINT_DIR=$PWD/trials/0001/a.1 DL_CHECKPOINT_LENGTH=4 DL_RUN_DIR=trials/0002 DL_LENGTH=8 ./digits >clone.out
is "$(head -1 clone.out)" "restored epoch 6" "and continues from its own checkpoint"
unset DL_SEED DL_HP_hidden DL_HP_lr

# With one worker the results come in a fixed order, so the same trials are cloned each time.
sed 's/population = 8/population = 4/; s/max_length = 27/max_length = 12/; s/min_length = 3/min_length = 2/
     s/workers = 4/workers = 1/; s/experiment_seed = 1/experiment_seed = 2/' pbt.conf >pbt4.conf
runs 0 "population based training" dl run --local --set checkpoint_policy.save_trial_latest=99 pbt4.conf
is "$(cat digits-pbt-0001/log/0*/0* | grep -c '"op":"fail"')" 0 "no trial failed"
clones=$(cat digits-pbt-0001/log/0*/0* | sed -n 's/.*"op":"begin".*"trial":\([0-9]*\),.*"from":\([0-9]*\),"from_length":\([0-9]*\).*/\1 \2 \3/p')
[ -n "$clones" ]
ok $? "has clones ($(echo "$clones" | wc -l))"
[ -n "$clones" ] && wrong=$(echo "$clones" | while read -r trial from length; do
    grep -qx "restored epoch $length" "digits-pbt-0001/trials/$(printf %04d "$trial")/a.1/log" || echo "$trial $from $length"
done)
is "$wrong" "" "each began at the length where the other one was"
set -- $clones
like "$(dl show digits-pbt "$1")" "starts from the checkpoint of trial $2 at length $3" "show says so"
again () { # again EXPERIMENT TRIAL LENGTH WHAT
    runs 0 "dl reproduce: $4" dl reproduce "$1" "$2"
    like "$(cat out)" "^restored epoch $3" "from the other trial's checkpoint"
}
again digits-pbt-0001 "$1" "$3" "a clone"
timeout 300 dl fork --local --set searcher.max_length=16 digits-pbt-0001 "$1" >out 2>&1
again digits-pbt-fork-0001 1 "$(sed -n 's/^restored epoch //p' digits-pbt-fork-0001/trials/0001/a.1/log)" "a fork"
rm digits-pbt-0001/trials/"$(printf %04d "$2")"/a.*/ckpt/*
timeout 300 dl reproduce digits-pbt-0001 "$1" >out 2>&1
is "$? $(cat out)" "3 dl: $PWD/digits-pbt-0001: trial $1 started from the checkpoint of trial $2 at length $3, which no longer exists, so the trial cannot be trained again" \
    "a clone of a removed checkpoint"

# ---- an open metrics file is a plain HDF5 file
DL_RUN_DIR=live DL_LENGTH=100000 ./digits >/dev/null &
pid=$!
wait_for 300 test -f live/a.1/metrics.h5
if command -v h5dump >/dev/null; then
    like "$(h5dump -H live/a.1/metrics.h5)" 'DATASET "metrics"' "h5dump reads it while the trainer runs"
else
    skip "h5dump" "no hdf5-tools"
fi
kill -KILL $pid
wait $pid 2>/dev/null

# ---- the sweep over the Python script, which knows nothing of dl
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    runs 0 "the sweep in Python" env "PATH=/usr/bin:$PATH" dl run --local --set searcher.max_trials=9 python.conf
    like "$(cat out)" '^best accuracy 0\.[89]' "finds something that works"
    best=$(sed -n 's/^best accuracy .*: trial \([0-9]*\) at length .*/\1/p' out)
    lr=$(dl show --csv digits-python-0001 | awk -F, -v best="$best" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "hp.lr") lr = i } $1 == best { print $lr }')
    like "$(sed -n '/^best accuracy/{n;p}' out)" "^ .*lr=$(printf %.3s "$lr")" "with its hyperparameters"
    is "$(cat digits-python-0001/log/0*/0* | grep -c '"op":"fail"')" 0 "no trial failed"
else
    skip "the sweep in Python" "no python3-numpy"
fi
done_testing
