#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# A training goes on when Slurm itself sets nodes DOWN and takes them from the job, and when hosts freeze.
. "$srcdir/tests/lib.sh"
need_hosts
need_cluster
. "$srcdir/tests/cluster/heal.sh"
try_cluster healdown --nodes=5 --cpus=4 --hosts --conf=SlurmdTimeout=20 --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no cluster"

experiment () { # experiment NAME RESOURCES: submit one, and make it the current one
    wait_for 300 sh -c '! sinfo -h -N -o %t | grep -qEv "^(idle|down.*)$"'
    submit_training "$1" 2 "$2"
}
freeze () { # freeze NODE: kill its slurmd, so that Slurm sets it DOWN, and stop all other processes there
    slurmd=$(cat "$(dirname "$SLURM_CONF")/run/slurmd-$1.pid")
    uts=$(readlink "/proc/$slurmd/ns/uts")
    for p in /proc/[0-9]*; do
        [ "$(readlink "$p/ns/uts" 2>/dev/null)" != "$uts" ] || kill -STOP "${p#/proc/}"
    done
    kill -9 "$slurmd"
}
bridge=mcb$(cat "$(dirname "$SLURM_CONF")/place")
is_down () { # is_down NODE
    sinfo -h -N -n "$1" -o %t | grep -q '^down'
}
nodes_of_job () {
    squeue -h -t running -o %N
}

# ---- Slurm sets two nodes DOWN: an idle spare, and then one with ranks
experiment down "spares = 1; min_nodes = 1;"
freeze_spare () {
    job=$(squeue -h -o %A)
    freeze n3
    wait_for 120 is_down n3
    kill -9 "$(of_rank 3 python3)"
}
fault "down: Slurm sets the spare DOWN, and then a rank dies" freeze_spare
told '^[0-9]+ Slurm has removed n3 from the job, and it is left out$' "down: it is told"
freeze_node () {
    freeze n2
    wait_for 120 is_down n2
}
fault "down: Slurm sets a node with ranks DOWN" freeze_node
told 'n2.* left out$' "down: the node is left out"
like "$(cat "$trial/a.$attempt/log")" '^2 ranks begin' "down: the job has shrunk"
is "$(squeue -h -o %A) $(nodes_of_job)" "$job n1" "down: in the same job"
is "$(scontrol show job "$job" | grep -o 'Restarts=[0-9]*')" "Restarts=0" "down: without a requeue"
end down
like "$(causes down)" '^RankDied (NodeLost|RankStopped) $' "down: the causes, whether Slurm or dl was first"

# ---- the host of the worker is lost with the worker, and a rank on the other host puts the job back into the queue
experiment worker "min_nodes = 1;"
lose_worker () {
    job=$(squeue -h -o %A)
    worker_node=$(scontrol show job "$job" | sed -n 's/.* *BatchHost=//p')
    ip link set "$bridge.${worker_node#n}" down
    freeze "$worker_node"
}
fault "worker: the host of the worker is lost" lose_worker
is "$(squeue -h -o %A)" "$job" "worker: the same job runs again"
is "$(scontrol show job "$job" | grep -o 'Restarts=[0-9]*')" "Restarts=1" "worker: from the queue"
is "$(nodes_of_job | grep -cw "$worker_node")" 0 "worker: without that host"
end worker

# ---- the programs of a host freeze, but Slurm and the kernel there still answer; the same of dl rank alone is no fault
cluster_down >/dev/null 2>&1
try_cluster frozen --nodes=2 --cpus=4 --hosts --plugin="$PLUGIN dl=$builddir/launcher/dl"
experiment frozen ""
stop_reporter () { # for longer than a host may be silent
    kill -STOP "$(of_rank 2 dl)"
    had=$(grep -c '^step=' "$trial/a.1/log")
    wait_for 300 sh -c "[ \$(grep -c '^step=' '$trial/a.1/log') -ge $((had + 150)) ]"
    kill -CONT "$(of_rank 2 dl)"
}
wait_for 300 trains
began=$(date +%s)
stop_reporter
[ $(($(date +%s) - began)) -ge 15 ]
ok $? "frozen: dl rank is stopped for 15 s"
is "$(cat "$trial/a.1/healing" 2>/dev/null)" "" "frozen: nobody is blamed for it"
scontrol suspend "$(squeue -h -o %A)"
sleep 20 # no state to wait for
scontrol resume "$(squeue -h -o %A)"
had=$(grep -c '^step=' "$trial/a.1/log")
wait_for 300 sh -c "[ \$(grep -c '^step=' '$trial/a.1/log') -ge $((had + 20)) ]"
ok $? "frozen: a job that was suspended for 20 s goes on"
is "$(cat "$trial/a.1/healing" 2>/dev/null)" "" "frozen: with nobody blamed"
freeze_ranks () {
    for p in $(of_rank 2 dl) $(of_rank 3 dl) $(of_rank 2 python3) $(of_rank 3 python3); do
        kill -STOP "$p"
    done
}
fault "frozen: the processes of a host are stopped" freeze_ranks
told '^[0-9]+ rank [23] on n2 sends no heartbeat for [12][0-9] s, and no rank makes progress, since' "frozen: a rank is named"
told 'dl check on n2: good$' "frozen: its node is checked"
end frozen
is "$(causes frozen)" "RankStopped " "frozen: the cause"

sed 's/^/# /' ./*-0001/workers/*.log
done_testing
