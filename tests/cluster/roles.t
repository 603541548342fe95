#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl job: GPUs, cores and memory by role, and jobs that start with fewer members.
. "$srcdir/tests/lib.sh"
need_slurm
try_cluster roles --nodes=3 --cpus=4 --gpus=2 --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no cluster"
unset DL_FREEZE
dl=$builddir/launcher/dl

conditions () { # conditions NAME: print its true conditions, and the number of attempts
    "$dl" show --json "$1" | python3 -c 'import json, sys
s = json.load(sys.stdin)
print(*(c["type"] + ":" + c["reason"] for c in s["conditions"] if c["status"] and c["type"] != "Created"), s["trials"][0]["attempts"])'
}
said () { # said NAME: print the output of its last attempt
    cat "$1"-000?/trials/0001/a."$(conditions "$1" | sed 's/.* //')"/log | grep -v '^srun\|^slurmstepd' | sort
}
components () { # print the last three components of heterogeneous jobs that Slurm knows
    scontrol show job -o | grep 'HetJobId=' | tail -3 |
        sed 's/.*NumTasks=\([0-9]*\) CPUs.Task=\([0-9]*\) .*/\1 tasks, \2 cores &/; s/^\([^&]*cores\) .*TresPerTask=gres:gpu:\([0-9]*\).*/\1, \2 GPU/; s/\(cores\) JobId.*/\1/'
}

# ---- the chief and the parameter server need no GPU, the workers one each
cat >het.conf <<'END'
name = "het";
worker = { grace = 3; heartbeat = 1; };
job = { roles = (
    { name = "chief"; command = "echo chief gpu=$CUDA_VISIBLE_DEVICES rank $SLURM_PROCID; sleep 1"; },
    { name = "ps"; command = "echo ps gpu=$CUDA_VISIBLE_DEVICES rank $SLURM_PROCID; exec sleep 600"; memory = "100M"; },
    { name = "worker"; count = 2; cpus = 2; gpus = 1; command = "echo worker $DL_ROLE_INDEX gpu=$CUDA_VISIBLE_DEVICES rank $SLURM_PROCID; exec sleep 600"; }
); };
END
seen='chief gpu= rank 0
ps gpu= rank 1
worker 0 gpu=0 rank 2
worker 1 gpu=1 rank 3'
timeout 300 "$dl" job het.conf >het.out 2>&1
is "$? $(conditions het)" "0 Succeeded:ChiefSucceeded 1" "roles with different needs: one job"
is "$(said het)" "$seen" "only the workers have GPUs"
sed 's/^/# /' het.out
is "$(components)" "1 tasks, 1 cores
1 tasks, 1 cores
2 tasks, 2 cores, 1 GPU" "the components of a heterogeneous job"
is "$(scontrol show job -o | grep -c 'HetJobId=.*MinMemoryCPU=100M')" 1 "memory by role"

# ---- in the user's own allocations
timeout 300 salloc -Q -n1 : -n1 --mem-per-cpu=100M : -n2 -c2 --gpus-per-task=1 "$dl" job --name=own het.conf >own.out 2>&1
is "$? $(conditions own)" "0 Succeeded:ChiefSucceeded 1" "salloc with a component for each role"
is "$(said own)" "$seen" "each has its own component"
timeout 300 salloc -Q -n1 : -n3 -c2 "$dl" job --name=two het.conf >two.out 2>&1
is "$? $(cat two.out)" "2 dl: job: this Slurm job has 2 components, but the roles need 3: one for each group of adjacent roles with the same resources" "components that do not fit"
cat >flat.conf <<'END'
name = "flat";
worker = { grace = 3; heartbeat = 1; };
job = { roles = (
    { name = "chief"; command = "echo chief gpu=$CUDA_VISIBLE_DEVICES; sleep 1"; },
    { name = "worker"; count = 2; gpus = 1; command = "echo worker gpu=$CUDA_VISIBLE_DEVICES; exec sleep 600"; }
); };
END
timeout 300 salloc -Q -N1 -n3 --gpus=2 "$dl" job flat.conf >flat.out 2>&1
is "$? $(said flat)" "0 chief gpu=
worker gpu=0,1
worker gpu=0,1" "an allocation of one component: roles without GPUs see none"

# ---- a chief that ends while the others still connect: they hear at once that they should end
cat >early.conf <<'END'
name = "early";
worker = { grace = 8; heartbeat = 1; };
job = { roles = (
    { name = "chief"; command = "until [ $(ls $DL_ATTEMPT_DIR/up.* 2>/dev/null | wc -l) = 3 ]; do sleep 0.05; done; sleep 0.2"; },
    { name = "worker"; count = 3; command = "trap 'touch $DL_ATTEMPT_DIR/told.$SLURM_PROCID; exit 0' TERM; touch $DL_ATTEMPT_DIR/up.$SLURM_PROCID; while :; do sleep 0.1; done"; }
); };
END
for run in 1 2 3; do
    timeout 300 "$dl" job early.conf >early.out 2>&1
    is "$? $(cd "early-000$run/trials/0001/a.1" && echo told.*)" "0 told.1 told.2 told.3" "a chief that ends at once: the others are asked to end, run $run"
done

# ---- members that can never fit: the job would wait for ever
for case in '{name="worker"; count=13;}:the members need 13 cores, more than the 12 of' '{name="worker"; count=2;},{name="ps"; count=6; cpus=2;}:the members need 14 cores, more than the 12 of' \
    '{name="worker"; cpus=5;}:a member with 5 cores fits on no node of'; do
    for where in 'the default partition' 'partition low'; do
        set -- "$dl" job --set "job.roles=(${case%%:*})"
        [ "$where" = 'partition low' ] && set -- "$@" --set 'resources.partition="low"'
        refused 6 "^dl: job.roles: ${case#*:} $where" "${case%%:*} in $where" "$@" -- sleep 60
    done
