#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A sweep on a real Slurm cluster: the workers of its job array are killed and preempted.
. "$srcdir/tests/lib.sh"
need_slurm
plugin=
if [ -f "$PLUGIN" ] && ! nm -D "$PLUGIN" | grep -q __asan_; then
    plugin="--plugin $PLUGIN"
fi
cluster_up sweep --nodes 2 --cpus 2 $plugin

results_once () { # results_once FOLDER: whether no segment has two results
    [ -z "$(cat "$1"/log/0*/0* | grep '"op":"result"' | sed 's/.*"trial":\([0-9]*\),.*"length":\([0-9]*\).*/\1 \2/' | sort | uniq -d)" ]
}
steps_of () { # steps_of NAME: print the pids of its workers, without the srun that starts each
    pgrep -f "^[^ ]*dl worker -- $work/$1-0001"
}

# ---- asha with the digits trainer, while trainers and workers are killed
cp "$srcdir"/contrib/examples/digits/digits.csv.gz .
ln -s "$builddir/contrib/examples/digits/digits" digits
sed 's/max_trials = 64/max_trials = 24/; s/workers = 4/workers = 3/; s/"digits"/"kill"/; s/lease = 60/lease = 20/; s/heartbeat = 5/heartbeat = 2/' \
    "$srcdir/contrib/examples/digits/asha.conf" >kill.conf
timeout 900 dl run kill.conf >out 2>&1 &
pid=$!
wait_for 300 steps_of kill
ok $? "workers run"
sleep 0.3
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    # retry, because between two trials a worker has no trainer
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        steps_of kill | head -1 | xargs -r pkill -9 -P && killed="$killed trainer" && break
        sleep 0.05
    done
    sleep 0.7
    [ $round -gt 3 ] && { [ "$(count kill-0001 fail)" -ge 1 ] && break; continue; }
    steps_of kill | tail -1 | xargs -r kill -9 && killed="$killed worker"
    sleep 1.2
done
wait $pid
is $? 0 "digits: the sweep completes although these were killed:$killed"
sed 's/^/# /' out | tail -18
is "$(cat kill-0001/log/0*/0* | grep '"op":"begin"' | grep -c '"x"')" 24 "all trials began"
results_once kill-0001
ok $? "no segment has two results"
is "$(dl show --json kill | python3 -c '
import json, sys
print(sum(t["state"] in ("completed", "stopped early") for t in json.load(sys.stdin)["trials"]))')" 24 "every trial is accounted for once"
like "$(dl show kill)" 'best accuracy 0\.9' "the sweep learns"
[ "$(count kill-0001 fail)" -ge 1 ]
ok $? "killed trainers were counted as failures ($(count kill-0001 fail))"
[ "$(cat kill-0001/trials/*/a.*/log | grep -c '^restored epoch')" -ge 1 ]
ok $? "promoted trials continued from their checkpoints"
wait_for 300 sh -c '[ -z "$(squeue -h -o %i)" ]'
ok $? "the array has ended"

# ---- pause and resume
program slow.sh <<'END'
trap 'exit 0' TERM
while [ ! -f go ]; do sleep 0.1; done
dl log loss=$DL_TRIAL
END
cat >slow.conf <<'END'
name = "slow";
entrypoint = "./slow.sh";
searcher = { name = "random"; metric = "loss"; max_trials = 6; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 2; framework = "FRAMEWORK"; };
worker = { heartbeat = 1; lease = 60; grace = 5; };
END
if [ -n "$plugin" ]; then
    sed -i 's/FRAMEWORK/torch/' slow.conf
else
    sed -i 's/ framework = "FRAMEWORK";//' slow.conf
fi
dir=$(timeout 300 dl run --detach slow.conf)
is "$dir" "$work/slow-0001" "run --detach prints the folder"
wait_for 300 sh -c 'ls slow-0001/trials/*/a.1/log'
timeout 300 dl pause slow >/dev/null
wait_for 300 sh -c '[ -z "$(squeue -h -o %i)" ]'
ok $? "a pause ends the array"
like "$(dl ls)" 'slow-0001 +paused' "state"
is "$(count slow-0001 fail)" 0 "a pause does not count as a failure"
touch go
timeout 900 dl resume slow >out 2>&1
is $? 0 "resume"
is "$(count slow-0001 result)" 6 "six results"
rm go

# ---- preemption: another job takes the nodes, and the array comes back
sed 's/"slow"/"low"/; s/workers = 2/workers = 4; partition = "low"/' slow.conf >low.conf
timeout 900 dl run low.conf >out 2>&1 &
pid=$!
wait_for 300 sh -c '[ $(ls low-0001/trials/*/a.1/log | wc -l) -ge 4 ]'
ok $? "four trials run on two nodes"
timeout 300 srun -p high -N2 -n4 true
ok $? "a job of higher priority got the nodes"
touch go
wait $pid
is $? 0 "the preempted sweep completes"
is "$(count low-0001 result)" 6 "six results"
is "$(count low-0001 fail)" 0 "preemption does not count as a failure"
[ $(($(count low-0001 park) + $(count low-0001 lost))) -ge 1 ]
ok $? "trials were parked ($(count low-0001 park)) or lost ($(count low-0001 lost))"

# ---- near the time limit: the steps get SIGUSR2, and the task is requeued
sed 's/"slow"/"late"/; s/workers = 2/workers = 1/; s/max_trials = 6/max_trials = 2/' slow.conf >late.conf
rm -f go
timeout 900 dl run late.conf >out 2>&1 &
pid=$!
wait_for 300 sh -c 'ls late-0001/trials/*/a.1/log'
late=$(squeue -h -n late -o %A | head -1) # by name, because a preempted job may still run
scancel --signal=USR2 "$late"
wait_for 300 sh -c 'cat late-0001/log/0*/0* | grep -q "\"op\":\"park\""'
ok $? "the trial was parked"
wait_for 300 sh -c "scontrol show job $late | grep -q 'Restarts=[1-9]'"
ok $? "its task was requeued"
touch go
wait $pid
is $? 0 "it comes back, and the sweep completes"
is "$(count late-0001 result)" 2 "two results"
is "$(count late-0001 fail)" 0 "the time limit does not count as a failure"

# ---- a folder name with characters that Slurm expands in paths
for name in 'back\slash' 'b\100%j'; do
    mkdir "$name"
    sed 's/"slow"/"odd"/; s/entrypoint = .*/entrypoint = "dl log loss=1";/; s/max_trials = 6/max_trials = 2/' slow.conf >"$name/odd.conf"
    (cd "$name" && timeout 300 dl run odd.conf >out 2>&1)
    is $? 0 "a sweep in $name"
    sed 's/^/# /' "$name/out" | tail -3
    job=$(cat "$name"/odd-0001/log/0*/0* | sed -n 's/.*"op":"submit".*"job":"\([0-9]*\)".*/\1/p' | head -1)
    is "$(cd "$name/odd-0001/workers" && echo *.log)" "${job}_1.log ${job}_2.log" "the output of each task"
done

# ---- mistakes
sed 's/workers = 4; partition = "low"/workers = 1; partition = "nope"/' low.conf >nope.conf
runs 6 "a job that Slurm rejects: exit status" dl run nope.conf
like "$(cat out)" 'sbatch: .*partition' "and Slurm's reason"
done_testing
