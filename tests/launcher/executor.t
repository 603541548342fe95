#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How workers are started: locally with their own devices, and as Slurm arrays when Slurm refuses.
. "$srcdir/tests/lib.sh"
unset DL_DIR CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES
real=$(readlink -f "$(command -v dl)")

conf () { # conf NAME TRAINER RESOURCES [MORE-SEARCHER]
    cat >"$1.conf" <<END
name = "$1";
entrypoint = "$2 # {x}"; working_folder = "shared";
searcher = { name = "random"; metric = "loss"; max_trials = 6; max_concurrent_trials = 0; $4 };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { $3 };
reproducibility = { experiment_seed = 5; };
worker = { heartbeat = 1; lease = 60; grace = 5; };
END
}

# ---- time limits that no attempt can meet: one trial resumes from its checkpoint, one starts over
program long.sh <<'END'
trap 'exit 0' TERM
start=1
[ "$1" = goes ] && [ -f kept.goes ] && start=$(($(cat kept.goes) + 1))
for step in $(seq "$start" 60); do
    dl log --step "$step" loss=1
    echo "$step" >"kept.$1"
    sleep 0.2
done
END
limited () { # limited NAME: run one worker in a new job that ends in 15 s
    SLURM_JOB_ID=1 SLURM_JOB_END_TIME=$(($(date +%s) + 15)) timeout 300 dl worker "$1" >/dev/null 2>&1
}
for name in goes stays; do
    cat >$name.conf <<END
name = "$name"; entrypoint = "./long.sh $name"; max_restarts = 1;
searcher = { name = "single"; metric = "loss"; max_length = 60; };
hyperparameters = { x = 1; };
worker = { heartbeat = 1; lease = 30; grace = 2; };
END
    dir=$(timeout 300 dl run --no-workers $name.conf)
    # More attempts for "stays": one that by chance gets further than those before it does not count as a failure.
    [ $name = goes ] && times="1 2 3" || times="1 2 3 4 5 6"
    for _ in $times; do limited "$dir"; done &
    limited="$limited $!"
done

# ---- no worker is left: dl wait gives up after 30 to 60 s
conf left 'exec sleep 1000' 'workers = 1;'
dir=$(timeout 300 dl run --no-workers left.conf)
timeout 300 dl worker "$dir" >/dev/null 2>&1 &
pid=$!
wait_for 300 test -e left-0001/trials/0001/a.1/log
kill $pid
wait $pid
beside waits dl wait --timeout=200 left
# The rest of this test runs meanwhile.

# ---- GPUs of local workers
mkdir dev none
touch dev/nvidia0 dev/nvidia1 dev/nvidia2 dev/nvidia3 dev/nvidiactl
program show.sh <<'END'
echo "gpus=$CUDA_VISIBLE_DEVICES$ROCR_VISIBLE_DEVICES cores=$(nproc)"
sleep 0.3
dl log loss=$DL_TRIAL
END
gpus () { # gpus NAME: print the sets of GPUs that the trials saw
    sed -n 's/^gpus=\([^ ]*\) .*/\1/p' "$1"/trials/*/a.*/log | sort -u | tr '\n' ' '
}
conf two ./show.sh 'workers = 2; slots_per_trial = 2;'
runs 0 "two GPUs for each of two workers" env "DL_DEVICE_FOLDER=$work/dev" dl run --local two.conf
is "$(gpus two-0001)" "0,1 2,3 " "each worker has its own GPUs"
runs 0 "two GPUs for two workers that need two each" env ROCR_VISIBLE_DEVICES=5,6 "DL_DEVICE_FOLDER=$work/dev" dl run --local --set searcher.max_trials=2 two.conf
is "$(gpus two-0002)" "5,6 " "only those in the variable"
like "$(cat out)" '^dl: 1 of 2 workers: this machine has 2 GPUs, a trial needs 2$' "and a line says so"
like "$(cat out)" ' 1 worker \(local\)' "one worker works"
CUDA_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c timeout 300 dl run --local --workers 1 --set searcher.max_trials=2 two.conf >out 2>&1
is "$(gpus two-0003)" "GPU-a,GPU-b " "names that are not numbers"
runs 2 "no GPUs: exit status" env "DL_DEVICE_FOLDER=$work/none" dl run --local two.conf
is "$(cat out)" "dl: a trial needs 2 GPUs ('resources.slots_per_trial') and this machine has 0" "no GPUs: one line"
holds "no GPUs: nothing is created" [ ! -e two-0004 ]

