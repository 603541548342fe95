#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root in part
# scripts for Determined's Core API: each call, a sweep, pausing and resuming, two ranks
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
case $CFLAGS in *sanitize*) skip_all "slow under sanitizers" ;; esac
need_package numpy
PATH=/usr/bin:$PATH
$python -c 'import numpy, slurmdl; slurmdl.dump("plain.h5", {"w": numpy.ones(3)})'
tap calls env DL_LENGTH=7 DL_HP_lr=0.5 $python -m slurmdl.det "$here/det_calls.py" "$work/plain.h5"
is "$($python -m slurmdl.det nothing.py 2>&1)" "slurmdl.det: nothing.py: there is no such script" "dl run without a script fails"

# ---- promotions, with a script that counts batches although the searcher counts tens of batches
cp "$here"/det_app.py "$here"/det_ranks.py .
cat >app.conf <<'END'
name = "app";
entrypoint = "python3 -m slurmdl.det det_app.py 0.001";
searcher = { name = "asha"; metric = "x"; max_trials = 4; max_length = 4; divisor = 2; max_rungs = 2; };
hyperparameters = { step = { type = "float"; minval = 0.0; maxval = 1.0; }; };
resources = { workers = 2; };
worker = { heartbeat = 1; };
reproducibility = { experiment_seed = 1; };
END
timeout 300 dl run --local app.conf >app.out 2>&1
is $? 0 "a sweep"
is "$(count app-0001 fail)" 0 "no trial failed"
is "$(cat app-0001/trials/*/a.2/log | grep -c '^from 20 of 000.-1-00000020$')" \
    "$(find app-0001/trials -name a.2 | wc -l)" "a promoted trial continues from latest_checkpoint"
like "$(cat app.out)" '^best x [0-9.]+: trial . at length' "the searcher has its metric"

# ---- paused: metrics reported so far are not a result, even though their steps exceed the length
sed 's/"app"/"paused"/; s/0.001/0.04/; s/max_length = 4/max_length = 20/; s/"asha"/"random"/; s/max_trials = 4/max_trials = 1/; s/divisor.*2; }/}/' app.conf >paused.conf
timeout 300 dl run --local paused.conf >paused.out 2>&1 &
wait_for 300 grep -q '^batches 30$' paused-0001/trials/0001/a.1/log
dl pause paused >/dev/null
wait $!
is "$?,$(count paused-0001 result)" "4,0" "should_preempt()"
timeout 300 dl resume --local paused >resumed.out 2>&1
is $? 0 "the sweep is resumed"
like "$(head -1 paused-0001/trials/0001/a.2/log)" '^from [3-9][05] of 0001-1-0000' "the trial resumes from its checkpoint"

# ---- two ranks
has torch || { skip "two ranks" "no PyTorch"; done_testing; }
cat >two.py <<'END'
# start two ranks like torchrun; if one fails, kill the other, so that dl retries the trial
import os, random, signal, sys, time
import torch
from forked import start

about = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(random.randrange(10000, 30000)), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
command = ["-m", "slurmdl.det", *sys.argv[1:]]
ranks = [start(command, None, None, **about, RANK=str(r), LOCAL_RANK=str(r)) for r in range(2)]
signal.signal(signal.SIGTERM, lambda *_: None)
first = os.wait()
if first[1]:
    time.sleep(5)
    for rank in set(ranks) - {first[0]}:
        os.kill(rank, signal.SIGKILL)
sys.exit(bool(first[1] or os.wait()[1]))
END
cat >ranks.conf <<'END'
name = "ranks";
entrypoint = "python3 two.py det_ranks.py 0.1";
searcher = { name = "single"; metric = "loss"; max_length = 20; };
worker = { heartbeat = 1; };
END
timeout 300 dl run --local ranks.conf >ranks.out 2>&1 &
wait_for 300 sh -c 'grep -q "^batch 2$" ranks-0001/trials/0001/a.*/log'
dl pause ranks >/dev/null
wait $!
is $? 4 "two ranks agree on should_preempt()"
timeout 300 dl resume --local ranks >ranks2.out 2>&1
is $? 0 "the sweep of two ranks is resumed"
is "$(cat ranks-0001/trials/0001/a.*/log | grep -c '^rank . from [1-9][0-9]*$')" 2 "both ranks resume from one checkpoint"
like "$(cat ranks2.out)" 'loss 0.05' "both ranks train to the end"
done_testing
