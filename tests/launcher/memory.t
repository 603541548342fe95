#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trials that run out of memory: a halved parameter, a larger job, jobs that Slurm refuses.
. "$srcdir/tests/lib.sh"

conf () { # conf NAME COMMAND SEARCHER HYPERPARAMETERS [MORE]
    cat >"$1.conf" <<END
name = "$1"; entrypoint = "$2";
searcher = { metric = "loss"; $3 };
hyperparameters = { $4 };
reproducibility = { experiment_seed = 3; };
worker = { heartbeat = 1; lease = 60; grace = 2; };
$5
END
}
entries () { # entries NAME OP: print the log's entries of this kind
    cat "$1"/log/0*/0* | grep "\"op\":\"$2\""
}

# ---- GPU memory
program gpu.sh <<'END'
if [ "$1" -gt 40 ]; then
    echo "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    exit 1
fi
dl log loss="$1"
END
batch='batch = { type = "categorical"; vals = [16, 32, 64, 128]; on_oom = "halve"; };'
conf half './gpu.sh {batch}' 'name = "asha"; max_trials = 8; max_length = 4;' "$batch"
runs 0 "a batch that is too large: completed" dl run --local --workers 1 half.conf
is "$(entries half-0001 fail | grep -c '"free":true')" "$(entries half-0001 fail | wc -l)" "no failure counts"
like "$(cat out)" 'trial [0-9]+ +CUDA OOM: .*; exit status 1; retried with batch = 32 instead of 64$' "dl run says what happened"
shown () { # shown: print the number of trials, and whether each result belongs to its point
    dl show half --json | python3 -c '
import json, sys
t = json.load(sys.stdin)["trials"]
print(len(t), all(x["hyperparameters"]["batch"] == x["best"] <= 40 for x in t))'
}
is "$(shown)" "8 True" "results belong to the points that were run"
like "$(dl show half)" ' why$' "the table has the reason"
rm -f half-0001/log/*.pack
is "$(shown)" "8 True" "the log says it all"
is "$(python3 -c 'import json; print(json.load(open("half-0001/trials/0001/a.1/hparams.json"))["batch"])')" \
    "$(entries half-0001 begin | sed -n '1s/.*"hparams":{"batch":\([0-9]*\)}.*/\1/p')" "the first attempt has the searcher's point"

conf ints './gpu.sh {n}' 'name = "random"; max_trials = 1;' \
    'n = { type = "int"; minval = 30; maxval = 30000; default = 4096; on_oom = "halve"; };' 'max_restarts = 0;'
runs 0 "an integer" dl run --local ints.conf
is "$(entries ints-0001 fail | sed 's/.*"hparams":{"n":\([0-9]*\)}.*/\1/' | tr '\n' ' ')" "2048 1024 512 256 128 64 32 " "powers of two remain powers of two"
conf bound './gpu.sh {n}' 'name = "random"; max_trials = 1;' \
    'n = { type = "int"; minval = 50; maxval = 30000; default = 110; on_oom = "halve"; };' 'max_restarts = 1;'
runs 1 "no value is small enough: the trial fails" dl run --local bound.conf
is "$(entries bound-0001 fail | grep -c '"free"') $(entries bound-0001 fail | wc -l)" "1 3" "which counts"
conf plain './gpu.sh {n}' 'name = "random"; max_trials = 1;' 'n = { type = "int"; minval = 50; maxval = 300; };' 'max_restarts = 1;'
timeout 300 dl run --local plain.conf >out 2>&1
is "$(entries plain-0001 fail | grep -c '"x"') $(entries plain-0001 fail | wc -l)" "0 2" "without on_oom nothing is halved"

conf many './gpu.sh {n}' 'name = "random"; max_trials = 20;' 'n = { type = "int"; minval = 1; maxval = 128; on_oom = "halve"; };'
timeout 300 dl run --local many.conf >out 2>&1
like "$(dl failures many)" 'n >= (4[1-9]|[5-9].): 100 % of these trials failed, ' "dl failures counts by the first value"

