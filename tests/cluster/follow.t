#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# dl reports where --dl has no effect: on nodes that do not follow srun, and in jobs whose srun has no plugin.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/spank/variant.sh"
need_cluster
need_hosts
chmod 755 "$work"
variant "$work/dl.so" -UPLUGSTACKDIR -DPLUGSTACKDIR="\"$srcdir/spank\"" && variant "$work/other.so" -O0
ok $? "two builds"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT SLURM_PROLOG SLURM_EXPORT_ENV
cluster_up follow --nodes=3 --hosts --plugin="$work/dl.so"
line="optional $work/dl.so"
dir=${SLURM_CONF%/*}
slurmd=$(cat "$dir/run/slurmd-n2.pid")
: >n2.conf
nsenter -t "$slurmd" -m mount --bind "$PWD/n2.conf" "$plugstack"
n2 () { # n2 LINE: replace plugstack.conf of n2
    printf '%s\n' "$1" >n2.conf
}
run () { # run SRUN-ARGUMENT...: sets $ranks; srun's messages are in the file err
    timeout 300 srun -Q --cpu-bind=none "$@" /bin/sh -c 'echo "${RANK-none}"; : init_process_group' >out 2>err
    is $? 0 "$*: status 0"
    ranks=$(sort out | tr '\n' ' ')
}
missing () { # missing NODES OPTIONS: print the message that srun should print
    echo "dl: no answer from $1: dl.so is missing there, so that tasks run without $2, or it cannot reach TCP port P of this host, or no task ran; see dl-spank(8)"
}
told () {
    sed 's/TCP port [0-9]*/TCP port P/; s/^slurmstepd-n[0-9]*: //' "${1:-err}" | grep 'dl: '
}

# ---- srun has the plugin
n2 "$line"
run -N3 -n3 --dl=torch
is "$ranks$(cat err)" "0 1 2 " "all nodes follow: no message"
n2 "$line options=dl-bind"
run -N3 -n3 --dl=torch
is "$ranks$(cat err)" "0 1 2 " "a node with other options= follows srun"
n2 "$line deny=torch when=gpus:any default=jax"
run -N3 -n3 --dl=torch
is "$ranks$(cat err)" "0 1 2 " "so does one with another policy"
n2 ""
run -N3 -n3 --dl=torch --dl-nccl=none
is "$ranks$(told)" "0 2 none $(missing n2 "--dl=torch --dl-nccl=none")" "a node without the plugin is named"
head -c 100 "$work/dl.so" >cut.so
n2 "optional $work/cut.so"
run -N3 -n6 --overcommit --dl=torch --dl-bind=closest,verbose
is "$(told | grep -v 'dl: rank')" "$(missing n2 '--dl=torch --dl-bind=closest,verbose')" "one with part of the file is named, in one line"
n2 "optional $work/other.so"
run -N3 -n3 --dl=torch
is "$ranks$(told)" "0 1 2 dl: another build of dl.so on n2; see dl-spank(8)" "another build is named"
n2 ""
printf '%s when=gpus:any default=torch\n' "$line" >"$plugstack"
run -N2 -n2
is "$ranks$(told | grep -v 'default is')" "0 none $(missing n2 "the site's defaults")" "a default that n2 does not follow"
printf '%s when=gpus:any default=auto\n' "$line" >"$plugstack"
timeout 300 srun -Q --cpu-bind=none -N2 -n2 true 2>err
is "$(cat err)" "" "one that applies nowhere does not matter"
printf '%s\n' "$line" >"$plugstack"
run -N1 -n1 -w n2 --dl=torch
is "$ranks$(told)" "none $(missing n2 --dl=torch)" "no node follows"
run -N1 -n1 -w n1 --dl=torch : -N1 -n1 -w n3 --dl=torch
is "$ranks$(cat err)" "0 1 " "two components"
run -N1 -n1 -w n1 --dl=torch : -N1 -n2 -w n2,n3 -N2 --dl=torch
is "$(told)" "$(missing n2 --dl=torch)" "a node of one of them"
run --export=NONE -N3 -n3 --dl=torch
is "$ranks$(told)" "0 2 none $(missing n2 --dl=torch)" "--export=NONE: srun's message travels in a variable of Slurm"
SLURM_EXPORT_ENV=FOO run -N1 -n1 -w n1 --dl=torch
is "$ranks$(cat err)" "0 " "and with a list"
out=$(SLURM_CPU_BIND=none timeout 300 dl doctor --nodes=3 2>err)
like "$out" '^broken +n2: .*/plugstack.conf: plugin line: no line loads dl.so' "dl doctor --nodes: a node without the line"
is "$(echo "$out" | grep -c 'KillWait: 5 s')/$(echo "$out" | grep 'KillWait' | sed 's/: .*//')" "1/change  all 3 nodes" "what all nodes have is reported once"
timeout 300 srun -Q --dl=torch -w nowhere true 2>err
is "$(grep -c 'no answer' err)" 0 "nor of a step that never existed"
sbatch -Q -W -N3 -n3 -w 'n[1-3]' --dl=torch -o batch.out --wrap 'srun -Q --cpu-bind=none sh -c "echo \${RANK-none}"; srun -Q --cpu-bind=none -N1 -n1 -w n2 true' 2>/dev/null
is "$(told batch.out)" "$(missing n2 --dl=torch)
$(missing 'any node of this step' --dl=torch)" "in a batch job"
timeout 300 srun -Q --cpu-bind=none -N2 -n2 --dl=torch sleep 600 2>err &
pid=$!
wait_for 300 grep -q 'no answer' err
is "$(told)" "$(missing 'n2 for 20 s' --dl=torch)" "before the end of the step"
kill -INT $pid
kill -INT $pid
wait $pid
is "$(grep -c 'no answer' err)" 1 "and once"