# ---- cores
cores=$(nproc)
conf cores ./show.sh "workers = 1; cpus_per_trial = 1;"
timeout 300 dl run --local --set searcher.max_trials=2 cores.conf >out 2>&1
is "$(sed -n 's/.*cores=//p' cores-0001/trials/*/a.1/log | sort -u)" 1 "a worker gets the cores that it requests"
timeout 300 dl run --local --workers $((cores + 1)) cores.conf >out 2>&1
is "$(sed -n 's/.*cores=//p' cores-0002/trials/*/a.1/log | sort -u)" "$cores" "too few cores for all: no worker is bound"

# ---- options that need Slurm
conf ranks ./show.sh 'nodes_per_trial = 2; ranks_per_node = 2;'
runs 2 "ranks without Slurm: exit status" dl run --local ranks.conf
like "$(cat out)" "^dl: 'resources.nodes_per_trial' and 'ranks_per_node' need Slurm" "ranks without Slurm"
conf both ./show.sh 'ranks_per_node = 2;
trials_per_task = 2;'
runs 2 "ranks and several trials in a task: exit status" dl run --dry-run both.conf
like "$(cat out)" "^both.conf:6: 'resources.trials_per_task' is for trials of one process" "with its line"

# ---- more and fewer local workers
program slow.sh <<'END'
trap 'exit 0' TERM
while [ ! -f go ]; do sleep 0.1; done
dl log loss=$DL_TRIAL
END
conf slow ./slow.sh 'workers = 1;'
timeout 300 dl run --local slow.conf >out 2>&1 &
pid=$!
claims () { # claims: attempts that are claimed and have not ended
    echo $(($(find slow-0001/trials -name 'a.*' | wc -l) - $(count slow-0001 park)))
}
wait_for 300 sh -c 'ls slow-0001/trials/0001/a.1/log'
timeout 300 dl scale 3 slow >said 2>&1
is $? 0 "scale up"
holds "three workers work" wait_for 300 sh -c '[ "$(find slow-0001/trials -name "a.*" | wc -l)" -eq 3 ]'
timeout 300 dl scale 1 slow >said 2>&1
is $? 0 "scale down"
is "$(cat slow-0001/log/0*/0* | grep -o '"slots":"[^"]*"' | sed 's/local-[0-9]*-/L/g')" '"slots":"L3 L2"' "the highest-numbered ones will end"
holds "two trials are parked" wait_for 300 sh -c '[ "$(cat slow-0001/log/0*/0* | grep -c "\"op\":\"park\"")" -eq 2 ]'
is "$(claims)" 1 "one is trained"
timeout 300 dl scale none slow >said 2>&1
is $? 2 "an invalid number"
touch go
wait $pid
is $? 0 "the sweep completes"
is "$(count slow-0001 result)" 6 "six results"
is "$(count slow-0001 fail)" 0 "none failed"
timeout 300 dl scale 2 slow >said 2>&1
is $? 2 "an experiment that has ended is not scaled"

# A worker that is to leave has its GPU until it has left; the one that replaces it waits for that.
program holds.sh <<'END'
trap 'touch told.$DL_TRIAL; while [ ! -e leave ]; do sleep 0.1; done; exit 0' TERM
echo "gpus=$CUDA_VISIBLE_DEVICES cores=1"
touch "holds.$DL_TRIAL"
while [ ! -e go ]; do sleep 0.1; done
dl log loss=$DL_TRIAL
END
rm go
conf holds ./holds.sh 'workers = 2; slots_per_trial = 1;'
sed -i 's/grace = 5/grace = 250/' holds.conf
mkdir pair
touch pair/nvidia0 pair/nvidia1
DL_DEVICE_FOLDER=$work/pair timeout 300 dl run --local holds.conf >out 2>&1 &
pid=$!
wait_for 300 sh -c '[ -e holds.1 ] && [ -e holds.2 ]'
timeout 300 dl scale 1 holds >said 2>&1
wait_for 300 sh -c 'ls told.*'
timeout 300 dl scale 3 holds >said 2>&1
wait_for 300 grep -q '^dl: 2 of 3 workers: ' out
touch leave
wait_for 300 sh -c '[ "$(find holds-0001/trials -name "a.*" | wc -l)" -eq 3 ]'
touch go
wait $pid
is "$? $(count holds-0001 result)" "0 6" "scaled up while a worker is leaving"
is "$(gpus holds-0001)" "0 1 " "each trial had one GPU"

# ---- an experiment without workers, and a worker that is started by hand
rm -f go
conf hand 'dl log loss=1' 'workers = 1;'
is "$(timeout 300 dl run --no-workers hand.conf)" "$work/hand-0001" "run --no-workers prints the folder"
timeout 300 dl worker hand-0001
is $? 0 "a worker that was started by hand"
like "$(dl ls)" 'hand-0001 +completed' "it completes the experiment"

# ---- Slurm signals the deepest process first, so a trainer may exit before its worker gets the signal
program late.sh <<'END'
setsid sh -c "touch ready; while kill -0 $$; do :; done 2>/dev/null; kill -15 $PPID" &
while [ ! -e ready ]; do sleep 0.1; done
exit 1
END
conf late ./late.sh 'workers = 1;'
sed -i 's|"./late.sh.*"|["./late.sh"]|' late.conf
SLURM_JOB_ID=1 timeout 300 dl run --local late.conf >out 2>&1 &
pid=$!
wait_for 300 sh -c "cat late-0001/log/0*/0* | grep -qE '\"op\":\"(park|fail)\"'"
is "$(count late-0001 park) $(count late-0001 fail)" "1 0" "the exit status of a trainer that was stopped does not count as a failure"
start=$(date +%s)
kill $pid
wait $pid
[ $(($(date +%s) - start)) -lt 250 ]
ok $? "stopped local workers in an allocation do not wait for Slurm"

# ---- what a killed worker leaves in TMPDIR
tmp=$(mktemp -d /tmp/dl-test.XXXXXX) # short, because dl uses /tmp instead of a long TMPDIR
conf dead ./slow.sh 'workers = 1;'
dir=$(timeout 300 dl run --no-workers dead.conf)
TMPDIR=$tmp dl worker "$dir" >/dev/null 2>&1 &
pid=$!
wait_for 300 sh -c 'ls -d '"$tmp"'/slurm-dl.??????/s'
live=$(ls -d "$tmp"/slurm-dl.??????)
touch -d '1 hour ago' "$live"
mkdir -p "$tmp"/slurm-dl.abcdef/code/deep "$tmp"/slurm-dl.abcdef/code.0001.2/deep "$tmp"/slurm-dl.notour
mkdir "$tmp"/slurm-dl.abcdef/.0123456789abcdef0123456789abcdef
touch "$tmp"/slurm-dl.notour/precious
touch go
dir=$(timeout 300 dl run --no-workers hand.conf)
rm go
TMPDIR=$tmp timeout 300 dl worker "$dir"
holds "an unused folder is removed" [ ! -e "$tmp"/slurm-dl.abcdef ]
holds "that of a running worker is not" [ -S "$live/s" ]
holds "nor one with other files" [ -f "$tmp"/slurm-dl.notour/precious ]
kill -9 $pid
wait $pid 2>/dev/null
dir=$(timeout 300 dl run --no-workers hand.conf)
TMPDIR=$tmp timeout 300 dl worker "$dir"
holds "that of a killed worker is" [ ! -e "$live" ]
conf litter 'mkdir -p $TMPDIR/slurm-dl.abcdef; dl log loss=1' 'workers = 1;'
TMPDIR=$tmp timeout 300 dl run --local litter.conf >out 2>&1
is "$(ls "$tmp")" "slurm-dl.notour" "dl run --local leaves none"
mkdir "$tmp"/slurm-dl.abcdef
TMPDIR=$tmp timeout 300 dl gc hand >out 2>&1
is "$(ls "$tmp")" "slurm-dl.notour" "nor does dl gc"
rm -r "$tmp"
dir=$(timeout 300 dl run --no-workers hand.conf)
TMPDIR=$work/show.sh timeout 300 dl worker "$dir"
is "$?$(count "$dir" result)" 06 "an unusable TMPDIR: /tmp is used"

# ---- a Slurm that refuses, from stand-ins for its commands
mkdir bin
program bin/sbatch <<'END'
echo "sbatch $*" >>"$CALLS"
for a; do case $a in
    --array=1-*) n=${a#--array=1-} ;;
    --output=*) [ -z "$OUTPUT" ] || printf '%s\n' "$OUTPUT" >"$(dirname "${a#--output=}")/$((100 + $(wc -l <"$CALLS")))_1.log" ;;
    --exclude="$NOHOST") echo "sbatch: error: Batch job submission failed: Invalid node name specified" >&2; exit 1 ;;
