#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl elastic in a job of an ordinary user: lost ranks and nodes, spares, and dl scale in all orders.
. "$srcdir/tests/lib.sh"
name=ej$$
mc=$work/minicluster
[ -x "$builddir/tests/runtime/comm/elastic.t" ] || skip_all "no cmocka"
need_slurm
[ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null || skip_all "no setpriv"
trap 'as_ordinary "$mc" down --all >/dev/null 2>&1; clean_up' EXIT

chmod 1777 "$work"
cp "$srcdir/contrib/minicluster" "$builddir/tests/runtime/comm/elastic.t" "$work"
cp "$(command -v dl)" "$work/dl"
export MINICLUSTER_DIR="$work" DL_COMM_TIMEOUT=20 DL_ELASTIC_SETTLE=10 DL_ELASTIC_TIMEOUT=60
unset XDG_RUNTIME_DIR SLURM_CONF
as_ordinary "$mc" up --name=$name --nodes=5 --conf=SlurmdTimeout=5 >up 2>&1 || bail_out "no cluster" up
eval "$(as_ordinary "$mc" env $name)"

kill_rank () { # kill_rank UNIT: kill a process of that unit
    for p in /proc/[0-9]*; do
        [ "$(cat "$p/comm" 2>/dev/null)" = elastic.t ] || continue
        tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -q "^DL_ELASTIC_UNIT=$1\\." || continue
        tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -q "^DL_ELASTIC_DIR=$work/" || continue
        kill -9 "${p#/proc/}" && return
    done
    return 1
}
worlds () { # worlds N NAME: wait for a new world of N ranks since the last call
    wait_for 300 sh -c "tail -n +$seen out | grep -q 'has $1 ranks'"
    ok $? "$2"
    seen=$(($(wc -l <out) + 1))
}
scale () { # scale N: run dl scale, and print its exit status and output
    as_ordinary ./dl scale "$1" --dir="$work" "elastic.$job" >said 2>&1
    echo "$? $(sed "s|elastic.$job|RUN|g" said)"
}

cat >job.sh <<END
#!/bin/sh
exec "$work/dl" elastic --min=2 --max=4 --spares=1 --restarts=20 --dir="$work" "$work/elastic.t" rank 1000000 10000
END
seen=1
job=$(as_ordinary sbatch --parsable --no-kill --nodes=5 --chdir="$work" --output="$work/out" job.sh)
worlds 4 "a job of five nodes, one of them spare"
# the waiting spare writes its unit, which is its node's number minus 1, into a file
wait_for 300 sh -c "ls elastic.$job/ask.* | grep -q ."
unit=2
grep -aqF 2.1 "elastic.$job"/ask.* && unit=3
kill_rank $unit
worlds 4 "a rank is killed: the spare one takes its place"
wait_for 300 grep -q "n$((unit + 1)): ended .*restarting in 1 s" out
# n2 is in the world: it was neither the spare, which has joined, nor the node of the killed rank
as_ordinary scontrol update nodename=n2 state=down reason=test
worlds 4 "Slurm takes a node away: the one that was killed, and has come back, takes its place"
is "$(scale 4)" "0 RUN: 4 nodes, as before" "dl scale to the same number"
is "$(scale 1)" "2 dl: RUN: must have from 2 to 4 nodes" "a number below --min is refused"
is "$(scale 5)" "2 dl: RUN: must have from 2 to 4 nodes" "and one above --max"
is "$(scale 2)" "0 RUN: 2 nodes" "scaling down"
worlds 2 "two go on"
wait_for 300 sh -c "sed '1,/2 nodes requested/d' out | grep -c ': left (' | grep -qx 2"
ok $? "the other nodes are released"
scale 3 >said3
is "$(cat said3), $(scale 4)" "0 RUN: 3 nodes, 0 RUN: 4 nodes" "scaling up, twice"
worlds 4 "the last number counts"
scale 3 >said3
kill_rank 0
wait_for 300 sh -c "grep ' has . ranks' out | tail -n 1 | grep -q 'has 3 ranks'"
ok $? "scaling down while a rank dies: three continue"
sleep 1
is "$(grep -c 'wrong\|failed:' out)" 0 "no error"
as_ordinary scancel "$job"
wait_for 300 sh -c "! squeue -h -j $job -o %T 2>/dev/null | grep -q ."
ok $? "scancel ends it"
is "$(scale 3)" "2 dl: RUN has ended: there is nothing to scale" "then dl scale finds nothing"
sed 's/^/# /' out
done_testing
