#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# a parameter server on hosts of their own, which are unplugged and come back; DL_TEST_SOAK=1:
# all cases in all modes, some minutes
. "$srcdir/tests/lib.sh"
need_cluster
need_hosts
# Slurm is to keep out of it
try_cluster ph --hosts --nodes=6 --cpus=2 --plugin="$PLUGIN dl=$builddir/launcher/dl" --conf=SlurmdTimeout=3000 ||
    skip_all "no network namespaces"
bridge=mcb$(cat "$(dirname "$SLURM_CONF")/place")
pswork=$builddir/tests/runtime/ps/pswork
srun=
all='scheduler:1,ps:2,worker:*'

# begin MODE WORKERS [ROLES [TIMEOUT [GRACE]]]: in the background: a spare server on n1, servers on n2 and n3, workers on n4 to n6, of
# which WORKERS come to the end
begin () {
    run=$((${run:-0} + 1))
    log=$work/log.$run
    : >"$log"
    DL_PS_MODE=$1 DL_PS_STALENESS=1 DL_PS_DIR=$work/ps.$run DL_PS_GRACE=${5:-3} DL_PS_TIMEOUT=${4:-600} DL_PS_SAVE_EVERY=15 timeout 1500 \
        srun --no-kill --dl=ps --dl-roles="${3:-$all}" -N6 -n6 -m cyclic "$pswork" 80 20 "$2" "$log" >"out.$run" 2>&1 &
    srun=$!
    wait_for 300 grep -q 'worker 0 .*iteration 10$' "$log"
}

plug () { # plug HOST up|down
    ip link set "$bridge.$1" "$2"
}

signal () { # signal SIGNAL PROCESS, as it calls itself
    kill "-$1" "$(sed -n "s/^$2 on .* is process //p" "$log")"
}

ended () { # ended N PROCESSES WORD: as many of these have come to that end
    wait_for 300 sh -c "[ \$(grep -c '^$2 on .* has $3' '$log') -ge $1 ]"
    [ "$(grep -c "^$2 on .* has $3" "$log")" -eq "$1" ]
}

finish () { # finish NAME
    wait_for 300 sh -c "[ \$(grep -c ' has ' '$log') -eq 6 ]"
    ok $? "$1: all come to an end"
    is "$(grep -c WRONG "$log")" 0 "$1: and no push is lost or counted twice"
    kill "$srun" 2>/dev/null
    wait "$srun"
    # srun says only that some have failed
    sed 's/^/# /' "$log"
    scancel --state=RUNNING --me 2>/dev/null
    wait_for 300 sh -c '! squeue -h | grep -q .'
}

# ---- a server's host is away, and comes back when another one serves
lost_server () {
    begin "$1" 3
    plug 3 down
    wait_for 300 grep -q 'worker 0 .*iteration 30$' "$log"
    ok $? "$1: a server's host is unplugged: the spare server takes its place"
    plug 3 up
    ended 3 'worker .' ended
    ok $? "$1: the workers come to the end"
    like "$(cat "$log")" '^ps 1 on n3 has failed: server 1 was declared lost by a worker|taken the place of server 1' "$1: the lost server serves no more"
    finish "$1: a server's host"
}

# ---- the same, and the server sleeps meanwhile: it wakes with connections and requests of before
sleeping_server () {
    begin "$1" 3
    signal STOP 'ps 1'
    plug 3 down
    wait_for 300 grep -q 'worker 0 .*iteration 30$' "$log"
    ok $? "$1: a server sleeps, its host is unplugged: the spare server takes its place"
    plug 3 up
    signal CONT 'ps 1'
    ended 3 'worker .' ended
    ok $? "$1: the workers come to the end"
    ended 1 'ps 1' failed
    ok $? "$1: it wakes and serves no more"
    finish "$1: a sleeping server"
}

# ---- a worker's host is away: it reaches no server, the servers reach the other workers
lost_worker () {
    # the time in which a server on a busy machine answers
    begin "$1" 2 "$all" 600 6
    plug 6 down
    ended 2 'worker [01]' ended
    ok $? "$1: a worker's host is unplugged: the others come to the end"
    # whichever it sees first
    ended 1 'worker 2' 'failed: .*\(worker 2 .n6. was\|or this one was\) declared lost'
    ok $? "$1: it is told so"
    ended 2 'ps [01]' ended
    ok $? "$1: and its word against the servers counts for nothing"
    plug 6 up
    finish "$1: a worker's host"
}

# ---- a host is away for less than the grace
short_break () {
    begin "$1" 3
    plug 3 down
    sleep 1
    plug 3 up
    ended 3 'worker .' ended
    ok $? "$1: a host is away for a second: nobody is lost"
    ended 2 'ps .' ended
    ok $? "$1: no server is replaced"
    finish "$1: a second"
}

# ---- without a spare server: an error that names it
no_spare () {
    begin "$1" 4 'ps:2,worker:*' 15
    plug 2 down
    ended 4 'worker .' 'failed: server 1 .n2. is lost, and no process replaced it'
    ok $? "$1: without a spare server the workers name it and its host"
    plug 2 up
    finish "$1: no spare"
}

if [ -n "${DL_TEST_SOAK:-}" ]; then
    for mode in sync async bounded; do
        for case in lost_server sleeping_server lost_worker short_break no_spare; do $case $mode; done
    done
else
    lost_server sync
    sleeping_server async
    lost_worker bounded
fi
done_testing