bad () { # bad EXPECTED WHAT: expect an error for bad.conf
    refused 2 "$1" "$2" dl run --dry-run bad.conf
}
conf bad true 'name = "random"; max_trials = 1;' 'n = { type = "int"; minval = 1; maxval = 9; on_oom = "double"; };'
bad "^bad.conf:3: hyperparameter 'n': 'on_oom' must be \"halve\"$" "another word"
conf bad true 'name = "random"; max_trials = 1;' 'n = { type = "categorical"; vals = ["a", "b"]; on_oom = "halve"; };'
bad "'on_oom' needs numbers in 'vals'$" "choices that are no numbers"
conf bad true 'name = "random"; max_trials = 1; repeats = 2;' "$batch"
bad "'on_oom' cannot be used with 'searcher.repeats'$" "repeats"
conf bad true 'name = "custom"; command = "./c"; max_trials = 1;' "$batch"
bad "'on_oom' cannot be used with the searcher custom$" "a program that chooses the points"
one='n = 1;'
conf bad true 'name = "single";' "$one" 'resources = { memory = "16G"; max_memory = "8G"; };'
bad "'resources.max_memory' \(8G\) is less than 'resources.memory' \(16G\)$" "less than the least"
conf bad true 'name = "single";' "$one" 'resources = { max_memory = "lots"; };'
bad "'resources.max_memory' must be an amount of memory, such as \"64G\"$" "no amount"
conf bad true 'name = "single";' "$one" 'resources = { max_memory = "8G"; sbatch_args = ["--mem-per-cpu=1G"]; };'
bad "'resources.max_memory' needs 'resources.memory' instead of --mem" "two words for it"

# ---- job memory: Slurm kills the step until its job has 8G
mkdir bin
program bin/srun <<'END'
while [ "$1" != -- ]; do shift; done
if [ "$MIB" -lt "$WANTS" ]; then
    echo "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0. Some of your processes may have been killed"
    exit 137
fi
shift
exec "$@"
END
program bin/sbatch <<'END'
echo "$*" >>"$ASKED"
[ -z "$SAYS" ] || { echo "sbatch: error: $SAYS" >&2; exit 1; }
expr 100 + "$(wc -l <"$ASKED")"
END
program bin/scontrol <<'END'
echo "$*" >>"$ASKED.scontrol"
exit 1
END
PATH=$work/bin:$PATH
export ASKED="$work/asked" WANTS=8192 SAYS=
conf grow 'dl log loss=1' 'name = "random"; max_trials = 2;' 'x = { type = "float"; minval = 0; maxval = 1; };' \
    'resources = { ranks_per_node = 2; workers = 1; memory = "4G"; max_memory = "16G"; }; max_restarts = 0; max_failed = 1;'
timeout 300 dl run --detach grow.conf >/dev/null 2>&1
like "$(cat asked)" ' --mem=4G ' "the first job has the memory of the experiment file"
in_job () { # in_job JOB MIB COMMAND...: run it as a task of this job
    job=$1 mib=$2
    shift 2
    env SLURM_JOB_ID="$job" SLURM_ARRAY_JOB_ID="$job" SLURM_ARRAY_TASK_ID=1 SLURM_MEM_PER_NODE="$mib" MIB="$mib" timeout 300 "$@" >>said 2>&1
}
work_in () { # work_in JOB MIB NAME: run its worker, and requeue as the job script does
    in_job "$1" "$2" dl worker "$3"
    status=$?
    [ $status -ne 77 ] || in_job "$1" "$2" dl requeue -- "$3" $status
}
work_in 101 4096 grow-0001
is $status 77 "a worker whose job is too small leaves"
like "$(sed -n 2p asked)" ' --array=1-1 .* --mem=6G ' "a larger job takes its place"
like "$(entries grow-0001 fail)" '"memory":6442450944,"status":137,"cause":"OutOfMemory","why":"out of memory \(killed by the kernel\); retried with 6G of memory instead of 4G"' "the log"
like "$(dl show grow)" '^memory: 6G for each trial, since some ran out of it$' "dl show says it"
work_in 102 6144 grow-0001
like "$(sed -n 3p asked)" ' --mem=9G ' "and again"
work_in 103 9216 grow-0001
is $status 0 "until it is enough"
is "$(count grow-0001 result) $(count grow-0001 fail)" "2 2" "the other trial started with it"
is "$(wc -l <asked)" 3 "no job requested more"