# ---- srun does not have the plugin
sbatch -Q -W -N1 -n2 -w n2 --dl=torch -o batch.out --wrap 'srun -Q sh -c "echo \${RANK-none}"' 2>/dev/null
is "$(sort -u batch.out)" "dl: srun on n2 did not load dl.so: tasks run without --dl=torch of this job; see plugstack.conf and dl-spank(8)
none" "the plugin is where the job was submitted, and not where it runs"
n2 "$line"
timeout 300 sbatch -Q -W -N1 -n1 -w n2 --dl=torch -o batch.out --wrap 'srun -Q sh -c "env | grep -c SLURM_PROLOG; true"' 2>/dev/null
is "$(cat batch.out)" 0 "where it is, nothing of that is left in a task"
printf '#!/bin/sh\necho own\n' >own
chmod +x own
SLURM_PROLOG=$PWD/own timeout 300 sbatch -Q -W -n1 --dl=torch -o batch.out --wrap 'srun -Q sh -c "echo \$RANK"'
is "$(tr '\n' ' ' <batch.out)" "own 0 " "a prolog of the user is kept"

# ---- plugstack.conf changes while a job is pending
later () { # later PLUGSTACK NAME WANTED: check what a pending job prints after the change
    id=$(timeout 300 sbatch --parsable -H -N1 -n2 -w n1 --dl=torch --dl-nccl=none -o later.out --wrap 'srun -Q sh -c "echo \${RANK-none}"')
    is "$(grep -lsa _SLURM_SPANK_OPTION_dl_ "$dir"/state/hash.*/job.*/environment | sed 's|.*/job\.\([0-9]*\)/.*|\1|' | grep -x "$id")" "$id" "a pending job is found"
    printf '%s\n' "$1" >"$plugstack"
    scontrol release "$id"
    wait_for 300 sh -c "scontrol show job $id | grep -qE 'JobState=(COMPLETED|FAILED)'"
    wait_for 60 grep -q none later.out
    is "$(sed 's/^srun: error: //' later.out | sort -u)" "$3" "$2"
    printf '%s\n' "$line" >"$plugstack"
    rm -f later.out
}
later "$line options=dl-bind,dl-nccl" "the option is switched off" "dl: --dl=torch: this site has disabled this option (options= in plugstack.conf)
none"
later "" "the line is removed" "dl: srun on n1 did not load dl.so: tasks run without --dl=torch --dl-nccl=none of this job; see plugstack.conf and dl-spank(8)
none"
unharmed
done_testing
