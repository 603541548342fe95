#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Another user opens thousands of connections, silent or not, to each port of a job, which continues undisturbed.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/ranks.sh"
steady=$builddir/tests/attacks/steady
for f in "$steady" "$builddir/launcher/dl"; do victim test -x "$f" || skip_all "other users may not run $f"; done
connections=$(often 3000 80000)
idle=$(often 600 3000)
chmod 777 "$work"

ports_are () { # ports_are NUMBER: whether the victim listens at so many ports
    [ "$(ports | grep -c .)" -eq "$1" ]
}
flood () { # flood all ports of the victim; idle connections stay open until calm
    open=$(ports | paste -sd ,)
    rm -f flood.out
    attacker timeout 500 python3 "$network" flood "$open" "$connections" "$idle" 500 >flood.out 2>&1 &
    flooder=$!
    wait_for 60 grep -q ready flood.out
}
flooded () {
    wait_for 400 grep -q stayed flood.out
    sed 's/^/# /' flood.out
}
calm () {
    end "$flooder"
}
port=$(free_port)
rank () { # rank NUMBER GO STOP: run one of two ranks of steady
    victim timeout 600 env RANK="$1" WORLD_SIZE=2 DL_COMM_ADDRESS="127.0.0.1:$port" DL_COMM_NODE="$1" DL_COMM_TIMEOUT=120 \
        "$steady" "$2" "$3" >"$1.out" 2>&1
}

# ---- ranks that meet
rank 0 "$work/go" "$work/stop" &
zero=$!
wait_for 60 ports_are 1
flood
rank 1 "$work/go" "$work/stop" &
one=$!
wait_for 120 grep -q met 1.out
like "$(cat 0.out 1.out)" '^met$' "ranks meet during a flood"
flooded
calm

# ---- the ranks' first connections to each other
wait_for 60 ports_are 2
flood
flooded
touch "$work/go"
wait_for 120 grep -q reduced 0.out
idlers=$flooder
flood
flooded
touch "$work/stop"
wait "$zero"
is $? 0 "ranks that have met connect to each other, and continue"
wait "$one"
is $? 0 "both of them"
sed 's/^/# /' 0.out 1.out
is "$(cat 0.out 1.out | grep -vcE '^met$|^reduced$|^[0-9]+ calls, the longest')" 0 "and nothing from the others"
calm
flooder=$idlers
calm

# ---- the collector of srun
mkfifo life
victim timeout 600 dl gather quick plain <life >gather.out 2>gather.err &
collector=$!
exec 3>life
wait_for 60 grep -q . gather.out
flood
checked () { # checked RANK: run the check of one rank
    victim timeout 300 env SLURM_DL_GATHER="$(cat gather.out)" SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 SLURM_PROCID="$1" SLURM_STEP_NUM_TASKS=2 \
        SLURM_LOCALID="$1" SLURM_GTIDS=0,1 SLURMD_NODENAME=n1 SLURM_STEP_NODELIST=n1 SLURM_STEP_TASKS_PER_NODE=2 \
        dl check-rank quick plain >"check.$1" 2>&1
}
checked 1 &
other=$!
checked 0
is "$?/$(cat check.0)" "0/" "a rank that is checked"
wait "$other"
is "$?/$(cat check.1)" "0/" "the other rank"
wait_for 60 grep -q 'dl: check: ' gather.err
like "$(cat gather.err)" '^dl: check: .*1 node, 2 ranks' "the ranks have one verdict"
is "$(grep -cE 'refused|token' gather.err)" 0 "unauthenticated connections print nothing"
sed 's/^/# /' gather.err
exec 3>&-
flooded
calm
wait "$collector"
done_testing