esac; done
[ -n "$MEANWHILE" ] && dl label "$MEANWHILE" kept >/dev/null
if [ -n "$SAY" ]; then
    echo "$SAY" >&2
    exit 1
fi
if [ -n "$FULL" ]; then
    echo "sbatch: error: Slurm job queue full, sleeping and retrying" >&2
    exec sleep 280
fi
if [ "$n" -gt "${SIZE:-1000}" ]; then
    echo "sbatch: error: Batch job submission failed: Invalid job array specification" >&2
    exit 1
fi
sum=$(($(cat "$CALLS.sum" 2>/dev/null || echo 0) + n))
if [ "$sum" -gt "${LIMIT:-100000}" ]; then
    echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2
    echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)" >&2
    exit 1
fi
echo $sum >"$CALLS.sum"
echo "sbatch: warning: something else" >&2
echo "$((100 + $(wc -l <"$CALLS")));cluster"
END
program bin/squeue <<'END'
echo "squeue $*" >>"$CALLS"
case "$*" in
*--states=all*) echo "${ENDED:+101|1|$ENDED}" ;;
*) echo "$TASKS" | tr ' ' '|' ;;
esac
END
program bin/scancel <<'END'
echo "scancel $*" >>"$CALLS"
END
program bin/scontrol <<'END'
echo "scontrol $*" >>"$CALLS"
[ -n "$ACCESS" ] && exit 0
echo "no access" >&2
exit 1
END
PATH=$work/bin:$PATH
CALLS=$work/calls
export CALLS
submits () { # submits NAME: print the submitted arrays as "JOB:FIRST-LAST ..."
    cat "$1"/log/0*/0* | sed -n 's/.*"op":"submit".*"job":"\([0-9]*\)","first":\([0-9]*\),"last":\([0-9]*\).*/\1:\2-\3/p' | tr '\n' ' '
}
# Start these now: they ask Slurm only after some seconds.
for name in failed cancelled forgotten output venv pending; do
    conf $name ./show.sh 'workers = 1;'
