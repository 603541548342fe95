#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# The host of the worker is at fault: it is cut off from the network, or the worker is stopped.
. "$srcdir/tests/lib.sh"
need_hosts
need_cluster
. "$srcdir/tests/cluster/heal.sh"
try_cluster healhost --nodes=4 --cpus=4 --hosts --conf=SlurmdTimeout=40 --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no cluster"
bridge=mcb$(cat "$(dirname "$SLURM_CONF")/place")

experiment () { # experiment NAME RESOURCES: submit one, and make it the current one
    wait_for 300 sh -c '! sinfo -h -N -o %t | grep -qv "^idle$"'
    submit_training "$1" 1 "$2"
}
was_requeued () {
    scontrol show job "$job" | grep -q 'Restarts=1'
}
find_job () {
    job=$(squeue -h -o %A)
    worker_node=$(scontrol show job "$job" | sed -n 's/.* *BatchHost=//p')
}
excluded () { # excluded NAME: print the machines that it excludes
    dl show "$1" | grep 'is excluded'
}

# ---- the host of the worker is unplugged: it reaches neither the other nodes nor slurmctld
experiment cut "spares = 1;"
unplug_worker () {
    find_job
    ip link set "$bridge.${worker_node#n}" down
    wait_for 180 was_requeued
    ip link set "$bridge.${worker_node#n}" up
}
fault "cut: the host of the worker is unplugged" unplug_worker
told "^[0-9]+ $worker_node reaches no other node: its own network is the likely cause \\(slurmctld does not answer either\\)\$" "cut: it is named"
is "$(grep -c 'left out' "$trial/a.1/healing")" 0 "cut: and no other node is left out"
is "$(excluded cut)" "" "cut: or excluded"
is "$(squeue -h -o %A)" "$job" "cut: the same job runs again"
end cut

# ---- the worker is stopped, and its kernel acknowledges what the ranks send
experiment frozen ""
stop_worker () {
    find_job
    for p in /proc/[0-9]*; do
        case $(cat "$p/cmdline" 2>/dev/null | tr "\0" " ") in
            *"/dl worker -- $work/frozen-0001 ") kill -STOP "${p#/proc/}" ;;
        esac
    done
    wait_for 600 was_requeued
}
fault "frozen: the worker is stopped" stop_worker
told '^[0-9]+ the worker of the job has sent nothing for 5 minutes: the job goes back into the queue$' "frozen: it is told"
is "$(squeue -h -o %A)" "$job" "frozen: the same job runs again"
is "$(excluded frozen)" "" "frozen: no machine is excluded"
end frozen

sed 's/^/# /' ./*-0001/workers/*.log
done_testing
