#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# In a memory cgroup, the kernel kills a trainer, or a child of a trainer, that runs out of memory.
. "$srcdir/tests/lib.sh"
group=
trap 'rmdir "$group" 2>/dev/null; clean_up' EXIT
[ "$(id -u)" -eq 0 ] || skip_all "needs root, to limit a cgroup's memory"

# ---- make a cgroup of 256 MB below ours: version 1, or version 2 if ours may have children
v1=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory:\(.*\)/\1/p' /proc/self/cgroup)
v2=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
limit () { # limit FOLDER FILE: make the cgroup, and set the limit in FILE
    mkdir "$1" 2>/dev/null || return 1
    group=$1
    echo 256M 2>/dev/null >"$group/$2"
}
limit "$v1/dl-test$$" memory.limit_in_bytes || limit "$v2/dl-test$$" memory.max ||
    skip_all "cannot make a memory cgroup here"
[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
[ ! -e "$group/memory.oom.group" ] || echo 0 >"$group/memory.oom.group"

inside () { # inside COMMAND...: run it in that cgroup
    timeout 300 sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$group" "$@"
}
program hog.sh <<'END'
# tail buffers a line without an end until memory runs out
if [ "$DL_TRIAL" = 2 ]; then exec tail /dev/zero; fi
if [ "$DL_TRIAL" = 3 ]; then tail /dev/zero; exit $?; fi
if [ "$DL_TRIAL" = 4 ]; then exit 1; fi
dl log loss=1
END
cat >oom.conf <<'END'
name = "oom"; entrypoint = "./hog.sh";
searcher = { name = "random"; metric = "loss"; max_trials = 5; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; };
max_restarts = 1; max_failed = 5;
END
runs 0 "the sweep completes" inside dl run --local oom.conf
why () { # why TRIAL: print the reasons of its failures
    cat oom-0001/log/0*/0* | grep "\"op\":\"fail\".*\"trial\":$1," | sed 's/.*"why":"\([^"]*\)".*/\1/'
}
is "$(why 2)" "out of memory (killed by the kernel)
out of memory (killed by the kernel)" "a trainer killed by the kernel: the reason, and it counts as a failure"
like "$(why 3)" "^out of memory" "a child of the trainer: the reason"
is "$(why 4)" "exit status 1
exit status 1" "a failure after them is an ordinary one"
is "$(cat oom-0001/log/0*/0* | grep -c '"op":"result"')" 2 "the others have results"
is "$(cat oom-0001/log/0*/0* | grep -c '"op":"lost"')" 0 "the worker survived"
like "$(dl show oom 2)" "last failure: out of memory" "dl show reports it"

# ---- two workers whose trials do not fit into memory together
cat >need.py <<'END'
import subprocess, sys, time
memory = bytearray(150 << 20)
for i in range(0, len(memory), 4096):
    memory[i] = 1
time.sleep(1)
subprocess.check_call(["dl", "log", "loss=1"])
END
sed 's/"oom"/"share"/; s/.\/hog.sh/exec python3 need.py/; s/workers = 1;/workers = 2; max_memory = "1G";/' oom.conf >share.conf
runs 0 "two workers, memory for one: the sweep completes" inside dl run --local share.conf
is "$(cat share-0001/log/0*/0* | grep -c '"op":"result"')" 5 "with all results"
like "$(cat out)" 'out of memory \(killed by the kernel\); retried with [0-9]*M of memory instead of 128M$' "a trial is retried with more"
like "$(cat share-0001/workers/*.log)" '^dl: the trials need [0-9]*M of memory each: running one worker less here$' "beside fewer workers"

# ---- a Slurm step with a memory limit
if ! slurm_is_here || ! { mount -t cgroup | grep -q memory || grep -qs memory /sys/fs/cgroup/cgroup.controllers; } 2>/dev/null; then
    skip "in a step of Slurm" "no Slurm, or no memory cgroups"
    done_testing
fi
if ! try_cluster oom --nodes=1 --cpus=2 --hosts --conf=SelectTypeParameters=CR_Core_Memory; then
    skip "in a step of Slurm" "no cluster of hosts here"
    done_testing
fi
sed 's/workers = 1;/& memory = "64M";/; s/"oom"/"step"/' oom.conf >step.conf
runs 0 "in a step of Slurm the sweep completes" dl run step.conf
is "$(cat step-0001/log/0*/0* | grep '"op":"fail".*"trial":2,' | sed 's/.*"why":"\([^"]*\)".*/\1/')" \
    "out of memory (killed by the kernel)
out of memory (killed by the kernel)" "its trainer was killed: the reason"
is "$(cat step-0001/log/0*/0* | grep -c '"op":"result"')" 2 "the others have results"

# ---- one rank of several
program ranks.prog <<'END'
touch "up.$SLURM_PROCID"
[ "$SLURM_PROCID" = 1 ] || exec sleep 300
until [ -e up.0 ]; do sleep 0.1; done
sleep 5 # until dl hears of both
exec tail /dev/zero
END
runs 1 "a job with one rank that runs out of memory" timeout 300 dl job --ntasks-per-node=2 --set 'resources.memory="300M"' --set 'job.restart_policy="never"' -- ./ranks.prog
like "$(dl show ranks)" ' Failed .*: out of memory \(killed by the kernel\): rank 1 on n1$' "names that rank and its node"

# ---- max_memory: the sweep gets a job with more memory
sed 's/"oom"/"more"/; s/.\/hog.sh/exec python3 need.py/; s/workers = 1;/& memory = "100M"; max_memory = "1G";/; s/max_trials = 5/max_trials = 2/' \
    oom.conf >more.conf
runs 0 "max_memory: the sweep completes" dl run more.conf
is "$(cat more-0001/log/0*/0* | grep -c '"op":"result"') $(cat more-0001/log/0*/0* | grep -c '"op":"exit"')" "2 0" "with all results"
like "$(cat more-0001/log/0*/0* | grep '"op":"fail"')" 'retried with 150M of memory instead of 100M' "more memory, as often as it takes"
like "$(cat more-0001/log/0*/0* | grep '"op":"submit"')" '"memory":157286400' "in another job"
done_testing
