#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# dl elastic when several nodes are unplugged at once, when most nodes see no other, and when the network splits in half.
. "$srcdir/tests/lib.sh"
ranks=$builddir/tests/runtime/comm/elastic.t
[ -x "$ranks" ] || skip_all "no cmocka"
need_hosts
need_slurm
try_cluster eh --nodes=6 --hosts --conf=SlurmdTimeout=3600 || skip_all "no cluster"
bridge=mcb$(cat "$(dirname "$SLURM_CONF")/place")
trap 'ip link del "${bridge}x" 2>/dev/null; clean_up' EXIT
export DL_COMM_TIMEOUT=10 DL_ELASTIC_SETTLE=20 DL_ELASTIC_TIMEOUT=600

links () { # links up|down HOST...
    state=$1
    shift
    for h in "$@"; do ip link set "$bridge.$h" "$state"; done
}
signal_rank () { # signal_rank SIGNAL UNIT: signal the unit's rank
    for p in /proc/[0-9]*; do
        [ "$(cat "$p/comm" 2>/dev/null)" = "${ranks##*/}" ] || continue
        tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -qx "DL_ELASTIC_UNIT=$2" || continue
        tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -q "^DL_ELASTIC_DIR=$work/" || continue
        kill "-$1" "${p#/proc/}" && return
    done
    return 1
}
# Check the trace, not the job's output: the output is late if a rank cannot reach the node that writes it.
works () { # works RANKS: whether a world of this size commits
    tail -n +"$seen" trace | awk -v ranks="$1" '$3 == ranks { found = 1 } END { exit !found }'
}
await () { # await RANKS NAME: wait until a world of this size commits
    wait_for 600 works "$1"
    ok $? "$2"
    seen=$(($(wc -l <trace) + 1))
}

cat >job.sh <<END
#!/bin/sh
exec "$builddir/launcher/dl" elastic --min=2 --dir="$work" "$ranks" rank 1000000 10000 "$work/enough" "$work/trace"
END
seen=1
job=$(sbatch --parsable --no-kill --nodes=6 --output="$work/out" job.sh)
await 6 "a job of six hosts"
# n3's rank still sees the folder; n6's is stopped, and sees nothing
signal_rank STOP 5.1
links down 3 6
begin=$(date +%s)
await 4 "two hosts are unplugged at once: four go on"
echo "# after $(($(date +%s) - begin)) s"
links up 3 6
signal_rank CONT 5.1
await 6 "and six when they are back"
is "$(awk '$2 <= step { print } { step = $2 }' trace | head -n 3)" "" "no commit is lost"

# Four nodes see the folder but no other node: they are the majority, but cannot go on, and wait without a limit
links down 3 4 5 6
begin=$(date +%s)
await 2 "four hosts see none: the two that see each other go on"
echo "# after $(($(date +%s) - begin)) s"
links up 3 4 5 6
await 6 "and six when they are back"

# Three neighbors in the ring hold the data of only four ranks, so no commit is complete: they restart at step 0.
ip link add "${bridge}x" type bridge && ip link set "${bridge}x" up
for h in 4 5 6; do ip link set "$bridge.$h" master "${bridge}x"; done
begin=$(date +%s)
await 3 "three hosts see only three: three go on"
echo "# after $(($(date +%s) - begin)) s"
for h in 4 5 6; do ip link set "$bridge.$h" master "$bridge"; done
await 6 "and six when they see each other"
touch enough
wait_for 600 sh -c "! squeue -h -j $job -o %T 2>/dev/null | grep -q ."
ok $? "it ends"
is "$(awk '$1 < world { print } { world = $1 }' trace | head -n 3)" "" "no world continued beside a newer one"
[ "$(grep -c 'the weights are right' out)" -ge 1 ]
ok $? "the weights are correct"
is "$(grep -c 'wrong\|failed:' out)" 0 "on all ranks"
scancel "$job" 2>/dev/null
sed 's/^/# /' out
awk '$1 != world { if (world) print "# world " world ": steps " first " to " last; world = $1; first = $2 } { last = $2 }
    END { print "# world " world ": steps " first " to " last }' trace
done_testing
