#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the Python package in a sweep: promotion, pausing and resuming
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
case $CFLAGS in *sanitize*) skip_all "slow under sanitizers" ;; esac
need_package numpy h5py

# ---- a sweep
cp "$srcdir"/contrib/examples/python/digits.* "$srcdir/contrib/examples/digits/digits.csv.gz" .
PATH=/usr/bin:$PATH timeout 300 dl run --local --set searcher.max_trials=9 digits.conf >sweep.out 2>&1
is $? 0 "a sweep"
like "$(cat sweep.out)" '^best accuracy 0\.[89]' "dl records the metric"
is "$(cat digits-slurmdl-0001/log/0*/0* | grep -c '"op":"fail"')" 0 "no trial failed"
again=$(find digits-slurmdl-0001/trials -path '*/a.2/log' | head -1)
[ -n "$again" ] && first=$(sed -n 's/^epoch \([0-9]*\) .*/\1/p;1q' "$again")
is "${first:-0}" 2 "a promoted trial continues from its checkpoint"

# ---- pause and resume; the first attempt is slowed down
sed 's/^import sys/import os, sys, time/; s/^\( *\)run.save(epoch)/&\n\1time.sleep(0.05 if os.environ["DL_ATTEMPT"] == "1" else 0)/' digits.py >slow.py
sed 's/"digits-slurmdl"/"paused"/; s/"asha"/"random"/; s/max_trials = 16/max_trials = 1/; s/max_length = 9/max_length = 200/; s/digits.py/slow.py/; s/heartbeat = 5/heartbeat = 1/
     /divisor/d; /max_rungs/d' digits.conf >paused.conf
PATH=/usr/bin:$PATH timeout 300 dl run --local paused.conf >paused.out 2>&1 &
pid=$!
one=paused-0001/trials/0001
wait_for 300 grep -q '^epoch 3 ' $one/a.1/log
dl pause paused >/dev/null
wait $pid
is $? 4 "a sweep is paused"
last=$(sed -n 's/^epoch \([0-9]*\) .*/\1/p' $one/a.1/log | tail -1)
holds "should_stop() ended the trainer after epoch $last" [ "${last:-200}" -lt 200 ]
PATH=/usr/bin:$PATH timeout 300 dl resume --local paused >resumed.out 2>&1
is $? 0 "the sweep is resumed"
is "$(sed -n 's/^epoch \([0-9]*\) .*/\1/p' $one/a.2/log | sed -n '1p;$p' | xargs)" "$((last + 1)) 200" "the trainer continues with the next epoch"
is "$(cat paused-0001/log/0*/0* | grep -c '"op":"fail"')" 0 "no trial failed"
done_testing