done
no_job () { # no_job NAME STATE [OUTPUT]: start dl run; its job ends in STATE
    beside "$1" env CALLS="$work/calls.$1" ENDED="$2" TASKS= OUTPUT="${3:-}" dl run "$1.conf"
}
no_job failed FAILED
no_job cancelled CANCELLED
no_job forgotten ''
no_job output FAILED 'srun: error: n1: task 0: Exited with exit code 7'
no_job venv FAILED "dl: 'environment.venv': there is no program 'nv/bin/python'
srun: error: n1: task 0: Exited with exit code 7"
wait_for 300 test -s venv-0001/workers/101_1.log
for command in wait watch; do
    beside "${command}_venv" env CALLS="$work/calls.$command" TASKS= dl $command venv
done
beside pending env CALLS="$work/calls.pending" TASKS='101 1 PENDING PartitionConfig' dl run pending.conf
conf many './show.sh {x}' 'workers = 10; memory = "2G";'
: >calls
runs 0 "an array that is too large" env SIZE=3 dl run --detach many.conf
is "$(submits many-0001)" "103:1-2 104:1-2 105:1-2 106:1-2 107:1-2 " "becomes several"
is "$(cat out)" "$work/many-0001" "and nothing is printed about it"
like "$(dl show many)" "^no worker of job 107 has started: submitted 20[-0-9]* [0-9:]*, [0-9.hms]* ago; see 'squeue --jobs=107'( .its nodes must see this folder, which is on [a-z0-9]*, this machine's own.)?$" "show: since when a job waits"
like "$(cat calls)" '^sbatch .* --signal=USR2@60 .*--ntasks=1 .*--mem=2G .*/many-0001/workers/job.sh$' "what sbatch gets"
sh -n many-0001/workers/job.sh
ok $? "the script is one"
rm -f calls.sum
: >calls
runs 0 "a limit on submitted jobs" env LIMIT=7 dl run --detach many.conf
is "$(submits many-0002)" "102:1-5 104:1-2 " "it uses what Slurm grants"
like "$(cat out)" '^dl: 7 of 10 workers: sbatch: .*QOSMaxSubmitJobPerUserLimit$' "and says so"
holds "in one line" [ "$(wc -l <out)" -eq 2 ]
rm -f calls.sum
LIMIT=0 timeout 300 dl run --detach many.conf >out 2>&1
is "$? $(ls -d many-0003 2>/dev/null)" "6 " "nothing granted: exit status, and no experiment"
like "$(cat out)" 'QOSMaxSubmitJobPerUserLimit; .*; no experiment was created' "one line says so"
: >calls
begin=$(date +%s)
runs 6 "a full queue: exit status" env FULL=1 dl run --detach many.conf
[ $(($(date +%s) - begin)) -lt 250 ]
ok $? "dl does not wait for sbatch"
[ "$(wc -l <calls)" -le 64 ]
ok $? "and does not call it for ever ($(wc -l <calls))"

