#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl job in batch scripts, under salloc, and submitting its own job.
. "$srcdir/tests/lib.sh"
need_slurm
try_cluster job --nodes=2 || skip_all "no cluster"
unset DL_FREEZE
dl=$builddir/launcher/dl

conditions () { # conditions NAME: print its true conditions
    "$dl" show --json "$1" | json '*(c["type"] + ":" + c["reason"] for c in d["conditions"] if c["status"] and c["type"] != "Created")'
}
attempts () {
    "$dl" show --json "$1" | json 'd["trials"][0]["attempts"]'
}
has_ended () {
    ! squeue -h -j "$1" -o %T 2>/dev/null | grep -q .
}
run_script () { # run_script NAME OPTION...: submit NAME.sh, and wait until it ends
    script=$1
    shift
    chmod +x "$script.sh"
    job=$(sbatch --parsable --output="$work/$script.out" "$@" "$script.sh")
    wait_for 300 has_ended "$job"
}

# ---- a program of two processes that fails twice and resumes from its file
program ranks.sh <<'END'
[ "$SLURM_PROCID" = 0 ] || exec sleep 4
n=$(cat state 2>/dev/null || echo 0)
n=$((n + 1))
echo "$n" >state
echo "step $n of $SLURM_NTASKS on $SLURM_JOB_NUM_NODES"
[ "$n" -eq 3 ] || exit 3
END

# in a batch script it uses the nodes of the job
printf '#!/bin/sh\nexec "%s" job --dir="%s" -- ./ranks.sh\n' "$dl" "$work" >batch.sh
run_script batch --nodes=2 --ntasks-per-node=1
is "$(grep -x 'step [1-3] of 2 on 2' batch.out | tr '\n' ' ')" "step 1 of 2 on 2 step 2 of 2 on 2 step 3 of 2 on 2 " "in a batch script it uses the job's nodes, and passes on the program's output"
is "$(conditions ranks) $(attempts ranks)" "Succeeded:TrainingCompleted 3" "it succeeds at its third start, in one job"
is "$(scontrol show job "$job" | grep -o 'JobState=[A-Z]* \|ExitCode=[0-9:]*' | tr -d '\n ')" "JobState=COMPLETEDExitCode=0:0" "in Slurm's view, too"
is "$(dl show --json ranks | json 'd["state"]')" completed "dl show"
sed 's/^/# /' batch.out

# under salloc
timeout 300 salloc --quiet --nodes=2 --ntasks-per-node=1 "$dl" job --dir="$work" --name=shell -- ./ranks.sh >salloc.out 2>&1
is "$? $(conditions shell) $(attempts shell)" "0 Succeeded:TrainingCompleted 3" "under salloc"

# submitted
timeout 300 "$dl" job --name=sent --nodes=2 --set worker.heartbeat=1 -- ./ranks.sh >sent.out 2>&1
is "$? $(conditions sent) $(attempts sent)" "0 Succeeded:TrainingCompleted 3" "submitted"

# ---- more nodes than exist: the job would wait forever
refused 6 "^dl: resources.nodes_per_trial: 5 nodes are more than the 2 that a job of partition low can have; " "more nodes than the partition has" "$dl" job --nodes=5 --set 'resources.partition="low"' -- ./ranks.sh

# ---- a job that fails sets the exit status of its script, and prints why
printf '#!/bin/sh\n"%s" job --dir="%s" --name=fails -- sh -c "exit 9"\nexit $?\n' "$dl" "$work" >fails.sh
run_script fails --nodes=1
is "$(scontrol show job "$job" | grep -o 'ExitCode=[0-9:]*')" "ExitCode=1:0" "one that fails has status 1"
like "$(cat fails.out)" '^dl: job .*fails-0001: Failed: SameCause: .*exit status 9' "and says why"

reason () { # reason NAME: print the reason of the failed trial, without the job's number
    "$dl" show --json "$1" | python3 -c 'import json, re, sys; print(re.sub("job [0-9]+", "job N", json.load(sys.stdin)["trials"][0]["why"]))'
}
# ---- a program of one process is a step, too: it runs on the node of the allocation, which salloc is not
timeout 300 salloc --quiet --nodes=1 --ntasks=1 "$dl" job --dir="$work" --name=alone -- sh -c 'echo "step ${SLURM_STEP_ID-none} on $SLURMD_NODENAME"; exit 5' >alone.out 2>&1
is "$(grep -o '^step .*' alone.out | tr '\n' ' ')" "step 0 on n1 step 1 on n1 step 2 on n1 " "one process under salloc runs as a step"
is "$(reason alone)" "exit status 5: step 2 on n1" "its reason names no rank"

