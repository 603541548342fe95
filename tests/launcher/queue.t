#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl resume and dl retry if Slurm already has tasks of the experiment, may have some, or does not answer.
. "$srcdir/tests/lib.sh"

mkdir bin
cat >bin/sbatch <<'END'
#!/bin/sh
echo "$*" >>asked
[ ! -e refuse ] || { echo "sbatch: error: Socket timed out on send/recv operation" >&2; exit 1; }
expr 100 + "$(wc -l <asked)"
END
cat >bin/squeue <<'END'
#!/bin/sh
[ -e tasks ] || { echo "squeue: error: Unable to contact slurm controller" >&2; exit 1; }
tr ' ' '|' <tasks
END
printf '#!/bin/sh\necho "$*" >>cancelled\n' >bin/scancel
chmod +x bin/*
PATH=$work/bin:$PATH
cat >q.conf <<'END'
name = "q"; entrypoint = "dl log loss=1";
searcher = { name = "random"; metric = "loss"; max_trials = 4; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 2; };
worker = { heartbeat = 1; lease = 60; grace = 2; };
END
resume () { # resume: set its status, and how many times it called sbatch
    : >asked.before
    cp asked asked.before
    timeout 300 dl resume --detach q >out 2>&1
    status=$?
    asked=$(($(wc -l <asked) - $(wc -l <asked.before)))
}
work_in () { # work_in SLOT: run the worker of an array task
    SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=${1%_*} SLURM_ARRAY_TASK_ID=${1#*_} timeout 300 dl worker q-0001 >>said 2>&1
}

timeout 300 dl run --detach q.conf >/dev/null 2>&1
is "$(cat asked | grep -o -e '--array=[^ ]*')" "--array=1-2" "an array of two tasks"

# ---- all tasks are pending
printf '101 1 PENDING\n101 2 PENDING\n' >tasks
resume
is "$status $asked" "0 0" "both are pending: none is added"
like "$(cat out)" "^$work/q-0001: Slurm has 2 tasks for its workers, 2 of them pending: none added; 'dl scale N' changes their number" "and a line says so"
timeout 300 dl resume --detach --workers 1 q >out 2>&1
is "$(tail -n 1 asked | grep -o -e '--array=[^ ]*')" "--array=1-1" "--workers adds some"

# ---- a task is missing: Slurm has 101_2 and 102_1, then only 102_1
printf '101 2 PENDING\n102 1 RUNNING\n' >tasks
resume
is "$status $asked" "0 0" "one pending, one starting"
printf '102 1 PENDING\n' >tasks
resume
is "$status $asked" "0 1" "one is missing: one is added"
is "$(tail -n 1 asked | grep -o -e '--array=[^ ]*')" "--array=1-1" "no more"
is "$(cat q-0001/log/0*/0* | grep '"op":"scale"' | grep -o '"slots":"[^"]*"')" '"slots":"101_1 101_2"' "those that Slurm does not know will end"
work_in 101_2
is "$? $(count q-0001 begin)" "0 0" "if one of them starts anyway it ends at once"

