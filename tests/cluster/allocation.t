#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Allocations on a real Slurm cluster: several arrays, time limits, lanes, ranks, steps.
. "$srcdir/tests/lib.sh"
need_slurm
# Slurm sets SLURM_JOB_END_TIME since 23.02; unset it, so that workers have to ask squeue
printf '#!/bin/sh\necho unset SLURM_JOB_END_TIME\n' >"$work/prolog"
chmod 755 "$work" "$work/prolog"
cluster_up alloc --nodes 2 --cpus 4 --conf MaxArraySize=4 --conf TaskProlog="$work/prolog"

conf () { # conf NAME TRAINER TRIALS RESOURCES [MORE-SEARCHER]
    cat >"$1.conf" <<END
name = "$1";
entrypoint = "$2";
searcher = { name = "random"; metric = "loss"; max_trials = $3; max_concurrent_trials = 0; $5 };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { $4 };
worker = { heartbeat = 1; lease = 30; grace = 3; };
END
}
queue_is_empty () {
    wait_for 300 sh -c '[ -z "$(squeue -h -o %i)" ]'
}

# ---- more workers than MaxArraySize allows; then scale up and down
program wait.sh <<'END'
trap 'exit 0' TERM
while [ ! -f go ]; do sleep 0.1; done
sleep 0.1
dl log loss=$DL_TRIAL
END
conf many ./wait.sh 30 'workers = 8;'
dir=$(timeout 300 dl run --detach many.conf)
is "$(count many-0001 submit)" 4 "an array above MaxArraySize becomes four"
is "$(squeue -h -r | wc -l)" 8 "of eight tasks"
wait_for 300 sh -c '[ "$(find many-0001/trials -name "a.1" | wc -l)" -eq 8 ]'
ok $? "eight workers work"
timeout 300 dl scale 9 many >/dev/null
is "$(squeue -h -r | wc -l)" 9 "scale up: another task"
timeout 300 dl scale 8 many >/dev/null
is "$(squeue -h -r | wc -l)" 8 "scale down: the pending task is cancelled"
timeout 300 dl scale 6 many >/dev/null
wait_for 300 sh -c '[ "$(squeue -h -r -t RUNNING | wc -l)" -eq 6 ]'
ok $? "then the highest-numbered ones end"
is "$(count many-0001 park)" 2 "and save their state"
wait_for 300 sh -c '[ "$(squeue -h -r | wc -l)" -eq 6 ]'

# ---- a running sweep sends no requests to Slurm
requests () { # print slurmctld's request counts, except for requests of this test and of the nodes
    sdiag | sed -n '/by message type/,/by user/s/^\t\([A-Z_]*\) .*count:\([0-9]*\).*/\1 \2/p' |
        grep -v 'REQUEST_STATS_INFO\|NODE_REGISTRATION\|REQUEST_PING' | sort
}
# try up to five times: on a busy machine, late requests of the steps above may fall into the first tries
for _ in 1 2 3 4 5; do
    before=$(requests)
    sleep 8
    after=$(requests)
    [ "$before" != "$after" ] || break
done
is "$after" "$before" "six workers asked Slurm for nothing in 8 s, 48 signs of life"
like "$before" 'REQUEST_SUBMIT_BATCH_JOB [0-9]+' "(requests are counted)"
touch go
queue_is_empty
ok $? "the arrays end"
like "$(dl ls)" 'many-0001 +completed' "the sweep completes"
is "$(count many-0001 result)" 30 "thirty results"
is "$(count many-0001 fail)$(count many-0001 lost)" 00 "nothing failed or was lost"

# ---- a sweep longer than the time limit of its jobs, which a fake squeue reports as 50 s.  One trainer saves checkpoints,
# and its task is requeued; the tasks of the other one, whose scontrol fails, submit new jobs
mkdir short chain
program short/squeue <<END
case "\$*" in
*--format=%L*) echo 0:50; exit ;;
*--format=%F*) echo "1|N/A|RUNNING|None|0:50"; exit ;;
esac
exec $(command -v squeue) "\$@"
END
printf '#!/bin/sh\nexit 1\n' >chain/scontrol
chmod +x chain/scontrol
program save.sh <<'END'
# resume from the newest step that any attempt saved
n=$(cat "${DL_ATTEMPT_DIR%/*}"/a.*/ckpt/n 2>/dev/null | sort -n | tail -1)
n=${n:-0}
mkdir -p "$DL_ATTEMPT_DIR/ckpt"
echo "from $n"
while [ "$n" -lt "$DL_LENGTH" ]; do
    sleep 1
    n=$((n + 1))
    echo $n >"$DL_ATTEMPT_DIR/ckpt/n"
done
dl log --step "$n" loss=1
END
program sleep.sh <<'END'
sleep 8
dl log loss=$DL_TRIAL
END
conf save ./save.sh 1 'workers = 1; time = "2";' 'max_length = 48;'
conf sleep ./sleep.sh 7 'workers = 1; time = "2";'
PATH=$work/short:$PATH timeout 1500 dl run save.conf >save.out 2>&1 &
save=$!
PATH=$work/short:$work/chain:$PATH timeout 1500 dl run sleep.conf >sleep.out 2>&1 &
sleep=$!

