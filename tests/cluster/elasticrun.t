#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# dl elastic in a job when a node is unplugged. tests/cluster/elasticjob.t does not need root.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/launcher/elastic.sh"
need_slurm
need_hosts
try_cluster el --nodes=4 --hosts --conf=SlurmdTimeout=5 || skip_all "no cluster"
cat >job.sh <<END
#!/bin/sh
exec "$builddir/launcher/dl" elastic --min=2 --dir="$work" "$ranks" rank 100000 10000
END
rm -f out
job=$(sbatch --parsable --no-kill --nodes=4 --output="$work/out" job.sh)
await_world 4
ok $? "a job of four hosts"
before=$(grep -c 'has 4 ranks' out)
kill_rank 2.1 "$ranks"
await_world "[34]" 1
ok $? "a rank is killed: the others continue"
await_world 4 "" $((before + 1))
ok $? "and the fourth comes back"
begin=$(date +%s)
before=$(grep -c 'has 3 ranks' out)
ip link set "mcb$(cat "$(dirname "$SLURM_CONF")/place").4" down
await_world 3 "" $((before + 1))
ok $? "a host is unplugged: three continue"
echo "# after $(($(sed -n 's/^\([0-9]*\): .* has 3 ranks.*/\1/p' out | tail -1) - begin)) s"
wait_for 300 grep -q 'Node failure on n4' out
ok $? "Slurm takes the node away"
before=$(grep -c 'has 2 ranks' out)
timeout 300 dl scale 2 --dir="$work" "elastic.$job" >scale 2>&1
is $? 0 "dl scale of a job"
await_world 2 "" $((before + 1))
ok $? "two continue"
scancel "$job"
wait_for 300 sh -c "! squeue -h -j $job -o %T 2>/dev/null | grep -q ."
ok $? "scancel ends it"
sed 's/^/# /' out
done_testing