# ---- a requeued job goes on with the files of an attempt that was killed, and does not say that there are none
program again.prog <<'END'
n=$(cat state 2>/dev/null || echo 0)
echo "begins at $n"
[ "$n" -eq 0 ] || exit 0
echo 7 >state
echo saved
exec sleep 600
END
printf '#!/bin/sh\nexec "%s" job --dir="%s" --name=again -- ./again.prog\n' "$dl" "$work" >again.sh
chmod +x again.sh
job=$(sbatch --parsable --requeue --open-mode=append --output="$work/again.out" again.sh)
wait_for 300 grep -qs '^saved' again.out
scontrol requeue "$job"
wait_for 300 has_ended "$job"
is "$(grep -c '^begins at 7' again.out) $(grep -c 'starts without files' again.out)" "1 0" "a requeued job finds its files"

# ---- the ranks cannot report to the worker: the user is told
timeout 300 salloc --quiet --nodes=2 --ntasks-per-node=1 env HOME="$work/ranks.sh" "$dl" job --dir="$work" --name=homeless -- true >homeless.out 2>&1
is "$? $(grep -c '^dl: trial 1, attempt 1: cannot detect hangs and lost nodes in this attempt: ~/.slurm-dl/ranks\.[0-9a-f.]* (of .*/ranks.sh): Not a directory' homeless.out)" "0 1" "without a usable home, a job runs, and its output says what it cannot see"
like "$("$dl" show homeless)" ' attempt 1: cannot detect hangs and lost nodes in this attempt: ' "so does dl show"

# ---- srun cannot start the ranks: the reason is what it says, not a note of dl or of the plugin
timeout 300 salloc --quiet --nodes=1 --ntasks=1 "$dl" job --dir="$work" --name=large --ntasks-per-node=4 -- true >large.out 2>&1
is "$? $(reason large)" "1 exit status 1: srun: error: Unable to create step for job N: More processors requested than permitted" "more ranks than fit into the allocation"
like "$(cat large.out)" 'Failed: SameCause: exit status 1: srun: error: Unable to create step for job [0-9]*: More processors requested than permitted; ' "the job's output says so, too"
memory='environment.variables={SLURM_MEM_PER_CPU="100";SLURM_MEM_PER_NODE="100";}'
timeout 300 salloc --quiet --nodes=1 --ntasks=2 "$dl" job --dir="$work" --name=memory --ntasks-per-node=2 --set "$memory" -- true >memory.out 2>&1
is "$? $(reason memory)" "1 exit status 1: srun: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive." "variables that contradict each other"
timeout 300 salloc --quiet --nodes=1 --ntasks=2 "$dl" job --dir="$work" --name=nested --ntasks-per-node=2 -- sh -c 'srun -n 900 true; echo it is wrong; exit 7' >nested.out 2>&1
like "$(reason nested)" '^exit status 7: it is wrong: rank' "the srun of a program that continues is not the reason"

# ---- roles: a chief that succeeds ends the job, although servers never exit
cat >tf.conf <<'END'
name = "tf";
worker = { grace = 3; heartbeat = 1; };
job = { roles = (
    { name = "chief"; command = "echo it is $DL_ROLE $DL_ROLE_INDEX of $DL_ROLE_COUNT; sleep 1"; },
    { name = "ps"; count = 2; command = "echo it is $DL_ROLE $DL_ROLE_INDEX of $DL_ROLE_COUNT; exec sleep 600"; },
    { name = "worker"; count = 2; command = "echo it is $DL_ROLE $DL_ROLE_INDEX of $DL_ROLE_COUNT; exec sleep 600"; }
); };
END
timeout 300 salloc --quiet --ntasks=5 "$dl" job tf.conf >tf.out 2>&1
is "$? $(conditions tf) $(attempts tf)" "0 Succeeded:ChiefSucceeded 1" "roles: the job ends with the chief"
role_job () { # role_job NAME KEYS ROLE...: run it, and print its conditions and attempts
    printf 'name = "%s";\nworker = { grace = 3; heartbeat = 1; };\njob = { %s roles = ( %s ); };\n' "$1" "$2" "$3" >"$1.conf"
    timeout 300 salloc --quiet --ntasks=3 "$dl" job "$1.conf" >"$1.out" 2>&1
    echo "$? $(conditions "$1") $(attempts "$1")"
}
ps='{ name = "ps"; command = "exec sleep 600"; }'
is "$(role_job first '' "$ps, { name = \"worker\"; count = 2; command = \"test \$DL_ROLE_INDEX = 0 || exec sleep 600\"; }")" "0 Succeeded:ChiefSucceeded 1" "no chief: the first worker"
is "$(role_job all 'success_policy = "all_workers";' "$ps, { name = \"worker\"; count = 2; command = \"sleep \$DL_ROLE_INDEX; exit 0\"; }")" "0 Succeeded:AllWorkersSucceeded 1" "all workers"
is "$(role_job any 'success_policy = "any";' "$ps, { name = \"worker\"; count = 2; command = \"test \$DL_ROLE_INDEX = 1 || exec sleep 600\"; }")" "0 Succeeded:AnyWorkerSucceeded 1" "any worker"
is "$(role_job never '' "{ name = \"chief\"; command = \"exec sleep 600\"; }, { name = \"ps\"; count = 2; restart_policy = \"never\"; command = \"test \$DL_ROLE_INDEX = 1 || exec sleep 600; exit 4\"; }")" \
    "1 Failed:RoleFailed 1" "a server that fails, and is not restarted"
