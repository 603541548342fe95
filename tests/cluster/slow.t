#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl names a rank of an unmodified DDP training that is slowed down from outside, with the cause, and no rank before that.
. "$srcdir/tests/lib.sh"
need_cluster
. "$srcdir/tests/cluster/heal.sh"
cluster_up slow --nodes=1 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl"

cat >code/ddp.conf <<END
name = "ddp";
entrypoint = "/usr/bin/python3 healed.py --work $work --products 100 [--resume {resume_dir}/ckpt.pt]";
searcher = { name = "single"; metric = "loss"; max_length = 1000000; };
metrics = { pattern = [ "step={step} loss={loss}" ]; };
resources = { ranks_per_node = 4; framework = "torch"; };
END
dl run --detach code/ddp.conf >out 2>&1
is $? 0 "submitted"
begins ddp
wait_for 300 trains
ok $? "it trains"
steps () { # steps N: whether the log has N more steps than $had
    [ "$(grep -c '^step=' "$trial/a.1/log")" -ge $((had + $1)) ]
}
said () { # said REGEX
    grep -qE "$1" "$trial/a.1/healing" 2>/dev/null
}
# run for as many windows as dl needs to name a rank
had=$(grep -c '^step=' "$trial/a.1/log")
begin=$(date +%s)
long_enough () { [ $(($(date +%s) - begin)) -ge 60 ] && steps 30; }
wait_for 600 long_enough
slow () { # print the lines that name a slow rank, except for busy cores, which other programs on this machine may cause
    grep ' is slow' "$trial/a.1/healing" 2>/dev/null | grep -v 'other processes run on its cores'
}
is "$(slow)" "" "a clean run: nobody is named"

# ---- slow a rank down: limit its cgroup, or, without permission for that, stop it again and again
group=/sys/fs/cgroup/cpu/dl-slow-$$
[ -e /sys/fs/cgroup/cgroup.subtree_control ] && group=/sys/fs/cgroup/dl-slow-$$
victim=$(of_rank 2 python3)
if mkdir "$group" 2>/dev/null && { echo 10000 >"$group/cpu.cfs_quota_us" || echo "10000 100000" >"$group/cpu.max"; } 2>/dev/null \
    && echo "$victim" >"$group/cgroup.procs"; then
    cause='the limit of its cgroup \(cpu\.max\) throttles it [0-9]+ % of the time'
    release () {
        echo "$victim" >"${group%/*}/cgroup.procs"
        rmdir "$group"
    }
else
    rmdir "$group" 2>/dev/null
    cause='it is stopped \(SIGSTOP\) [0-9]+ % of the time'
    (while [ ! -e released ] && kill -STOP "$victim" 2>/dev/null; do sleep 0.5; kill -CONT "$victim"; sleep 0.25; done) &
    release () { touch released; }
fi
begin=$(date +%s)
wait_for 300 said "^[0-9]+ rank 2 on n1 is slow, and the others wait for it: $cause\$"
ok $? "a rank is held up: it is named, with the cause"
echo "# after $(($(date +%s) - begin)) s"
like "$(dl show ddp 1)" 'rank 2 on n1 is slow' "dl show has it"
like "$(cat "$trial/a.1/log")" '^dl: rank 2 on n1 is slow' "and the log"
release
wait_for 300 said 'rank 2 on n1 is not slow any more$'
ok $? "it is told when that is over"
is "$(slow | wc -l)" 1 "one line, of one rank"
end ddp
is "$(causes ddp)" "" "and the attempt is the first"
done_testing
