#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl job with several ranks: roles, bad nodes, missing spares, and no false alarms.
. "$srcdir/tests/lib.sh"
need_cluster
. "$srcdir/tests/cluster/heal.sh"
try_cluster healjob --nodes=3 --cpus=4 --gpus=2 --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no cluster"

# ---- long silent phases at the start, in an evaluation and in a checkpoint: one rank computes or sleeps, the others wait
cat >code/quiet.conf <<EOF
name = "quiet";
entrypoint = "/usr/bin/python3 healed.py --work $work --quiet 25";
metrics = { pattern = [ "step={step} loss={loss}" ]; };
resources = { nodes_per_trial = 2; framework = "torch"; };
job = { };
EOF
dl job --detach code/quiet.conf >out 2>&1
is $? 0 "quiet: submitted"
begins quiet
wait_for 300 sh -c "[ \$(grep -c '^step=' '$trial/a.1/log') -ge 45 ]"
ok $? "quiet: it gets to its step 45"
# ignore slow ranks: on a busy machine, ranks do wait for cores
is "$(grep -v 'slow' "$trial/a.1/healing" 2>/dev/null)" "" "and nothing was reported as a hang"
sed 's/^/# /' "$trial"/a.*/healing 2>/dev/null
end quiet

# ---- a batch job on a bad node is requeued, and avoids that node
mkdir gpus
ln -s "$builddir/tests/fakes/.libs/nvml.so" gpus/libnvidia-ml.so.1
cat >batch.sh <<EOF
#!/bin/sh
exec dl job --dir="$work" --framework=torch --name=batch --set 'metrics.pattern=["step={step} loss={loss}"]' -- \
    /usr/bin/python3 code/healed.py --work "$work" --resume ckpt.pt
EOF
job=$(FAKE_FAULTS=n2:ecc:0 LD_LIBRARY_PATH=$work/gpus sbatch --parsable --requeue --open-mode=append --output=batch.out --nodes=2 --ntasks-per-node=1 --gpus-per-node=2 batch.sh)
begins batch
kill_proxy () { kill -9 "$(of_rank 1 dl)"; }
fault "a batch job on a bad machine" kill_proxy
is "$(causes batch)" "CheckFailed " "for that cause"
is "$(squeue -h -o '%A %N')" "$job n[1,3]" "it is the same job, elsewhere"
is "$(scontrol show job "$job" | grep -oE 'Restarts=[0-9]+|ExcNodeList=[^ ]*' | xargs)" "Restarts=1 ExcNodeList=n2" "once requeued"
like "$(cat batch.out)" '^dl: trial 1, attempt 1: dl check on n2: bad, and it is left out: n2: GPU ' "its output says why"
like "$(cat batch.out)" '^dl: trial 1, attempt 1: too few nodes are left: the job goes back into the queue' "and what was done"
like "$(dl show batch)" 'attempt 1: dl check on n2: bad, and it is left out' "dl show, too"
is "$(dl show --json batch 1 | json 'sum("is left out" in h["text"] and h["attempt"] == 1 for h in d["healing"])')" 1 "with --json, too"
end batch

# ---- the same for a task of dl run's array
cat >code/array.conf <<EOF
name = "array";
entrypoint = "/usr/bin/python3 healed.py --work $work [--resume {resume_dir}/ckpt.pt]";
searcher = { name = "single"; metric = "loss"; max_length = 1000000; };
metrics = { pattern = [ "step={step} loss={loss}" ]; };
resources = { nodes_per_trial = 2; gpus_per_node = 2; framework = "torch"; };
EOF
FAKE_FAULTS=n2:ecc:0 LD_LIBRARY_PATH=$work/gpus dl run --detach code/array.conf >out 2>&1
is $? 0 "array: submitted"
begins array
wait_for 300 sh -c "squeue -h -t running -o %F | grep -q ."
job=$(squeue -h -o %F_%K)
like "$job" '^[0-9]+_1$' "array: it is a task"
fault "a task on a bad machine" kill_proxy
is "$(causes array)" "CheckFailed " "array: for that cause"
is "$(squeue -h -o '%F_%K %N')" "$job n[1,3]" "array: it is the same task, elsewhere"
is "$(scontrol show job "$job" | grep -oE 'Restarts=[0-9]+|ExcNodeList=[^ ]*' | xargs)" "Restarts=1 ExcNodeList=n2" "array: once requeued"
like "$(cat array-0001/workers/*.log)" '^dl: trial 1, attempt 1: too few nodes are left: the job goes back into the queue' "array: its output says what was done"
like "$(dl show array)" 'machine n2 is excluded: it failed its check after a rank had died' "array: dl show says why"
end array

# ---- roles
cat >code/roles.conf <<EOF
name = "roles";
entrypoint = "/usr/bin/python3 healed.py --work $work [--resume {resume_dir}/ckpt.pt]";
metrics = { pattern = [ "step={step} loss={loss}" ]; };
resources = { nodes_per_trial = 2; framework = "torch"; };
job = { roles = ( { name = "master"; }, { name = "worker"; count = 3; } ); };
EOF
dl job --detach code/roles.conf >out 2>&1
is $? 0 "roles: submitted"
begins roles
kill_rank () { kill -9 "$(of_rank 3 python3)"; }
fault "a worker is killed" kill_rank
stop_rank () { kill -STOP "$(of_rank 1 python3)"; }
fault "a worker is stopped" stop_rank
told 'rank 1 on n1 is stopped \(SIGSTOP\)' "it is named"
fault "the proxy of a worker is killed" kill_proxy
is "$(causes roles)" "RankDied RankStopped RankDied " "the causes"
end roles

# ---- dl gives up on a program that dies at once, whichever rank dies
cat >dies.sh <<'EOF'
#!/bin/sh
[ "$SLURM_PROCID" = "$((DL_ATTEMPT % 2))" ] && exit 7
sleep 1000
EOF
chmod +x dies.sh
timeout 300 dl job --nodes=2 -- ./dies.sh >dies.out 2>&1
is $? 1 "ranks that die at once: it has failed"
like "$(dl show dies)" 'Failed .*SameCause' "after three times for the same cause"
like "$(cat dies.out)" 'attempt 2: rank 0 on n1 ended with exit status 7' "each is reported"

# ---- more spares than there are nodes
timeout 300 dl job --detach --nodes=2 --set resources.spares=2 -- true >bad.out 2>&1
is "$? $(wc -l <bad.out)" "6 1" "a spare that the partition lacks: one line"
like "$(cat bad.out)" 'resources.spares: 2 nodes and 2 spares are more than the 3 that a job of the default partition can have' "it says what to change"
timeout 300 salloc --quiet --nodes=3 dl job --dir="$work" --set resources.spares=1 --name=inside -- sh -c 'echo "$SLURM_STEP_NUM_NODES nodes"' >inside.out 2>&1
is "$(grep -c '^2 nodes' inside.out)" 2 "in an allocation of three, one of them a spare, two nodes are used"
timeout 300 salloc --quiet --nodes=3 dl job --dir="$work" --nodes=3 --set resources.spares=1 -- true >bad.out 2>&1
is "$? $(wc -l <bad.out)" "2 1" "a spare that the allocation lacks is one line"
like "$(cat bad.out)" '3 nodes and 1 spare \(resources.spares\) are more than the 3 of job' "which says so"
done_testing