done
timeout 300 salloc -Q -n2 "$dl" job --set 'job.roles=({name="worker"; count=9;})' -- true >nine.out 2>&1
status=$?
like "$status $(cat nine.out)" "^2 dl: job: 9 members \(job.roles\) with 1 core each are more than the 2 cores of job [0-9]+$" "more members than the allocation has cores"
printf '#!/bin/sh\nexec "%s" job --name=cpus --set '"'"'job.roles=({name="worker"; gpus=1;})'"'"' -- true\n' "$dl" >cpus.sh
for option in '' --gres=gpu:1 --gpus=1; do
    # shellcheck disable=SC2086
    sbatch -Q -W -n1 $option -o "$work/cpus.out" cpus.sh
    status=$?
    case $option in
        '') like "$status $(cat cpus.out)" "^2 dl: job: the roles need 1 GPU, but job [0-9]+ has none$" "a batch job without GPUs for its roles" ;;
        *) is "$status" 0 "a batch job with $option" ;;
    esac
    # shellcheck disable=SC2086
    timeout 300 salloc -Q -n1 $option "$dl" job --name=gpus --set 'job.roles=({name="worker"; gpus=1;})' -- true >gpus.out 2>&1
    status=$?
    case $option in
        '') like "$status $(cat gpus.out)" "^2 dl: job: the roles need 1 GPU, but job [0-9]+ has none$" "salloc without GPUs" ;;
        *) is "$status" 0 "salloc with $option" ;;
    esac
done

# ---- an evaluator restarts alone
program evaluates.sh <<'END'
echo "$DL_ATTEMPT" >>"$1/evaluations"
[ "$(wc -l <"$1/evaluations")" -ge 2 ] || exit 3
touch "$1/evaluated"
END
cat >alone.conf <<END
name = "alone";
working_folder = "trial";
job = { roles = (
    { name = "chief"; command = "until [ -e '$work/evaluated' ]; do sleep 0.1; done"; },
    { name = "evaluator"; command = "./evaluates.sh '$work'"; }
); };
END
timeout 300 "$dl" job alone.conf >alone.out 2>&1
is "$? $(conditions alone)" "0 Succeeded:ChiefSucceeded 1" "an evaluator fails: the others go on, in the same attempt"
is "$(cat evaluations)" "1
1" "it restarts alone"
like "$(cat alone-0001/trials/0001/a.1/log)" '^dl: rank 1 on n[1-3]: exit status 3: it restarts alone in 10 s$' "it is told"
timeout 300 "$dl" job --name=never --set 'job.roles=({name="chief"; command="sleep 600";},{name="evaluator"; command="exit 3"; restart_policy="never";})' alone.conf >never.out 2>&1
is "$? $(conditions never)" "1 Failed:RoleFailed 1" "one that its policy does not restart fails the job"

# ---- a requeued heterogeneous job continues; a paused one releases all components
printf '#!/bin/sh\necho it >>starts\ntest -e "%s/go" || exec sleep 600\n' "$work" >chief.sh
chmod +x chief.sh
cat >again.conf <<'END'
name = "again";
working_folder = "trial";
worker = { grace = 2; heartbeat = 1; };
job = { roles = (
    { name = "chief"; command = "./chief.sh"; },
    { name = "worker"; gpus = 1; command = "exec sleep 600"; }
); };
END
timeout 300 "$dl" job --detach again.conf >again.out 2>&1
wait_for 120 sh -c "cat '$work'/again-0001/trials/0001/a.1/work/starts"
job=$(squeue -h -o '%i' | sed -n 's/+0$//p')
touch go
scontrol requeue "$job"
timeout 300 "$dl" wait again >out 2>&1
is "$? $(conditions again)" "0 Succeeded:ChiefSucceeded 2" "a requeued heterogeneous job continues"
wait_for 60 sh -c "! squeue -h | grep -q ."
rm go
timeout 300 "$dl" job --detach --name=rest again.conf >rest.out 2>&1
wait_for 120 sh -c "cat '$work'/rest-0001/trials/0001/a.1/work/starts"
timeout 60 "$dl" pause rest >out 2>&1
wait_for 120 sh -c "! squeue -h | grep -q ."
is "$(conditions rest | sed 's/ .*//')" "Suspended:ExperimentPaused" "a paused one: no component is left"
touch go
timeout 300 "$dl" resume rest >out 2>&1
is "$? $(conditions rest | sed 's/ .*//')" "0 Succeeded:ChiefSucceeded" "dl resume submits it again"

# ---- a job starts with as many members as there is room for
cat >few.conf <<'END'
name = "few";
resources = { framework = "torch"; nodes_per_trial = 3; cpus_per_trial = 4; };
worker = { grace = 2; heartbeat = 1; };
entrypoint = "echo rank $RANK of $WORLD_SIZE on $SLURM_JOB_NUM_NODES nodes";
job = { min_available = 2; };
END
hold=$(sbatch --parsable --output=/dev/null -N1 -c4 --exclusive --wrap 'sleep 600')
wait_for 60 sh -c "squeue -h -j $hold -t running | grep -q ."
timeout 300 "$dl" job few.conf >few.out 2>&1
is "$? $(said few)" "0 rank 0 of 2 on 2 nodes
rank 1 of 2 on 2 nodes" "min_available: it does not wait for the third node"
scancel "$hold"
wait_for 60 sh -c "! squeue -h | grep -q ."
timeout 300 "$dl" job --name=all few.conf >all.out 2>&1
is "$? $(said all | wc -l)" "0 3" "but takes all free nodes"
unharmed
done_testing