like "$(cat never.out)" 'Failed: RoleFailed: ps 1 on n[12]: exit status 4; see ' "it is named, with its node"
is "$(role_job codes '' "{ name = \"chief\"; command = \"test \$DL_ATTEMPT = 2 || exec sleep 600\"; }, { name = \"worker\"; count = 2; restart_policy = \"exit_code\"; command = \"test \$DL_ATTEMPT = 2 || kill -9 \$\$; exec sleep 600\"; }")" \
    "0 Succeeded:ChiefSucceeded 2" "one that is killed restarts because of its exit code, with all others"

# ---- after a requeue, the same command continues the same experiment
program long.sh <<'END'
echo "$SLURM_RESTART_COUNT" >>starts
[ -e "$GO" ] || exec sleep 600
END
printf '#!/bin/sh\nexport GO="%s/go"\nexec "%s" job --dir="%s" -- ./long.sh\n' "$work" "$dl" "$work" >again.sh
chmod +x again.sh
job=$(sbatch --parsable --requeue --open-mode=append --output="$work/again.out" --nodes=1 again.sh)
wait_for 120 sh -c "cat '$work'/long-0001/trials/0001/a.1/work/starts"
touch go
scontrol requeue "$job"
wait_for 300 sh -c "scontrol show job $job | grep -q JobState=COMPLETED"
ok $? "a job that was requeued ends"
is "$(ls -d long-*) $(conditions long)" "long-0001 Succeeded:TrainingCompleted" "it continued its experiment"
sed 's/^/# /' again.out

# ---- near the time limit: in a batch script, submitted, and under salloc, all at the same time
program limit.sh <<'END'
[ -e begun ] && exec echo "went on after $(cat begun)"
echo "attempt $DL_ATTEMPT" >begun
exec sleep 600
END
printf '#!/bin/sh\nexec "%s" job --dir="%s" --name=batched -- ./limit.sh\n' "$dl" "$work" >batched.sh
chmod +x batched.sh
job=$(sbatch --parsable --time=1 --requeue --open-mode=append --output="$work/batched.out" --nodes=1 batched.sh)
beside submitted "$dl" job --name=submitted --set 'resources.time="0:01:00"' --set worker.heartbeat=1 -- ./limit.sh
beside inside salloc --quiet --time=1 --nodes=1 "$dl" job --dir="$work" --name=inside -- ./limit.sh
ended inside
is "$? $(conditions inside)" "75 Restarting:Parked" "under salloc, the job can only stop before the time limit"
like "$(cat inside.out)" "^dl: inside-0001 has not ended; run 'dl resume inside-0001' to continue" "and says how to continue"
wait_for 300 has_ended "$job"
ended submitted
is $? 0 "a submitted job is requeued before the time limit, and succeeds"
for name in batched submitted; do
    is "$(conditions $name) $(attempts $name)" "Succeeded:TrainingCompleted 2" "$name: it continued"
    is "$(count $name-0001 fail) $(count $name-0001 park)" "0 1" "the time limit does not count as a failure"
    like "$(cat $name-0001/trials/0001/a.2/log)" '^went on after attempt 1$' "and it had the file of its first attempt"
done
is "$(scontrol show job "$job" | grep -o 'Restarts=[0-9]*\|JobState=[A-Z]*' | xargs)" "JobState=COMPLETED Restarts=1" "the batch job is the same"
like "$(cat batched.out)" "^dl: batched-0001 continues when Slurm restarts job $job\$" "and its output says why it restarted"

# ---- dl pause suspends a job
printf 'name = "pause";\nentrypoint = "sleep 600";\njob = { };\nworker = { heartbeat = 1; grace = 2; };\n' >pause.conf
timeout 60 "$dl" job --detach pause.conf >out 2>&1
wait_for 120 sh -c "ls '$work'/pause-0001/trials/0001/a.1/log"
"$dl" pause pause >out 2>&1
wait_for 120 sh -c "! squeue -h | grep -q ."
is "$(conditions pause)" "Suspended:ExperimentPaused" "dl pause: suspended, and no job is left"
"$dl" kill pause >out 2>&1
unharmed
done_testing
