#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts of Determined's Core API: each call by hand; a sweep; two ranks; paused and resumed
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
case $CFLAGS in *sanitize*) skip_all "slow under sanitizers" ;; esac
need_package numpy
PATH=/usr/bin:$PATH
cd "$work" || exit 1
$python -c 'import numpy, slurmdl; slurmdl.dump("plain.h5", {"w": numpy.ones(3)})'
tap calls env DL_LENGTH=7 DL_HP_lr=0.5 $python -m slurmdl.det "$here/det_calls.py" "$work/plain.h5"
is "$($python -m slurmdl.det nothing.py 2>&1)" "slurmdl.det: nothing.py: there is no such script" "no script"

# ---- promoted, with a script that counts batches where the searcher counts tens of them
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
    "$(find app-0001/trials -name a.2 | wc -l)" "a trial that is promoted goes on from latest_checkpoint"
like "$(cat app.out)" '^best x [0-9.]+: trial . at length' "the searcher has its metric"

# ---- paused: what has been reported so far is no result, though its steps are beyond the length
sed 's/"app"/"paused"/; s/0.001/0.04/; s/max_length = 4/max_length = 20/; s/"asha"/"random"/; s/max_trials = 4/max_trials = 1/; s/divisor.*2; }/}/' app.conf >paused.conf
timeout 300 dl run --local paused.conf >paused.out 2>&1 &
wait_for 300 grep -q '^batches 30$' paused-0001/trials/0001/a.1/log
dl pause paused >/dev/null
wait $!
is "$?,$(count paused-0001 result)" "4,0" "should_preempt()"
timeout 300 dl resume --local paused >resumed.out 2>&1
is $? 0 "resumed"
like "$(head -1 paused-0001/trials/0001/a.2/log)" '^from [3-9][05] of 0001-1-0000' "from its checkpoint"

# ---- two ranks
$python -c 'import torch.distributed as d; assert d.is_gloo_available()' 2>/dev/null ||
    { skip "two ranks" "no PyTorch with gloo"; done_testing; }
cat >two.sh <<'END'
#!/bin/sh
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" WORLD_SIZE=2 LOCAL_WORLD_SIZE=2
trap : TERM
for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank python3 -m slurmdl.det "$@" &
    pids="$pids $!"
done
status=0
for pid in $pids; do
    while kill -0 "$pid" 2>/dev/null; do wait "$pid"; code=$?; done
    [ "$code" -eq 0 ] || status=$code
done
exit "$status"
END
chmod +x two.sh
cat >ranks.conf <<'END'
name = "ranks";
entrypoint = "./two.sh det_ranks.py 0.1";
searcher = { name = "single"; metric = "loss"; max_length = 20; };
worker = { heartbeat = 1; };
END
timeout 300 dl run --local ranks.conf >ranks.out 2>&1 &
wait_for 300 grep -q '^batch 2$' ranks-0001/trials/0001/a.1/log
dl pause ranks >/dev/null
wait $!
is $? 4 "two ranks agree on should_preempt()"
timeout 300 dl resume --local ranks >ranks2.out 2>&1
is $? 0 "two ranks are resumed"
is "$(grep -c '^rank . from [2-9]$' ranks-0001/trials/0001/a.2/log)" 2 "from a checkpoint of both"
like "$(cat ranks2.out)" 'loss 0.05' "to the end"
done_testing