# ---- meanwhile, on the other cores: two trials in a task, and one worker is killed
program lane.sh <<'END'
echo begun
until [ -f killed ]; do sleep 0.1; done
dl log loss=$DL_TRIAL
END
conf lane ./lane.sh 8 'workers = 2; trials_per_task = 2;'
timeout 900 dl run lane.conf >lane.out 2>&1 &
lane=$!
wait_for 300 sh -c '[ $(cat lane-0001/trials/*/a.1/log | grep -c begun) -eq 2 ]'
# kill the newest worker of this experiment; the pattern does not match srun
pgrep -f "^[^ ]*dl worker -- $work/lane-0001" | tail -1 | xargs -r kill -9
touch killed
wait $lane
is $? 0 "two trials side by side in a task, one worker killed: the sweep completes"
is "$(count lane-0001 result)" 8 "eight results"
is "$(count lane-0001 fail)" 0 "none failed"
lost=$(count lane-0001 lost)
[ "$lost" -ge 1 ] && [ "$lost" -le 2 ]
ok $? "what the worker had begun, or had claimed, was lost with it ($lost)"
like "$(cat lane-0001/workers/*)" '"slot":"[0-9]*_1\.1"' "workers are named after their lane"

# ---- a trial of two nodes with two ranks each, stopped halfway
program rank.sh <<'END'
trap 'sleep 1; touch "$DL_ATTEMPT_DIR/saved.$SLURM_PROCID"; exit 0' TERM
echo "rank $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME local $SLURM_LOCALID"
while [ ! -f go ]; do sleep 0.1; done
[ "$SLURM_PROCID" != 0 ] || dl log loss=$DL_TRIAL
END
rm -f go
conf rank ./rank.sh 2 'workers = 1; nodes_per_trial = 2; ranks_per_node = 2;'
timeout 1500 dl run rank.conf >out 2>&1 &
pid=$!
wait_for 300 sh -c '[ "$(grep -c ^rank rank-0001/trials/0001/a.1/log)" -eq 4 ]'
is "$(sort rank-0001/trials/0001/a.1/log | tr '\n' ' ')" \
    "rank 0 of 4 on n1 local 0 rank 1 of 4 on n1 local 1 rank 2 of 4 on n2 local 0 rank 3 of 4 on n2 local 1 " "four ranks on two nodes"
# as before the time limit; signal the worker directly, because it is not in a step
pkill -USR2 -f "^[^ ]*dl worker -- $work/rank-0001"
wait_for 300 sh -c 'cat rank-0001/log/0*/0* | grep "\"op\":\"park\""'
ok $? "the trial is parked"
is "$(find rank-0001 -name 'saved.*' | wc -l)" 4 "each rank got SIGTERM and had time to save"

# ---- dl worker in the user's own step
program step.sh <<'END'
# wait for all four workers
until [ "$(ls step-0001/workers | wc -l)" -ge 4 ]; do sleep 0.1; done
dl log loss=$DL_TRIAL
END
conf step ./step.sh 6 'workers = 1;'
dir=$(timeout 300 dl run --no-workers step.conf)
# --overcommit, because only two cores are free if the ranks are back
runs 0 "dl worker in a step of the user's allocation" srun -n4 --overcommit --quiet dl worker "$dir"
is "$(cat step-0001/workers/* | sed -n 's/.*"slot":"[0-9]*\.0_\([0-9]\)".*/\1/p' | sort | tr '\n' ' ')" "0 1 2 3 " "each task is a worker"
like "$(dl ls)" 'step-0001 +completed' "the sweep completes"
# ---- the task with the ranks comes back
wait_for 300 sh -c '[ "$(grep -c ^rank rank-0001/trials/0001/a.2/log)" -eq 4 ]'
ok $? "its task comes back"
ranks=$(for p in $(pgrep -f '^/bin/sh ./rank.sh'); do
    [ "$(readlink "/proc/$p/cwd")" != "$(pwd -P)" ] || echo "$p"
done | tr '\n' ' ')
pkill -9 -f "^[^ ]*dl worker -- $work/rank-0001"
wait_for 300 sh -c "[ -n '$ranks' ] && ! ps -o stat= $ranks | grep -v Z"
ok $? "ranks do not outlive a worker that is killed"
touch go
wait $pid
is $? 0 "the sweep completes"
is "$(count rank-0001 result)" 2 "two results"
is "$(count rank-0001 fail)" 0 "none failed"
is "$(count rank-0001 lost)" 1 "one attempt was lost"

# ---- results of the long sweeps
wait $save
is $? 0 "trainer with checkpoints: a sweep longer than its jobs completes"
is "$(count save-0001 fail)$(count save-0001 lost)" 00 "no attempt failed or was lost"
[ "$(count save-0001 park)" -ge 1 ]
ok $? "it was parked ($(count save-0001 park))"
is "$(count save-0001 submit)" 1 "its task went back into the queue"
like "$(cat save-0001/trials/0001/a.2/log)" '^from [1-9][0-9]*$' "and it continued from its checkpoint"
wait $sleep
is $? 0 "trainer without checkpoints, no scontrol: the sweep completes"
is "$(count sleep-0001 fail)$(count sleep-0001 lost)" 00 "no attempt failed or was lost"
# a parked segment is wrong only if it took about as long as the others: on a busy machine one may take much longer
is "$(cat sleep-0001/log/0*/0* | python3 -c '
import json, sys
ends = {"result": [], "park": []}
for e in map(json.loads, sys.stdin):
    if e.get("op") in ends:
        ends[e["op"]].append(e["seconds"])
usual = sum(ends["result"]) / len(ends["result"])
print([s for s in ends["park"] if s < 1.3 * usual])')" "[]" "no segment began that did not fit ($(count sleep-0001 park) took longer)"
[ "$(count sleep-0001 submit)" -ge 2 ]
ok $? "its tasks resubmitted themselves ($(count sleep-0001 submit) arrays)"
queue_is_empty

done_testing
