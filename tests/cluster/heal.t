#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# An unmodified DDP training survives ranks that die, stop and hang, and lost nodes, within its allocation.
. "$srcdir/tests/lib.sh"
need_hosts
need_cluster
. "$srcdir/tests/cluster/heal.sh"
try_cluster heal --nodes=4 --cpus=4 --gpus=2 --hosts --conf=SlurmdTimeout=3600 --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no cluster"
bridge=mcb$(cat "$(dirname "$SLURM_CONF")/place")

experiment () { # experiment NAME RESOURCES: submit one, and make it the current one
    wait_for 300 sh -c '! sinfo -h -N -o %t | grep -qv "^idle$"'
    submit_training "$1" 2 "$2"
}

# ---- a process dies, stops, hangs.  scancel does not return, as when slurmctld is down, until the test says so.
mkdir bin
scancel=$(command -v scancel)
program bin/scancel <<END
echo "\$\$" >"$work/scancel.pid"
until [ -e "$work/scancel.go" ]; do sleep 1; done
exec "$scancel" "\$@"
END
export PATH="$work/bin:$PATH"
experiment spare "spares = 1;"
kill_rank () { kill -9 "$(of_rank 3 python3)"; }
fault "a rank is killed" kill_rank
told '^[0-9]+ rank 3 on n2 was killed by signal 9 \(Killed\)$' "it is named"
job=$(squeue -h -o %A)
stop_rank () { kill -STOP "$(of_rank 1 python3)"; }
fault "a rank is stopped" stop_rank
told '^[0-9]+ rank 1 on n1 is stopped \(SIGSTOP\), and no rank has made progress for 1[0-9] s' "it is named"
told 'rank 1 is stopped \(SIGSTOP\)' "with the stacks of all"
is "$(find "$trial/a.$((attempt - 1))/stacks/dump-1" -name 'rank-[0-3]' | wc -l | tr -d ' ')" 4 "which are kept"
hang () { # not before step 30: dl must know how long steps take
    wait_for 300 sh -c "[ \$(grep -c '^step=' '$trial/a.$attempt/log') -ge 30 ]"
    touch "$work/hang.2"
}
fault "a collective does not end" hang
told 'no rank has made progress for [0-9]+ s, since [0-9:]+$' "it is told"
kill_proxy () { kill -9 "$(of_rank 2 dl)"; }
fault "a proxy is killed" kill_proxy
told 'rank 2 on n2 (is gone: its processes were killed|was killed by signal 9)' "it is told"
# ---- a node is lost: the spare replaces it
unplug () { ip link set "$bridge.2" down; }
fault "a node is unplugged" unplug
told 'node n2 does not answer; 2 ranks there' "the node is named"
told 'n2 is left out' "and left out"
kill -0 "$(cat scancel.pid)"
ok $? "the worker has not waited for scancel"
touch scancel.go
wait_for 60 sh -c "! kill -0 $(cat scancel.pid) 2>/dev/null"
ok $? "which then cancels the step"
PATH=${PATH#*:}
wait_for 60 test "$(processes python3 | wc -l)" -ge 4
is "$(for p in $(processes python3); do tr '\0' '\n' <"/proc/$p/environ" | sed -n 's/^SLURMD_NODENAME=//p'; done | sort -u | tr '\n' ' ')" \
    "n1 n3 " "the spare has its ranks"
is "$(squeue -h -o %A)" "$job" "in the same job"
like "$(dl show spare 1)" 'attempt 1: rank 3 on n2 was killed by signal 9' "dl show prints what was done"
like "$(cat spare-0001/workers/*.log)" 'trial 1, attempt 1: rank 3 on n2 was killed' "so does the output of the worker"
like "$(cat "$trial/a.2/log")" '^dl: rank 1 on n1 is stopped' "and the log"
ip link set "$bridge.2" up
unplug_spare () { ip link set "$bridge.3" down; }
fault "the spare is unplugged, and the first node is back" unplug_spare
told 'n3 is left out' "the spare is left out"
told 'n2 answers again$' "and the first node replaces it"
is "$(scontrol show job "$job" | grep -o 'Restarts=[0-9]*')" "Restarts=0" "without a requeue"
ip link set "$bridge.3" up
end spare
is "$(causes spare)" "RankDied RankStopped Hang RankDied NodeLost NodeLost " "the causes are in the log"

# ---- a node fails its check: the stand-in driver reports a bad GPU there
mkdir gpus
ln -s "$builddir/tests/fakes/.libs/nvml.so" gpus/libnvidia-ml.so.1
export FAKE_FAULTS=n2:ecc:0 LD_LIBRARY_PATH="$work/gpus"
experiment bad "spares = 1; gpus_per_node = 2;"
fault "a proxy is killed on a bad node" kill_proxy
told 'dl check on n2: bad, and it is left out: n2: GPU ' "the check is told"
like "$(dl show bad)" 'machine n2 is excluded: it failed its check after a rank had died' "and the node is excluded"
end bad
is "$(causes bad)" "CheckFailed " "which was the cause"
unset FAKE_FAULTS LD_LIBRARY_PATH

# ---- a step of a flow heals in the same way
cat >code/mends.conf <<END
name = "mends";
steps = { train = {
    retries = 3;
    entrypoint = "/usr/bin/python3 healed.py --work $work --resume ckpt.pt";
    resources = { nodes_per_trial = 2; ranks_per_node = 2; framework = "torch"; spares = 1; };
}; };
END
wait_for 300 sh -c '! sinfo -h -N -o %t | grep -qv "^idle$"'
rm -f "$work/enough"
dl flow run code/mends.conf >out 2>&1
is $? 0 "mends: submitted"
trial=mends-0001/steps/train/0
attempt=1
kill_rank () { kill -9 "$(of_rank 3 python3)"; }
fault "a rank of a step is killed" kill_rank
told '^[0-9]+ rank 3 on n2 was killed by signal 9 \(Killed\)$' "it is named"
job=$(squeue -h -o %A)
fault "a collective of a step does not end" hang
told 'no rank has made progress for [0-9]+ s, since [0-9:]+$' "it is told"
fault "a node of a step is unplugged" unplug
told 'n2 is left out' "and left out"
wait_for 60 test "$(processes python3 | wc -l)" -ge 4
is "$(for p in $(processes python3); do tr '\0' '\n' <"/proc/$p/environ" | sed -n 's/^SLURMD_NODENAME=//p'; done | sort -u | tr '\n' ' ')" \
    "n1 n3 " "the spare has its ranks"
is "$(squeue -h -o %A)" "$job" "in the same job"
like "$(dl flow show mends train)" 'attempt 1: rank 3 on n2 was killed by signal 9' "dl flow show prints what was done"
is "$(dl flow show --json mends train | json 'd["results"][0]["healing"][0]["attempt"]')" 1 "and its JSON"
touch "$work/enough"
ip link set "$bridge.2" up # or Slurm waits for SlurmdTimeout to see the job end there
wait_for 300 sh -c '[ -z "$(squeue -h -o %A)" ]'
rm "$work/enough"
is "$(dl flow show mends | sed 1q)" "$PWD/mends-0001: completed" "it ends"
is "$(cat mends-0001/log/*/* | grep -o '"cause": *"[A-Za-z]*"' | sort -u | xargs)" "cause:Hang cause:NodeLost cause:RankDied" "the causes are in the log"

# ---- no spare: the job shrinks; a node that comes back is used again; a slurmd is killed
experiment shrink "min_nodes = 1;"
fault "a node is unplugged, without a spare" unplug
like "$(cat "$trial/a.$attempt/log")" '^2 ranks begin' "two ranks continue"
ip link set "$bridge.2" up
kill_rank () { kill -9 "$(of_rank 1 python3)"; }
fault "a rank is killed, and the host is back" kill_rank
like "$(cat "$trial/a.$attempt/log")" '^4 ranks begin' "it is used again"
# while slurmctld cannot start steps, a failed check says nothing about the node: dl waits for slurmctld
without_slurmctld () {
    kill -STOP "$slurmctld"
    kill_proxy
    wait_for 300 grep -q 'rank 2 on n2 is gone' "$trial/a.$attempt/healing"
    sleep 15
    kill -CONT "$slurmctld"
}
slurmctld=$(cat "$(dirname "$SLURM_CONF")/run/slurmctld.pid")
fault "a proxy is killed while slurmctld is stopped" without_slurmctld
told 'dl check on n2: (good|Slurm starts no step, on no other node either)$' "the check blames nobody"
like "$(cat "$trial/a.$attempt/log")" '^4 ranks begin' "and no node is excluded"
kill_slurmd () {
    kill -9 "$(cat "$(dirname "$SLURM_CONF")/run/slurmd-n2.pid")"
    kill -9 "$(of_rank 3 python3)"
}
fault "slurmd is dead" kill_slurmd
told 'dl check on n2: no answer' "its node is found"
end shrink
cluster_down >/dev/null 2>&1

# ---- roles with different resources: a heterogeneous job, with nodes in two components
try_cluster het --nodes=4 --cpus=4 --hosts --conf=SlurmdTimeout=3600 --plugin="$PLUGIN dl=$builddir/launcher/dl"
bridge=mcb$(cat "$(dirname "$SLURM_CONF")/place")
cat >code/het.conf <<END
name = "het";
entrypoint = "/usr/bin/python3 healed.py --work $work [--resume {resume_dir}/ckpt.pt]";
metrics = { pattern = [ "step={step} loss={loss}" ]; };
resources = { framework = "torch"; };
job = { roles = ( { name = "chief"; }, { name = "worker"; count = 2; cpus = 4; } ); };
END
dl job --detach code/het.conf >out 2>&1
is $? 0 "het: submitted"
begins het
nodes_of_ranks () { # print each rank of the current attempt with its node
    for p in $(processes python3); do tr '\0' '\n' <"/proc/$p/environ" | sed -n 's/^SLURM_PROCID=/ /p; s/^SLURMD_NODENAME=//p' | sort | xargs; done | sort | xargs
}
unplug_for_a_while () {
    echo "# $(nodes_of_ranks)"
    unplug
    wait_for 120 grep -q 'does not answer' "$trial/a.$attempt/healing"
    ip link set "$bridge.2" up
}
fault "het: a worker's node is unplugged, and comes back" unplug_for_a_while
told '^[0-9]+ node n2 does not answer; 1 rank there$' "het: the node is named"
told 'n2 answers again$' "het: and tried again"
is "$(scontrol show job -o | grep -c 'Restarts=0 ')" 2 "het: in the same job"
all_avoid () { [ "$(scontrol show job -o | grep -c ' ExcNodeList=n2 ')" -eq 2 ]; }
# Slurm reconsiders a pending heterogeneous job only after some change, which a busy cluster always has.
starts_again () {
    scontrol update nodename=n4 comment="$(date +%N)"
    squeue -h -t running -o %i | grep -q '+0$'
}
unplug_until_requeued () {
    unplug
    wait_for 120 grep -q 'goes back into the queue' "$trial/a.$attempt/healing"
    wait_for 60 all_avoid
    # reconnect the node, or Slurm waits for SlurmdTimeout to see the job end there
    ip link set "$bridge.2" up
    wait_for 120 starts_again
}
fault "het: a worker's node is unplugged, and stays so" unplug_until_requeued
told 'node n2 does not answer; 1 rank there$' "het: the node is named again"
told 'too few nodes are left: the job goes back into the queue$' "het: the job is requeued"
is "$(scontrol show job -o | grep -c 'Restarts=1 ')" 2 "het: the same job"
all_avoid
ok $? "het: all of its components avoid the node"
echo "# $(nodes_of_ranks)"
like "$(dl show het)" 'machine n2 is excluded: it did not answer' "het: the node is excluded"
end het
is "$(causes het)" "NodeLost NodeLost " "het: the causes"
sed 's/^/# /' ./*-0001/workers/*.log
done_testing
