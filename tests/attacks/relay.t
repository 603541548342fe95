#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# An attacker between two ranks, or at a port where one of them is expected, cannot change a sum or block a port.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/ranks.sh"
relay=$srcdir/tests/attacks/relay.py
victim test -x "$meet" || skip_all "other users may not run $meet"
secret=00112233445566778899aabbccddeeff
rank () { # rank NUMBER [NAME=VALUE...]: run one rank of two
    number=$1
    shift
    victim timeout 300 env RANK="$number" WORLD_SIZE=2 DL_COMM_SHARED=0 DL_COMM_TIMEOUT=60 DL_SECRET=$secret SLURMD_NODENAME=victims-own-host \
        DL_COMM_ADDRESS="127.0.0.1:$port" "$@" "$meet" $what
}
ranks () { # ranks [NAME=VALUE...]: run both; their output is in 'out', their exit statuses are in $status
    port=$(free_port)
    rank 0 "$@" >0.out 2>&1 &
    zero=$!
    rank 1 "$@" >1.out 2>&1
    status=$?
    wait "$zero"
    status=$?/$status
    cat 0.out 1.out >out
}
what=

# ---- a relay between two ranks
case $CFLAGS in
*sanitize*) skip "a relay between two ranks" "a build with sanitizers" ;;
*)
    ${CC:-cc} -shared -fPIC -o "$work/onpath.so" "$srcdir/tests/attacks/onpath.c" -ldl >cc.out 2>&1
    ok $? "a relay is between the ranks" || sed 's/^/# /' cc.out
    chmod 755 "$work/onpath.so"
    hit () {
        grep -q '^hit' relay.out
    }
    through () { # through HOW [NAME=VALUE...]: run both ranks through a relay
        rm -f relay.out # it has the port of the last relay
        attacker timeout 400 python3 "$relay" "$1" >relay.out 2>&1 &
        relaying=$!
        wait_for 60 grep -q '^port' relay.out
        shift
        ranks LD_PRELOAD="$work/onpath.so" RELAY_PORT="$(sed -n 's/^port //p' relay.out)" "$@"
        pkill -P "$relaying"
        wait "$relaying" 2>/dev/null
    }
    through none
    is "$status $(cat out)" "0/0 $both" "a relay that changes nothing is not noticed"
    through sums
    hit
    ok $? "the relay changes a number that is reduced"
    is "$(grep -c ' over native: ' out)" 0 "no rank has a changed sum" || sed 's/^/# /' out
    like "$(cat out)" 'a message from rank [01] on victims-own-host to rank [01] on .* was altered in transit \(wrong MAC' "a rank that notices names the rank and its host"
    through again
    hit
    ok $? "the relay repeats a message"
    is "$(grep -c ' over native: [^3]' out)" 0 "and it is not accepted twice"
    through host
    hit
    ok $? "the relay changes what a rank sends to rank 0"
    is "$(grep -c ' over native: ' out)" 0 "they do not meet" || sed 's/^/# /' out
    like "$(cat out)" 'a message from rank [01] \(victims-own-host\) was altered in transit' "one says whose message it was"
    through plain DL_COMM_TIMEOUT=10
    is "$(grep -c ' over native: ' out)" 0 "a relay cannot turn off tags for a rank" || sed 's/^/# /' out
    like "$(cat out)" "the process that listens there does not know this step's secret" "a changed hello is attributed to nobody"
    ;;
esac

# ---- one rank wants no tags
port=$(free_port)
rank 0 >0.out 2>&1 &
zero=$!
rank 1 DL_COMM_INTEGRITY=handshake >1.out 2>&1
wait "$zero"
like "$(cat 1.out)" 'rank 1 \(victims-own-host\) has DL_COMM_INTEGRITY=handshake, and another rank has not: set it on all ranks, or on none' \
    "one rank alone cannot turn off the tags"
like "$(cat 0.out)" 'rank 1 \(victims-own-host\) has DL_COMM_INTEGRITY=handshake' "and rank 0 does not wait for it"
ranks DL_COMM_INTEGRITY=handshake
is "$status $(cat out)" "0/0 $both" "all ranks together can"

# ---- the attacker holds rank 0's port before rank 0 starts
port=$(free_port)
attacker timeout 200 python3 -c "import socket, time
s = socket.socket(); s.bind(('127.0.0.1', $port)); s.listen(64)
print('ready', flush=True); time.sleep(200)" >squat.out 2>&1 &
squatter=$!
wait_for 60 grep -q ready squat.out
what=seconds
rank 0 >0.out 2>&1 &
zero=$!
rank 1 >1.out 2>&1
wait "$zero"
is "$(grep -v '^met in' 0.out 1.out | sed 's/^.*out://')" "$both" "a process that holds the port stops nobody" || sed 's/^/# /' 0.out 1.out
what=
pkill -P "$squatter"
wait "$squatter" 2>/dev/null

# ---- no fallback to TCP if PMIx was requested
like "$(victim timeout 60 env RANK=0 WORLD_SIZE=1 PMIX_RANK=0 PMIX_NAMESPACE=none "$meet" 2>&1)" 'meet: .*PMIx' \
    "requesting PMIx without PMIx is an error, and ranks do not fall back to TCP"

# ---- the attacker listens at ::1, which may also be called localhost
port=$(free_port)
printf '127.0.0.1 localhost\n::1 localhost\n' >"$work/hosts"
chmod 644 "$work/hosts"
with_hosts () { # with_hosts COMMAND...: run it with an /etc/hosts in which localhost is ::1, too
    unshare --mount sh -c 'mount --bind "$1" /etc/hosts && shift && exec "$@"' sh "$work/hosts" "$@"
}
plain_victim=$(command -v setpriv)
victim () {
    with_hosts "$plain_victim" --reuid="$victim_id" --regid="$victim_id" --clear-groups env HOME="$victim_home" "$@"
}
rm -f relay.out
attacker timeout 200 python3 "$relay" sums "$port" "$port" >relay.out 2>&1 &
relaying=$!
if wait_for 60 grep -q '^port' relay.out && with_hosts getent ahosts localhost 2>/dev/null | grep -q '^::1'; then
    rank 0 DL_COMM_ADDRESS="localhost:$port" >0.out 2>&1 &
    zero=$!
    rank 1 DL_COMM_ADDRESS="localhost:$port" >1.out 2>&1
    wait "$zero"
    is "$(cat 0.out 1.out)" "$both" "MASTER_ADDR=localhost: they meet"
    is "$(grep -c hit relay.out)" 0 "and not at ::1"
else
    skip "localhost" "no mount namespaces, or no IPv6"
fi
pkill -P "$relaying"
wait "$relaying" 2>/dev/null
is "$(ls -A "$victim_home/.slurm-dl")" "" "no notice is left behind"
done_testing
