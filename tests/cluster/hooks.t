#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Let each SPANK hook fail in a real Slurm, in an optional and a required plugin; then let system and Slurm calls of ours fail.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/spank/variant.sh"
need_cluster
chmod 755 "$work"
printf '#define POOR "%s"\n#include "tests/cluster/hooks/poor.h"\n' "$work/poor" >poor.h
{
    other_plugin "$work/failing.so" "$srcdir/tests/cluster/hooks/failing.c" &&
        variant "$work/poor.so" -include poor.h &&
        parts="$(sources | tr ' ' '\n' | grep -v '/plugin\.c') $srcdir/tests/cluster/hooks/helper.c" variant "$work/helper.so" -include poor.h
} 2>err
ok $? "the variants"
sed 's/^/# /' err

# start slurmd without a plugin; srun and slurmstepd read plugstack.conf at each launch
own_stepd
plain_stepd () {
    printf '#!/bin/sh\nexec %s "$@"\n' "$stepd" >bin/stepd.new
    chmod +x bin/stepd.new
    mv bin/stepd.new bin/slurmstepd
}
plain_stepd
chmod +x bin/slurmd
PATH=$work/bin:$PATH cluster_up hooks --nodes=1

load () { # load LINE: replace plugstack.conf
    echo "$1" >"$plugstack"
}
state () {
    sinfo -h -N -o %T | sort -u
}
settled () {
    case $(state) in *completing* | *allocated* | *mixed*) return 1 ;; esac
}
revive () {
    wait_for 300 settled
    [ "$(state)" = idle ] && return
    load ''
    scontrol update nodename=n1 state=resume
    wait_for 300 sh -c '[ "$(sinfo -h -N -o %T | sort -u)" = idle ]'
}
ended () {
    ! squeue -h -o %i | grep -q .
}
batch () { # run a batch job; print its state, its output and the node's state
    rm -f batch.out
    id=$(timeout 300 sbatch --parsable -n1 -o batch.out --wrap 'echo ran' 2>/dev/null) || { echo "refused - $(state)"; return; }
    wait_for 300 ended || timeout 60 scancel "$id"
    wait_for 300 settled
    echo "$(scontrol show job "$id" | sed -n 's/ *JobState=\([A-Z]*\).*/\1/p') $(grep -x ran batch.out 2>/dev/null || echo -) $(state)"
}
step () { # run srun; print its exit status, its output and the node's state
    out=$(timeout 300 srun -Q -n1 echo ran 2>/dev/null)
    rc=$?
    wait_for 300 settled
    echo "$rc ${out:--} $(state)"
}
outcome () { # outcome LINE: print how srun and a batch job end with this line in plugstack.conf
    load "$1"
    step=$(step)
    revive
    load "$1"
    echo "$step, $(batch)"
    revive
} </dev/null

# ---- how Slurm reacts to a failed hook: the reason why all our hooks return 0
release=$(srun --version | sed 's/slurm-wlm //; s/\.[0-9]*$//')
while read -r hook wanted; do
    load "optional $work/failing.so $hook"
    is "$(batch </dev/null)" "COMPLETED ran idle" "optional: $hook fails, and nothing happens"
    if [ "$release" = 22.05 ]; then
        is "$(outcome "required $work/failing.so $hook")" "$wanted" "required: $hook fails"
    fi
done <<'END'
local:init 1 - idle, refused - idle
init 0 - idle, COMPLETED - drained
user_init 0 - idle, COMPLETED - drained
task_init_privileged 1 - idle, FAILED - idle
task_init 1 - idle, FAILED - idle
task_post_fork 0 - idle, COMPLETED - drained
task_exit 0 ran idle, COMPLETED ran idle
exit 0 ran idle, COMPLETED ran idle
END
rm -f batch.out

# ---- our plugin as "required", with site defaults for its options
all="when=gpus:any default=torch bind=closest,nic,verbose nccl=auto"
load "required $work/poor.so $all"
for mode in "" memory fork files network spank register; do
    echo "$mode" >poor
    is "$(step)" "0 ran idle" "without ${mode:-anything missing}: the job runs"
done
echo memory fork files network spank register >poor
is "$(outcome "required $work/poor.so $all")" "0 ran idle, COMPLETED ran idle" "without all of it"
load "required $work/poor.so when=gpus:any default=tf bind=spread,own-gpu"
for mode in memory files network spank; do
    echo "$mode" >poor
    is "$(timeout 300 srun -Q -n2 echo ran 2>/dev/null | sort -u)" ran "tf, without $mode"
done
echo memory >poor
load "optional $work/poor.so"
like "$(timeout 300 srun --dl=torch true 2>&1)" 'dl: --dl=torch: nothing is set: out of memory' "and says so"

# ---- the command dl, which the plugin runs
echo >poor
load "required $work/helper.so dl=/nonexistent/dl"
is "$(timeout 300 srun -Q -n1 echo ran 2>&1 | sed 's/.*helper/helper/' | sort | tr '\n' ';')" "helper: -1 ENOENT;helper: -1 ENOENT;ran;" "no dl: ENOENT, and nothing else"
printf '#!/bin/sh\necho "dl $1"\n' >dl
load "required $work/helper.so dl=$work/dl"
like "$(timeout 300 srun -Q -n1 echo ran 2>&1 | sed 's/.*helper/helper/' | sort | tr '\n' ';')" "helper: -1 EACCES;helper: -1 EACCES;ran;" "a dl that is not executable"
chmod +x dl
is "$(timeout 300 srun -Q -n1 sh -c 'sleep 0.3; echo ran' 2>&1 | sed 's/.*helper/helper/' | sort | tr '\n' ';')" "dl --version;dl --version;helper: 0 ;helper: 0 ;ran;" "a dl"
echo fork >poor
is "$(timeout 300 srun -Q -n1 echo ran 2>&1 | sed 's/.*helper/helper/' | sort | tr '\n' ';')" "helper: -1 EAGAIN;helper: -1 EAGAIN;ran;" "no process can be started"
unharmed

# ---- a node without /sys
echo >poor
if case $(slurmd -V) in *" 23."*) ;; *) false ;; esac; then
    skip "no /sys" "slurmstepd of 23.02 and 23.11 does not start without cgroups"
elif [ "$(id -u)" -eq 0 ] && unshare -m mount -t tmpfs none /sys 2>/dev/null; then
    printf '#!/bin/sh\nexec unshare -m sh -c "mount -t tmpfs none /sys && exec %s"\n' "$stepd" >bin/stepd.new
    chmod +x bin/stepd.new
    mv bin/stepd.new bin/slurmstepd
    load "required $work/poor.so $all"
    is "$(timeout 300 srun -Q -n1 sh -c 'ls /sys; echo $RANK' 2>/dev/null)" 0 "no /sys: the job runs, and has its rank"
    plain_stepd
else
    skip "no /sys" "needs root"
fi
unharmed
done_testing