timeout 300 dl run --detach --set 'resources.max_memory="5G"' grow.conf >/dev/null 2>&1
export WANTS=80000
: >asked
work_in 101 4096 grow-0002
like "$(cat asked)" ' --mem=5G ' "not more than max_memory"
work_in 101 5120 grow-0002
is $status 0 "after that it is a failure"
is "$(count grow-0002 exit)" 2 "of both trials"

: >asked
timeout 300 dl run --detach grow.conf >/dev/null 2>&1
export SAYS="Memory specification can not be satisfied"
work_in 101 4096 grow-0003
is "$(count grow-0003 exit)" 1 "Slurm has no such job: the trial has failed"
like "$(dl show grow-0003)" '^memory: 4G for each trial.*; Slurm has no more$' "the others have results"
like "$(dl show grow-0003 1)" 'last failure: out of memory: Slurm has no job with 6G for each trial$' "and the reason"
like "$(cat asked.scontrol)" '^requeue 101_1$' "its worker continues"

# ---- events that someone else put into the log
put () {
    "$builddir/tests/launcher/putevent" "$@"
}
dir=$(timeout 300 dl run --no-workers grow.conf)
put "$dir" '{"op": "begin", "by": "u", "trial": 1, "length": 1, "x": [0.5]}'
put "$dir" '{"op": "fail", "by": "u", "trial": 1, "attempt": 1, "free": true, "memory": 9000000000000000000}'
put "$dir" '{"op": "fail", "by": "u", "trial": 1, "attempt": 2, "free": true, "memory": -1}'
is "$(dl show "$dir" | grep -c '^memory')" 0 "more than the experiment allows is ignored"
put "$dir" '{"op": "fail", "by": "u", "trial": 1, "attempt": 3, "free": true, "x": [0.25]}'
like "$(dl show "$dir" 1)" '"x": 0.25' "another point"
put "$dir" '{"op": "fail", "by": "u", "trial": 1, "attempt": 4, "free": true, "x": [7]}' 2>/dev/null
runs 5 "an invalid point is damage" dl show "$dir"
like "$(cat out)" 'a trial goes on where there is no point' "and is named"

# ---- Slurm killed a worker with its step: its successor requests more memory
printf '#!/bin/sh\necho OUT_OF_MEMORY\n' >bin/sacct
chmod +x bin/sacct
: >asked
export SAYS=
conf step '[ $DL_ATTEMPT -gt 1 ] || sleep 300; dl log loss=1' 'name = "random"; max_trials = 1;' 'x = 1;' \
    'resources = { workers = 1; memory = "4G"; max_memory = "16G"; };'
timeout 300 dl run --detach step.conf >/dev/null 2>&1
env SLURM_JOB_ID=101 SLURM_ARRAY_JOB_ID=101 SLURM_ARRAY_TASK_ID=1 SLURM_STEP_ID=0 SLURM_MEM_PER_NODE=4096 dl worker step-0001 >>said 2>&1 &
pid=$!
wait_for 300 test -e step-0001/trials/0001/a.1/log
kill -9 $pid
wait $pid 2>/dev/null
in_job 101 4096 env SLURM_STEP_ID=1 DL_LAST_STATUS=137 dl worker step-0001
is $? 77 "its job is too small"
like "$(entries step-0001 fail)" '"free":true,"memory":6442450944,"cause":"OutOfMemory","why":"out of memory; retried with 6G of memory instead of 4G"' "the log"
in_job 101 4096 dl requeue -- step-0001 77
work_in 102 6144 step-0001
is "$status $(count step-0001 result)" "0 1" "a larger one gives a result"

# ---- a job that did not request memory: each of its two workers gets half of the job's memory
conf shared 'dl log loss=1' 'name = "random"; max_trials = 1;' 'x = 1;' 'resources = { ranks_per_node = 2; workers = 2; max_memory = "16G"; };'
timeout 300 dl run --detach shared.conf >/dev/null 2>&1
in_job 101 8192 env SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 WANTS=9000 dl worker shared-0001
like "$(entries shared-0001 fail)" '"memory":6442450944,"status":137,"cause":"OutOfMemory","why":"out of memory.*; retried with 6G of memory instead of 4G"' "it had half of the job's memory"
done_testing