# ---- Slurm does not answer
rm tasks
touch refuse
resume
is "$status $(cat q-0001/log/0*/0* | grep -c '"slots":')" "6 1" "neither squeue nor sbatch: nothing changes"
rm refuse
resume
is "$status $asked" "0 1" "only squeue does not answer: workers are started"
is "$(tail -n 1 asked | grep -o -e '--array=[^ ]*')" "--array=1-2" "all of them"
is "$(cat q-0001/log/0*/0* | grep '"op":"scale"' | tail -n 1 | grep -o '"slots":"[^"]*"')" '"slots":"102_1 103_1"' "and the earlier ones do not double them"
work_in 103_1
is "$(count q-0001 begin)" 0 "none of the earlier ones runs"
work_in 105_1
is "$(count q-0001 result)" 4 "the new ones do"

# ---- arrays with absurd bounds
sed 's/"q"/"h"/' q.conf >h.conf
timeout 300 dl run --no-workers h.conf >/dev/null 2>&1
for last in 9000000000000000000 -9000000000000000000; do
    "$builddir/tests/launcher/putevent" h-0001 "{\"op\": \"submit\", \"by\": \"u\", \"job\": \"9\", \"first\": -$last, \"last\": $last}" 2>/dev/null
    "$builddir/tests/launcher/putevent" h-0001 "{\"op\": \"submit\", \"by\": \"u\", \"job\": \"9\", \"first\": 1, \"last\": $last}"
done
runs 0 "resume ends anyway" dl resume --detach h

# ---- a new time limit: pending tasks with the old limit are cancelled
printf '105 1 PENDING\n' >tasks
sed 's/"q"/"t"/; s/workers = 2/workers = 1; time = "0:10:00"/' q.conf >t.conf
timeout 300 dl run --detach t.conf >/dev/null 2>&1
: >cancelled
timeout 300 dl pause t >/dev/null 2>&1
rm tasks
timeout 300 dl resume --detach --set resources.time=8:00:00 --set resources.max_memory=9G --set resources.memory=2G t >out 2>&1
is "$? $(tail -n 1 asked | grep -o -e '--time=[^ ]*' -e '--mem=[^ ]*' | tr '\n' ' ')" "0 --mem=2G --time=8:00:00 " "resume --set resources.time"
like "$(tail -n 1 cancelled)" '^--state=PENDING' "tasks with the old limit are cancelled"
task=$(cat t-0001/log/0*/0* | sed -n 's/.*"op":"submit".*"job":"\([0-9]*\)".*/\1/p' | tail -n 1)
SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=$task SLURM_ARRAY_TASK_ID=1 timeout 300 dl worker t-0001 >>said 2>&1
is "$? $(count t-0001 result)" "0 4" "its workers use the new file"
is "$(dl wait t 2>&1 | head -n 1)" "$work/t-0001: completed, 4 trials" "and it completes"

# ---- dl retry does the same
sed 's/"q"/"r"/; s/dl log loss=1/false/; s/max_trials = 4/max_trials = 1/' q.conf >r.conf
sed -i '1i max_restarts = 0; max_failed = 4;' r.conf
: >asked
timeout 300 dl run --detach r.conf >/dev/null 2>&1
SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=101 SLURM_ARRAY_TASK_ID=1 timeout 300 dl worker r-0001 >>said 2>&1
printf '101 2 PENDING\n' >tasks
timeout 300 dl retry --detach r 1 >out 2>&1
like "$(cat out)" 'trial is retried' "retry"
is "$(tail -n 1 asked | grep -o -e '--array=[^ ]*')" "--array=1-1" "retry adds the one that is missing"
# ---- srun cannot start the ranks: the worker's job has ended, or slurmctld does not answer
printf '#!/bin/sh\necho "srun: error: Slurm job 7 has expired"\nexit 1\n' >bin/srun
cat >bin/squeue <<'END'
#!/bin/sh
echo >>asks
[ "$(wc -l <asks)" -gt "$(cat deaf)" ] || { echo "slurm_load_jobs error: Unable to contact slurm controller"; exit 1; }
[ ! -s state ] || echo "200|1|$(cat state)"
[ -s state ] || { echo "slurm_load_jobs error: Invalid job id specified"; exit 1; }
END
chmod +x bin/srun
left_over () { # left_over NAME STATE ASKS: run such a worker; squeue fails ASKS times, then reports STATE
    sed "s/\"q\"/\"$1\"/; s/workers = 2/workers = 1; nodes_per_trial = 2/; s/max_trials = 4/max_trials = 1/" q.conf >"$1.conf"
    echo 'max_restarts = 1;' >>"$1.conf"
    timeout 300 dl run --no-workers "$1.conf" >/dev/null 2>&1
    printf '%s' "$2" >state
    echo "$3" >deaf
    : >asks
    SLURM_JOB_ID=7 SLURM_JOB_END_TIME=4000000000 SLURM_ARRAY_JOB_ID=200 SLURM_ARRAY_TASK_ID=1 timeout 300 dl worker "$1-0001" >>said 2>&1
    status=$?
    events="$(count "$1-0001" park) $(count "$1-0001" fail) $(cat "$1"-0001/log/0*/0* | grep -c '"free":true')"
}
left_over ended CANCELLED 0
is "$status $events" "0 1 0 0" "a worker that outlives its job ends, and its trial does not fail"
like "$(tail -n 1 said)" '^dl: the job of this worker has ended; it ends, too$' "it says so"
left_over forgotten '' 0
is "$status $events" "0 1 0 0" "also if Slurm no longer knows the job"
left_over deaf RUNNING 2
is "$events" "0 3 1" "it waits for slurmctld; failures meanwhile do not count"
left_over gone COMPLETING 2
is "$status $events" "0 1 0 0" "it comes back, and the job has ended"
left_over alive RUNNING 0
is "$events" "0 2 0" "in a job that continues a failure counts"

# ---- a package upgrade replaces the program dl while a worker runs it
cat >bin/srun <<'END'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do
    shift
done
SLURM_PROCID=0 exec "$@"
END
mkdir own
cp "$(command -v dl)" own/dl
program upgrade.sh <<END
[ "\$DL_ATTEMPT" != 1 ] || { cp "$work/own/dl" "$work/own/new"; mv "$work/own/new" "$work/own/dl"; exit 3; }
echo loss=1
END
cat >upgraded.conf <<'END'
name = "upgraded";
entrypoint = "./upgrade.sh";
searcher = { name = "single"; metric = "loss"; max_length = 1; };
metrics = { pattern = "loss={loss}"; };
resources = { nodes_per_trial = 2; };
max_restarts = 1;
END
timeout 300 dl run --no-workers upgraded.conf >/dev/null 2>&1
SLURM_JOB_ID=7 SLURM_JOB_END_TIME=4000000000 SLURM_ARRAY_JOB_ID=200 SLURM_ARRAY_TASK_ID=1 timeout 300 own/dl worker upgraded-0001 >>said 2>&1
is "$? $(count upgraded-0001 fail) $(count upgraded-0001 result)" "0 1 1" "the next attempt starts its ranks by the new file"

done_testing