# ---- a pending job
holds "a pipe gets the reason for which a job waits" wait_for 300 grep -q '^ .*s  job [0-9,]*: PENDING *PartitionConfig: the partition does not have what the job requests now$' pending.out
# shellcheck disable=SC2154
kill -INT "$beside_pending"
ended pending

# ---- a job that ended before a worker took a trial
gone () { # gone NAME PATTERN TEXT: check what the command printed once Slurm had no job left
    ended "$1"
    is $? 8 "$1: exit status"
    like "$(cat "$1.out")" "$2" "$3"
}
gone failed "^dl: no worker is left: job [0-9]* \(FAILED\) has left no output in $work/failed-0001/workers: its nodes do not see that folder( .[a-z0-9]*, this machine's own.)?; run 'dl resume' to continue$" \
    "a folder that the nodes do not see"
gone cancelled "^dl: no worker is left: job [0-9]* was cancelled before it started; run 'dl resume' to continue$" "a job that was cancelled"
gone forgotten "do not see that folder.*, or it was cancelled before it started; run 'dl resume' to continue$" "one that Slurm has forgotten"
gone output '^dl: no worker is left' "where there is output"
is "$(grep -c 'do not see' output.out)" 0 "the nodes have seen it"

why="'environment.venv': there is no program 'nv/bin/python'; see $work/venv-0001/workers/101_1.log"
gone venv "^dl: no worker is left: $why; run 'dl resume' to continue$" "what the workers said before they took a trial"
for command in wait watch; do
    gone "${command}_venv" "^dl: $work/venv-0001: no worker is left: $why; run 'dl resume venv-0001' to continue$" "dl $command ends, and says it, too"
done
is "$(dl show venv | grep '^no worker')" "no worker of job 101 has started: $why; when that is fixed, 'dl resume venv-0001' starts others" "and so does dl show"
beside queued env TASKS='101 1 PENDING' dl wait --timeout=40 venv

# ---- a permanent refusal leaves no experiment; after a lost answer the experiment stays, because the job may exist
nope='sbatch: error: invalid partition specified: nope
sbatch: error: Batch job submission failed: Invalid partition name specified'
conf bad './show.sh {x}' 'workers = 1; partition = "nope";'
out=$(SAY=$nope timeout 300 dl run bad.conf 2>&1)
is $? 6 "permanently rejected: exit status"
is "$out" "dl: sbatch: invalid partition specified: nope; Batch job submission failed: Invalid partition name specified; no experiment was created; correct the file or use --set, and run again" "one line says why, and what to do"
is "$(ls -dA bad-* .removed* 2>/dev/null)" "" "nothing is left of it"
out=$(SAY='sbatch: error: lua: no jobs on Fridays
sbatch: error: Batch job submission failed: Unspecified error' timeout 300 dl run bad.conf 2>&1)
is "$? $(ls -dA bad-* .removed* 2>/dev/null)" "6 " "rejected for an unknown reason: nothing is left, either"
is "$(printf '%s' "$out" | grep -o 'lua: no jobs on Fridays' | wc -l)" 1 "and the site's reason is printed once"
out=$(MEANWHILE=bad-0001 SAY=$nope timeout 300 dl run bad.conf 2>&1)
like "$out" "; 'dl resume bad-0001' starts workers once this is corrected; 'dl resume --set KEY=VALUE bad-0001' corrects its file$" "an experiment in use is kept"
like "$(dl show bad-0001)" '^labels: kept$' "with everything in it"
out=$(SAY=$nope timeout 300 dl resume bad-0001 2>&1)
is "$? $(dl ls | grep -c '^bad-0001 *running')" "6 1" "so is what existed before"
out=$(SAY='sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' timeout 300 dl run bad.conf 2>&1)
is $? 6 "a lost answer: exit status"
like "$out" "timed out .*; the experiment is $work/bad-0002: 'dl resume bad-0002' starts it again; if its file is wrong, 'dl rm --force bad-0002' removes it$" "the job may be there, so the experiment is"
is "$(dl ls | grep -c '^bad-0002 *running')" 1 "for its workers"

rm -f calls.sum
: >calls
out=$(timeout 300 dl resume --detach --set resources.partition=good bad-0001 2>&1)
is "$? $(grep -c -e '--partition=good ' calls)" "0 1" "dl resume --set corrects it"
out=$(timeout 300 dl resume --detach --set searcher.max_trials=9 bad-0001 2>&1)
is "$? $out" "2 dl: --set searcher.max_trials: an existing experiment can change only resources.time, memory, max_memory, partition, account, qos and sbatch_args, and searcher.max_hours and max_gpu_hours; 'dl fork --set' creates another one" "but not the search"
out=$(timeout 300 dl resume --detach --set 'resources.memory=a lot' bad-0001 2>&1)
is "$? $(grep -c 'a lot' bad-0001/experiment.conf)" "2 0" "and not to nonsense"
like "$(tr -d ' \n' <bad-0001/experiment.conf)" 'workers=1;partition="good"' "the experiment has the new value"

# ---- empty sbatch_args
for none in '""' '[]' '()' '["", " "]'; do
    conf none ./show.sh "workers = 1; sbatch_args = $none;"
    : >calls
    out=$(timeout 300 dl run --detach none.conf 2>&1)
    is "$? $(sed 's/.* --cpus-per-task=1 //' calls)" "0 -- $out/workers/job.sh" "sbatch_args = $none means none"
done
rm -f calls.sum
conf lanes ./show.sh 'workers = 5; trials_per_task = 2; slots_per_trial = 1; cpus_per_trial = 3; memory = "500M"; time = "5";'
: >calls
timeout 300 dl run --detach lanes.conf >out 2>&1
like "$(cat calls)" ' --array=1-3 .*--nodes=1 --ntasks=2 --ntasks-per-node=2 --cpus-per-task=3 --gpus-per-node=2 --mem=1000M ' "several trials in a task"
holds "no signal within a short limit" [ "$(grep -c -e --signal calls)" -eq 0 ]
like "$(cat lanes-0001/workers/job.sh)" '^ +srun --input=none --kill-on-bad-exit=0 --wait=0 --nodes=1 --ntasks=2 --cpus-per-task=3 .$' "its workers are a step"
conf ranks ./show.sh 'workers = 1; nodes_per_trial = 2; ranks_per_node = 4; slots_per_trial = 8;'
: >calls
timeout 300 dl run --detach ranks.conf >out 2>&1
like "$(cat calls)" '--nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=1 --gpus-per-node=4' "a trial of several ranks"

# ---- if Slurm refuses to requeue a task with work left, the task submits a new array
: >calls
runs 0 "again" env SLURM_JOB_ID=101 SLURM_ARRAY_JOB_ID=101 SLURM_ARRAY_TASK_ID=2 SLURM_CPU_BIND=none dl requeue lanes-0001 75
like "$(cat calls)" '^scontrol requeue 101_2$' "it tries to requeue"
like "$(cat calls)" '^sbatch .* --array=1-1 ' "then an array of one task is submitted"
is "$(cat lanes-0001/log/0*/0* | grep -c '"op":"submit"')" 2 "and recorded in the log"

# ---- a node that is excluded
program fail.sh <<'END'
[ "$SLURMD_NODENAME" = n8 ] || { echo "GPU 3 fell off the bus"; exit 1; }
[ "$DL_TRIAL" = 1 ] || while [ ! -f go ]; do sleep 0.1; done
dl log loss=$DL_TRIAL
END
conf host ./fail.sh 'workers = 1;'
sed -i 's/^name/max_restarts = 1; name/' host.conf
echo 'log_policies = ({ name = "bus"; pattern = "fell off the bus"; action = "exclude_node"; });' >>host.conf
rm -f go
dir=$(timeout 300 dl run --no-workers host.conf)
SLURMD_NODENAME=n8 timeout 300 dl worker --slot good "$dir" &
pid=$!
wait_for 300 sh -c 'cat host-0001/log/0*/0* | grep "\"op\":\"result\""'
SLURMD_NODENAME=n7 timeout 300 dl worker --slot bad "$dir"
is $? 76 "a worker leaves its node, which is excluded"
rm -f calls.sum
: >calls
runs 0 "its task continues elsewhere" env SLURM_JOB_ID=101 SLURM_ARRAY_JOB_ID=101 SLURM_ARRAY_TASK_ID=2 dl requeue "$dir" 76
like "$(cat calls)" '^sbatch .*--array=1-1 .*--exclude=n7 ' "in an array that avoids it"
: >calls
runs 0 "a node that Slurm does not know" env NOHOST=n7 SLURM_JOB_ID=101 SLURM_ARRAY_JOB_ID=101 SLURM_ARRAY_TASK_ID=2 dl requeue "$dir" 76
is "$(grep -c '^sbatch' calls)" 2 "is not passed on"
: >calls
ACCESS=1 SLURM_JOB_ID=101 SLURM_ARRAY_JOB_ID=101 SLURM_ARRAY_TASK_ID=2 dl requeue "$dir" 76 >out 2>&1 &
again=$!
wait_for 300 grep -q ExcNodeList calls
kill -9 $again
wait $again 2>/dev/null
is "$(cat calls)" "scontrol requeue 101_2
scontrol update JobId=101_2 ExcNodeList=n7" "if scontrol is permitted, it is the same task, with the node excluded"
touch go
wait $pid
is $? 0 "the other worker completes the sweep"
is "$(SLURM_JOB_ID=101 SLURM_ARRAY_JOB_ID=101 SLURM_ARRAY_TASK_ID=2 timeout 300 dl requeue "$dir" 75 2>&1; cat calls)" "$(cat calls)" "then no task continues"

# ---- scale with arrays
rm -f calls.sum
: >calls
conf scale ./show.sh 'workers = 3;'
timeout 300 dl run --detach scale.conf >out 2>&1
job=$(submits scale-0001 | sed 's/:.*//')
TASKS="$job 1 RUNNING
$job 2 RUNNING
$job 3 PENDING"
export TASKS
: >calls
runs 0 "scale up" dl scale 5 scale
like "$(cat calls)" '^sbatch .* --array=1-2 ' "two more"
runs 0 "scale down" dl scale 1 scale
like "$(cat calls)" "^scancel --state=PENDING -- ${job}_3$" "the pending one is cancelled"
like "$(cat scale-0001/log/0*/0*)" "\"slots\":\"${job}_3 ${job}_2\"" "then the highest-numbered one will end"
timeout 300 dl scale 2 scale >out 2>&1
like "$(grep sbatch calls | tail -1)" ' --array=1-1 ' "up again: those that will end do not count"
unset TASKS

# ---- dl show reports jobs from the workers' log entries, without asking Slurm
rm -f calls.sum go
conf busy ./slow.sh 'workers = 1;'
timeout 300 dl run --detach busy.conf >out 2>&1
job=$(submits busy-0001 | sed 's/:.*//')
SLURM_ARRAY_JOB_ID=$job SLURM_ARRAY_TASK_ID=1 timeout 300 dl worker busy-0001 >/dev/null 2>&1 &
pid=$!
wait_for 300 sh -c 'ls busy-0001/trials/0001/a.1/log'
like "$(dl show busy)" "^job $job: workers 1-1, 1 at work$" "a worker of a job is at work"
kill $pid
wait $pid
like "$(dl show busy)" "^job $job: workers 1-1, all have ended$" "all have ended"
is "$(readlink -f "$(command -v dl)")" "$real" "all of this was tested with this dl"
ended waits
is $? 8 "dl wait ends if no worker is left"
like "$(cat waits.out)" "^dl: $work/left-0001: no worker is left; run 'dl resume left-0001' to continue\$" "and says so"
wait $limited
is "$(cat goes-0001/log/0*/0* | grep -c '"op":"park"') $(cat goes-0001/log/0*/0* | grep -c '"op":"fail"')" "3 0" "a trial that continues is parked as often as needed"
is "$(cat stays-0001/log/0*/0* | grep -c '"op":"fail"')" 2 "one that starts over each time fails"
like "$(dl ls)" 'stays-0001 +failed' "and dl gives it up"
like "$(dl show stays 1)" 'time limit is too short' "with the reason"
like "$(dl show stays)" "^run 'dl retry --set resources.time=TIME stays-0001' to continue with a longer time limit than the partition's, of which the last 2 s .worker.grace. are for saving$" "and the command that raises it"
ended queued
is $? 10 "dl wait continues as long as Slurm has a task"
like "$(cat queued.out)" "^dl: $work/venv-0001: no worker of job 101 has started: $why; 'squeue --jobs=101' shows whether it is retried" "and prints the last worker's message"

done_testing
