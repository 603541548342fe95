#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root in part
# Load the plugin into a stub of Slurm: options, contexts, hostile values.
. "$srcdir/tests/lib.sh"
[ -f "$PLUGIN" ] || skip_all "the plugin was not built"

# The environment that Slurm gives to rank 2 of 3, with two tasks on n1 and one on n2.
fake () {
    env -i SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_NUM_NODES=2 \
        SLURM_STEP_TASKS_PER_NODE='2,1' SLURM_STEP_NODELIST='n[1-2]' SLURMD_NODENAME=n2 SLURM_GTIDS=2 \
        SLURM_STEP_RESV_PORTS=19004-19006 SLURM_CONF="$work/one.conf" "$@"
}
# one.conf: several slurmd on this machine.  apart(): different hosts, without a slurm.conf.
printf '# nodes\nInclude nodes.conf\n' >"$work/one.conf"
printf 'nodename=DEFAULT CPUs=1\nNodeName=n[1-3] NodeHostname=x \\\n  NodeAddr=127.0.0.1 Port=[1-3]\n' >"$work/nodes.conf"
apart () {
    fake SLURM_CONF=/nonexistent SLURMD_NODENAME="$(hostname)" "$@"
}
stub=$builddir/tests/fakes/spank

for c in local allocator 0; do
    like "$("$stub" "$PLUGIN" $c)" '^option --dl=FRAMEWORK$' "context $c: the option is registered"
done
is "$("$stub" "$PLUGIN" slurmd)" "status 0" "slurmd prints nothing"

for c in local allocator; do
    out=$("$stub" "$PLUGIN" $c dl=toch)
    like "$out" '^error dl: --dl=toch: no such value; did you mean torch\?$' "$c: a typo is reported"
    like "$out" '^status -1' "$c: and refused"
    like "$("$stub" "$PLUGIN" $c dl-check=fast)" '^error dl: --dl-check=fast: no such value; there are quick, full, off$' "$c: the valid values are listed"
    for o in dl dl-roles dl-bind dl-nccl; do
        out=$("$stub" "$PLUGIN" $c $o=)
        like "$out" "^error dl: --$o=: the value is missing; see dl-spank" "$c: --$o= is reported"
        like "$out" '^status -1' "$c: and refused"
    done
    like "$("$stub" "$PLUGIN" $c dl-bind=closest,none)" '^error dl: --dl-bind=closest,none: one of closest, socket, spread, none$' "$c: two values are refused"
    like "$("$stub" "$PLUGIN" $c dl-bind=none,verbose,own-gpu)" '^status 0' "$c: one with other words is not"
    like "$("$stub" "$PLUGIN" $c dl-check= dl-monitor= dl-debug=off)" '^status 0' "$c: an optional value can be omitted"
    like "$("$stub" "$PLUGIN" $c dl=torch)" '^status 0' "$c: torch is accepted"
    like "$("$stub" "$PLUGIN" $c dl=off)" '^status 0' "$c: off is accepted"
    like "$("$stub" "$PLUGIN" $c dl=tf 'dl-roles=chief:1,ps:2,worker:*,evaluator:1')" '^status 0' "$c: roles are accepted"
    for r in chef:1 worker chief:2 'worker:*,ps:*' worker:1,worker:2 'worker:1;ps:1' 'worker:$(id)'; do
        out=$("$stub" "$PLUGIN" $c dl=tf "dl-roles=$r")
        like "$out" '^error dl: --dl-roles=.*; see dl-spank\(7\)$' "$c: --dl-roles=$r is reported"
        like "$out" '^status -1' "$c: and refused"
    done
done

out=$(fake "$stub" "$PLUGIN" 0 dl=torch)
for v in RANK=2 WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=1 MASTER_PORT=19004 DL_ENV_STEP=1234.0; do
    like "$out" "^set $v\$" "a task gets $v"
done
like "$out" '^set MASTER_ADDR=127.0.0.1' "names of emulated nodes that do not resolve"
like "$(fake SLURM_STEP_NUM_NODES=1 SLURM_NODEID=0 "$stub" "$PLUGIN" 0 dl=torch)" '^set MASTER_ADDR=127.0.0.1$' "one node needs no name"
like "$(apart SLURM_STEP_NUM_NODES=1 SLURM_NODEID=0 "$stub" "$PLUGIN" 0 dl=torch)" '^set MASTER_ADDR=127.0.0.1$' "nor if it has one"
like "$(apart "$stub" "$PLUGIN" 0 dl=torch)" '^set MASTER_ADDR=n1$' "otherwise the name of the first host"
like "$(apart "$stub" "$PLUGIN" 0 dl=torch)" "^error dl: $(hostname) found no address of n1, the node of rank 0, that other machines can reach, so ranks on $(hostname) cannot connect: fix " "and that it has no address"
out=$(fake SLURM_CONF=/nonexistent "$stub" "$PLUGIN" 0 dl=torch)
is "$(echo "$out" | grep -c '^set MASTER_')" 0 "names that do not resolve: no master, and never 127.0.0.1"
like "$out" '^error dl: --dl=torch: the master is not set: found no address of n1 that other nodes can reach: fix /etc/hosts' "and one line says what to do"
if ip route get 192.0.2.7 >/dev/null 2>&1; then
    out=$(fake SLURM_CONF=/nonexistent SLURM_NODE_ALIASES='n1:192.0.2.7:ip-7,n2:192.0.2.8:ip-8' "$stub" "$PLUGIN" 0 dl=tf)
    like "$out" '"192.0.2.7:19005","192.0.2.7:19006","192.0.2.8:19005"' "the addresses of a cloud's nodes"
else
    skip "the addresses of a cloud's nodes" "no route to other networks"
fi
printf 'NodeName=n[1-2] NodeAddr=127.0.0.1\nNodeName=n3 NodeAddr=192.0.2.9\n' >"$work/mixed.conf"
out=$(fake SLURM_CONF="$work/mixed.conf" SLURM_STEP_NUM_NODES=3 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=2,1,1 SLURM_STEP_NODELIST='n[1-3]' "$stub" "$PLUGIN" 0 dl=torch)
is "$(echo "$out" | grep -cE '^set (MASTER_ADDR|GLOO_SOCKET_IFNAME)=(127|lo)')" 0 "two slurmd on this machine and one on another: no loopback"
is "$(echo "$out" | grep -cE 'TORCHELASTIC|CUDA')" 0 "never TORCHELASTIC_*, never CUDA_VISIBLE_DEVICES"

out=$(fake SLURM_PROCID=0 SLURM_GTIDS=0,1 SLURM_NODEID=0 PROGRAM=/usr/bin/orted "$stub" "$PLUGIN" 0 dl=torch)
is "$(echo "$out" | grep -c '^set')" 0 "the daemons of mpirun, whose ranks would all be rank 0: nothing is set"
like "$out" '^error dl: --dl=torch: nothing is set: mpirun starts the ranks itself: start them with srun$' "and rank 0 says so"
out=$(fake PROGRAM=/usr/bin/orted "$stub" "$PLUGIN" 0 -- default=torch when=gpus:any default=torch)
is "$(echo "$out" | grep -cE '^(set|error)')" 0 "a site default prints nothing there"

# ---- the other frameworks (tests/runtime/rank_environment.c has all layouts)
out=$(fake "$stub" "$PLUGIN" 0 dl=tf)
like "$out" '^set TF_CONFIG=\{"cluster": \{"worker": \["127.0.0.1:[0-9]+","127.0.0.1:[0-9]+","127.0.0.1:[0-9]+"\]\}, "task": \{"type": "worker", "index": 2\}, "rpc_layer": "grpc"\}$' "TF_CONFIG"
out=$(apart "$stub" "$PLUGIN" 0 dl=tf dl-roles=ps:1,worker:*)
like "$out" '"ps": \["n1:19005"\], "worker": \["n1:19006","n2:19005"\]' "TF_CONFIG with roles, over hosts, on reserved ports"
like "$out" '^set DL_ROLE=worker$' "the role of this rank"
out=$(apart SLURM_STEP_RESV_PORTS= "$stub" "$PLUGIN" 0 dl=tf)
like "$out" '"n1:[0-9]+","n1:[0-9]+","n2:[0-9]+"' "and without a reservation"
is "$(echo "$out" | grep -cE '"n[12]:4100[0-9]"')" 0 "on other ports"
out=$(fake "$stub" "$PLUGIN" 0 dl=tf dl-roles=worker:2)
is "$(echo "$out" | grep -c '^set')" 0 "roles for another number of tasks: nothing is set"
like "$(fake SLURM_PROCID=0 SLURM_GTIDS=0,1 SLURM_NODEID=0 "$stub" "$PLUGIN" 0 dl=tf dl-roles=worker:2)" \
    '^error dl: --dl=tf: nothing is set: the roles need 2 tasks; the step has 3$' "rank 0 says why"
out=$(fake "$stub" "$PLUGIN" 0 dl=ps)
like "$out" '^set DMLC_ROLE=worker$' "ps has its own roles"
like "$out" '^set DMLC_PS_ROOT_URI=127.0.0.1$' "and an address"
# rank counts that do not match the GPUs
zero="SLURM_PROCID=0 SLURM_NODEID=0 SLURM_GTIDS=0,1 SLURMD_NODENAME=n1"
one="$zero SLURM_GTIDS=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_TASKS_PER_NODE=1 SLURM_STEP_NODELIST=n1"
advice () { # advice OPTION VARIABLE=VALUE...: print the warnings of --dl
    option=$1
    shift
    fake "$@" "$stub" "$PLUGIN" 0 "$option" 2>&1 | sed -n 's/^error dl: --dl=[a-z]*: //p'
}
{
    is "$(advice dl=torch $one CUDA_VISIBLE_DEVICES=0,1,2,3)" "one rank on a node for its 4 GPUs; for a rank for each GPU use --ntasks-per-node=4, for torchrun --dl=torchrun" "one rank, four GPUs"
    is "$(advice dl=jax $one CUDA_VISIBLE_DEVICES=0,1,2,3)" "" "as JAX expects them"
    is "$(advice dl=torch $one CUDA_VISIBLE_DEVICES=2)$(advice dl=torch $one)" "" "one rank, one GPU or none"
    like "$(advice dl=lightning $zero CUDA_VISIBLE_DEVICES=0)" '^2 ranks of a node see one GPU each: .*--gpus-per-node=2 instead of --gpus-per-task$' "GPUs that are hidden"
    is "$(advice dl=torch $zero CUDA_VISIBLE_DEVICES=0,1)" "" "one GPU per rank"
    like "$(advice dl=torch $zero SLURM_GTIDS=0,1,2 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=3,1 CUDA_VISIBLE_DEVICES=0,1)" '^3 ranks for the 2 GPUs of a node: .*--ntasks-per-node=2$' "more ranks than GPUs"
    is "$(advice dl=torch CUDA_VISIBLE_DEVICES=0,1,2,3 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_PROCID=1 SLURM_GTIDS=1)" "" "only rank 0 says so"
    is "$(fake $one SLURM_STEP_GPUS=0,1 CUDA_VISIBLE_DEVICES=0,1 "$stub" "$PLUGIN" 0 -- default=torch 2>&1 | grep -c error)" 0 "users who did not ask see no message"
    one="SLURM_PROCID=1 SLURM_LOCALID=1 $zero"
    stays='was exported, and stays, but here it is'
    like "$(fake $zero RANK=5 "$stub" "$PLUGIN" 0 dl=torch 2>&1)" "^error dl: RANK=5 $stays 0: unset it in the job script$" "rank 0 reports an exported RANK"
    is "$(fake $one SLURM_PROCID=1 RANK=5 "$stub" "$PLUGIN" 0 dl=torch 2>&1 | grep -c "$stays")" 0 "and rank 1 does not"
    like "$(fake $one SLURM_PROCID=1 RANK=0 "$stub" "$PLUGIN" 0 dl=torch 2>&1)" "^error dl: RANK=0 $stays 1: " "which blames RANK=\$SLURM_PROCID in a batch script"
}
out=$(fake SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_PROCID=1 SLURM_GTIDS=1 CUDA_VISIBLE_DEVICES=0,1,2 "$stub" "$PLUGIN" 0 dl=torchrun)
for v in PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=3 PET_MASTER_PORT=19004 PET_RDZV_BACKEND=static; do
    like "$out" "^set $v\$" "torchrun: $v"
done
is "$(echo "$out" | grep -cE '^set (RANK|WORLD_SIZE|MASTER_)')" 0 "but not what torchrun sets for its ranks"
elastic () { # elastic ARGUMENT...: the rendezvous variables for torchrun with these arguments
    apart SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_PROCID=1 SLURM_GTIDS=1 PROGRAM="torchrun $*" "$stub" "$PLUGIN" 0 dl=torchrun |
        grep -oE '^set PET_(RDZV_[A-Z]*=.*|MASTER_ADDR=.*)' | tr '\n' ' '
}
tab=$(printf '\t')
# a command line with tabs is passed as one word, for sh -c
for a in --max-restarts=3 '--max_restarts 1' --nnodes=1:3 '--nnodes 2:2' --rdzv_backend=c10d "sh -c exec${tab}torchrun${tab}--max-restarts${tab}2${tab}x.py" \
    "sh -c cd${tab}src;${tab}'torchrun'${tab}'--rdzv-backend=c10d'${tab}x.py"; do
    is "$(elastic "$a" x.py)" "set PET_RDZV_BACKEND=c10d set PET_RDZV_ENDPOINT=n1:19004 set PET_RDZV_CONF=is_host=0 set PET_RDZV_ID=1234.0 " "torchrun $a: every node takes part in a restart"
done
is "$(elastic --max-restarts=0 --nnodes=2 x.py)" "set PET_RDZV_BACKEND=static set PET_MASTER_ADDR=n1 " "without: in Slurm's order"
like "$(fake $zero PET_MAX_RESTARTS=1 PET_RDZV_BACKEND=static "$stub" "$PLUGIN" 0 dl=torchrun)" 'torchrun with --max-restarts or .* needs --rdzv-backend=c10d' "a user's static rendezvous is reported at once"
like "$(fake PMIX_RANK=2 "$stub" "$PLUGIN" 0 dl=mpi)" '^set OMPI_COMM_WORLD_LOCAL_RANK=0$' "mpi under pmix"
like "$(fake PMI_FD=7 "$stub" "$PLUGIN" 0 dl=mpi)" '^set MPI_LOCALRANKID=0$' "mpi under pmi2"
like "$(fake CUDA_VISIBLE_DEVICES=3 "$stub" "$PLUGIN" 0 dl=jax)" '^set JAX_LOCAL_DEVICE_IDS=0$' "jax with one GPU visible"
jax () { # jax VARIABLE=VALUE...: print the devices of local rank 1 of 2
    fake $zero SLURM_PROCID=1 SLURM_LOCALID=1 "$@" "$stub" "$PLUGIN" 0 dl=jax 2>&1 | sed -n 's/^set JAX_LOCAL_DEVICE_IDS=//p'
}
is "$(jax CUDA_VISIBLE_DEVICES=0,1,2,3 SLURM_GPUS_ON_NODE=4)" 2,3 "jax: GPUs that all tasks of a node see are divided"
is "$(jax CUDA_VISIBLE_DEVICES=2,3 SLURM_GPUS_ON_NODE=4 SLURM_GPUS_PER_TASK=2)" 0,1 "--gpus-per-task=2: a task has both of its GPUs"
is "$(jax CUDA_VISIBLE_DEVICES=0,1 SLURM_GPUS_ON_NODE=4 SLURMD_TRES_BIND=gpu:per_task:2)" 0,1 "in a device cgroup, too"
is "$(jax CUDA_VISIBLE_DEVICES=0,1 SLURM_GPUS_ON_NODE=4)" "" "a step with part of the job's GPUs: JAX's own choice is right"
is "$(advice dl=jax $zero CUDA_VISIBLE_DEVICES=0 SLURM_GPUS_ON_NODE=1)" "2 tasks for the 1 GPU of a node: JAX needs one for each; use --ntasks-per-node=1" "fewer GPUs than tasks are reported"
is "$(advice dl=jax $zero CUDA_VISIBLE_DEVICES=0,1,2 SLURM_GPUS_ON_NODE=3)" "3 GPUs of a node for 2 tasks: each gets 1, and 1 idle" "and idle ones"
is "$(apart SLURM_NTASKS_PER_NODE=4 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_PROCID=1 SLURM_GTIDS=1 "$stub" "$PLUGIN" 0 dl=lightning | grep '^set SLURM')" "set SLURM_NTASKS_PER_NODE=1" "lightning: the value of the step, not of its job"
out=$(fake "$stub" "$PLUGIN" 0 dl=auto)
is "$(echo "$out" | grep -cE '^set (TF_CONFIG|DMLC_|HOROVOD_|PADDLE_|OMPI_)')" 0 "auto sets no variable that changes a program"
out=$(fake SLURM_STEP_NUM_NODES=1 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_GTIDS=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_TASKS_PER_NODE=1 SLURM_STEP_NODELIST=n2 "$stub" "$PLUGIN" 0 dl=auto)
is "$(echo "$out" | grep -E '^set' | grep -vE '^set (PET_|DL_ENV_)')" "" "auto leaves a single task alone"
long=$(head -c 9000 /dev/zero | tr '\0' 'n')
is "$(fake TF_CONFIG="$long" "$stub" "$PLUGIN" 0 dl=tf | grep -c '^set TF_CONFIG')" 0 "a long value of the user's wins too"

nothing () { # nothing NAME COMMAND...: check that it sets no variable
    name=$1
    shift
    is "$("$@" | grep -c '^set')" 0 "nothing is set: $name"
}
nothing "no --dl" fake "$stub" "$PLUGIN" 0
nothing "--dl=off" fake "$stub" "$PLUGIN" 0 dl=off
nothing "batch step" fake "$stub" "$PLUGIN" 0xfffffffb dl=torch
nothing "extern step" fake "$stub" "$PLUGIN" 0xfffffffc dl=torch
nothing "interactive step" fake "$stub" "$PLUGIN" 0xfffffffa dl=torch
nothing "an absent value" fake "$stub" "$PLUGIN" 0 "dl=(null)" "dl="
arbitrary () {
    fake SLURM_DISTRIBUTION=arbitrary SLURM_STEP_NUM_NODES=3 SLURM_STEP_NODELIST='n[1-3]' SLURM_STEP_TASKS_PER_NODE='1(x3)' \
        SLURM_NODEID=2 SLURM_PROCID=0 SLURM_GTIDS=0 "$@"
}
nothing "tf, arbitrary on three nodes" arbitrary "$stub" "$PLUGIN" 0 dl=tf
out=$(arbitrary "$stub" "$PLUGIN" 0 dl=torch)
like "$out" '^set RANK=0$' "arbitrary on three nodes: the rank is known"
is "$(echo "$out" | grep -c '^set MASTER_')" 0 "the master is not"
like "$out" '^error dl: --dl=torch: the master is not set: ' "and the reason is reported"
out=$(arbitrary SLURM_CONF=/nonexistent SLURMD_NODENAME="$(hostname)" SLURM_DL_HOSTFILE=n3,n1,n2 "$stub" "$PLUGIN" 0 dl=torch)
like "$out" '^set MASTER_ADDR=n3$' "srun passes the order of hosts"
like "$out" '^unset SLURM_DL_HOSTFILE$' "which the program does not get"
# shellcheck disable=SC2258
for wrong in n1,n3,n2 n3,n1 n3,n1,n4 n3,n3,n1 x, ,; do
    is "$(arbitrary SLURM_DL_HOSTFILE=$wrong "$stub" "$PLUGIN" 0 dl=torch | grep -c '^set MASTER_')" 0 "an order that is not Slurm's is ignored: $wrong"
done
hostfile () { # hostfile [VARIABLE=VALUE]...: print the host order that srun passes to its tasks
    env -i PATH="$PATH" FAKE_PROBE='echo "told $SLURM_DL_HOSTFILE"' "$@" "$stub" "$PLUGIN" local dl=torch | sed -n 's/^told //p' | tail -n 1
}
printf '# racks\nn3 # the first\nn1*2\n\nn2\n' >"$work/hosts"
is "$(hostfile SLURM_HOSTFILE="$work/hosts")" n3,n1,n1,n2 "SLURM_HOSTFILE"
is "$(hostfile SLURM_HOSTFILE=/nonexistent)$(hostfile SLURM_DL_HOSTFILE=x)" "" "a missing one, and a stale one"
arbitrary2 () {
    apart SLURM_DISTRIBUTION=arbitrary "$@" "$stub" "$PLUGIN" 0 dl=torch | sed -n 's/^set MASTER_ADDR=//p'
}
is "$(arbitrary2) $(arbitrary2 SLURM_STEP_TASKS_PER_NODE=1,2 SLURM_GTIDS=0,2)" "n1 n2" "arbitrary on two nodes: the node of rank 0"
het () {
    apart SLURM_HET_SIZE=2 SLURM_STEP_NUM_TASKS=5 SLURM_STEP_NODELIST='n[1-3]' SLURM_STEP_TASKS_PER_NODE=2,1,2 \
        SLURM_STEP_NUM_NODES=3 SLURM_GTIDS=2,3 "$@"
}
out=$(het SLURM_JOB_NODELIST_PACK_GROUP_0=n3 SLURM_JOB_NODELIST_PACK_GROUP_1='n[1-2]' "$stub" "$PLUGIN" 0 dl=torch)
like "$out" '^set MASTER_ADDR=n3$' "heterogeneous job: the first component's first node"
like "$out" '^set LOCAL_WORLD_SIZE=2$' "and the tasks of this one"
out=$(het SLURM_JOB_NODELIST_HET_GROUP_0=n3 SLURM_JOB_NODELIST_HET_GROUP_1='n[1-2]' "$stub" "$PLUGIN" 0 dl=torch)
like "$out" '^set MASTER_ADDR=n3$' "under both of Slurm's names"
is "$(het "$stub" "$PLUGIN" 0 dl=torch | grep -c '^set MASTER_')" 0 "a heterogeneous job without them has no master"
like "$(apart SLURM_HET_SIZE=2 "$stub" "$PLUGIN" 0 dl=torch)" '^set MASTER_ADDR=n1$' "variables of an outer heterogeneous job do no harm"
nothing "no word from Slurm" env -i "$stub" "$PLUGIN" 0 dl=torch
like "$(env -i "$stub" "$PLUGIN" 0 dl=torch)" '^error dl: --dl=torch: nothing is set: ' "and the reason is reported"
like "$(env -i "$stub" "$PLUGIN" 0 dl=torch)" '^status 0' "and the job continues"

gpu=SLURM_STEP_GPUS=0
like "$(fake $gpu "$stub" "$PLUGIN" 0 -- default=torch)" '^set RANK=2$' "the site's default"
nothing "a default in a step without GPUs" fake "$stub" "$PLUGIN" 0 -- default=torch nccl=auto monitor=5 check=quick debug=600
nothing "and in one of a job that has some" fake SLURM_JOB_GPUS=0 SLURM_GPUS=1 "$stub" "$PLUGIN" 0 -- default=torch
like "$(fake "$stub" "$PLUGIN" 0 -- when=gpus:any default=torch)" '^set RANK=2$' "unless the site says gpus:any"
like "$(fake $gpu SLURM_JOB_PARTITION=ai "$stub" "$PLUGIN" 0 -- when=partition:ai default=torch)" '^set RANK=2$' "a default of a partition"
nothing "a default of another partition" fake $gpu SLURM_JOB_PARTITION=x "$stub" "$PLUGIN" 0 -- when=partition:ai default=torch
out=$(fake SLURM_PROCID=0 SLURM_GTIDS=0,1 SLURM_NODEID=0 SLURM_JOB_ACCOUNT=poor "$stub" "$PLUGIN" 0 dl=torch -- when=account:poor deny=torch)
is "$(echo "$out" | grep '^error')" "error dl: --dl=torch: this site does not allow torch" "rank 0 reports what an account may not use"
is "$(echo "$out" | grep -c '^set')" 0 "and it is not used"
nothing "the user's off wins over the default" fake $gpu "$stub" "$PLUGIN" 0 dl=off -- default=torch
typo="error dl: plugstack.conf: defualt=torch: no such argument; ignored"
is "$(DL_DOCTOR=1 "$stub" "$PLUGIN" local -- defualt=torch | grep '^error')" "$typo" "root and dl doctor see a typo in plugstack.conf"
is "$("$stub" "$PLUGIN" slurmd defualt=torch | grep '^error')" "" "slurmd"
is "$("$stub" "$PLUGIN" slurmd -- defualt=torch | grep '^error')" "$typo" "slurmd logs it"
if [ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null; then
    mortal () { if [ "$(id -u)" -eq 0 ]; then setpriv --reuid=65534 --clear-groups "$@"; else "$@"; fi; }
    cp "$stub" "$PLUGIN" "$work" 2>/dev/null && chmod 755 "$work" "$work"/*
    mystub=$work/spank
    [ -x "$builddir/tests/fakes/.libs/spank" ] && cp "$builddir/tests/fakes/.libs/spank" "$work/spank"
    is "$(mortal "$mystub" "$work/dl.so" local -- defualt=torch)" "$("$stub" "$PLUGIN" local)" "a user who requested nothing sees nothing"
    is "$(mortal "$mystub" "$work/dl.so" local dl=torch -- defualt=torch | grep '^error')" "$typo" "a user who did sees it"
fi
like "$("$stub" "$PLUGIN" local -- defualt=torch)" '^status 0' "and it does no harm"

out=$(fake MASTER_PORT=5 RANK=9 "$stub" "$PLUGIN" 0 dl=torch)
is "$(echo "$out" | grep -cE '^set (MASTER_PORT|RANK)=')" 0 "the user's variables win"
like "$out" '^set DL_ENV_SET=WORLD_SIZE,LOCAL_RANK' "and are not marked as ours"
out=$(fake MASTER_PORT=5 RANK=9 DL_ENV_SET=RANK,WORLD_SIZE DL_ENV_STEP=1.0 "$stub" "$PLUGIN" 0 dl=torch)
like "$out" '^set RANK=2$' "what an outer step's plugin set is replaced"
is "$(echo "$out" | grep -c '^set MASTER_PORT=')" 0 "the user's variables are not"

# ---- variables that a batch script exports to all tasks
stays () { # stays RANK NODE LOCAL_RANK VARIABLE=VALUE VARIABLE=VALUE FRAMEWORK: count one task's warnings; 2 nodes, 2 tasks each
    place="SLURM_PROCID=$1 SLURM_NODEID=$2 SLURM_LOCALID=$3 SLURM_GTIDS=$(($2 * 2)),$(($2 * 2 + 1)) SLURMD_NODENAME=n$(($2 + 1))"
    shift 3
    # shellcheck disable=SC2086
    fake SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE='2(x2)' $place "$1" "$2" "$stub" "$PLUGIN" 0 "dl=$3" | grep -c "$1 was exported, and stays"
}
all () { # all VARIABLE=VALUE VARIABLE=VALUE FRAMEWORK: print the number of warnings of each of the four tasks
    echo "$(stays 0 0 0 "$@") $(stays 1 0 1 "$@") $(stays 2 1 0 "$@") $(stays 3 1 1 "$@")"
}
is "$(all RANK=0 A=1 torch) $(all LOCAL_RANK=0 A=1 torch) $(all NODE_RANK=0 A=1 lightning) $(all HOROVOD_LOCAL_RANK=0 A=1 horovod)" "0 1 0 0 0 1 0 0 0 0 1 0 0 1 0 0" "the first task with a wrong 0 reports it"
is "$(all WORLD_SIZE=2 A=1 torch) $(all LOCAL_WORLD_SIZE=1 A=1 torch) $(all WORLD_SIZE=0 A=1 torch)" "1 0 0 0 1 0 0 0 1 0 0 0" "rank 0 reports a wrong number of ranks"
is "$(all LOCAL_RANK=0 CUDA_VISIBLE_DEVICES=1 torch) $(all LOCAL_RANK=0 A=1 jax)" "0 0 0 0 0 0 0 0" "0 is right if each rank sees one GPU, or if nothing reads it"

# ---- variables that the plugin set in an outer step
clean () { # clean CONTEXT [VARIABLE=VALUE]...: print what a job that is submitted there would inherit
    c=$1
    shift
    env -i PATH="$PATH" DL_ENV_SET=RANK,MASTER_ADDR DL_BIND_SET=OMP_NUM_THREADS DL_NCCL_SET= DL_ENV_STEP=1.0 DL_SECRET=x RANK=0 MASTER_ADDR=n1 \
        OMP_NUM_THREADS=4 MASTER_PORT=5 "$@" FAKE_PROBE='env | grep -E "^(DL_|RANK|MASTER|OMP|PYTHONPATH)" | sort | tr "\n" " "' "$stub" "$PLUGIN" $c | tail -n 1
}
for c in local allocator; do
    is "$(clean $c)" "MASTER_PORT=5 " "$c: none of it reaches a job that is submitted there"
done
like "$(clean 0)" '^DL_BIND_SET=OMP_NUM_THREADS .*RANK=0 $' "slurmstepd keeps its own environment"
is "$(clean allocator DL_DEBUG_SET=PYTHONFAULTHANDLER DL_DEBUG_PYTHON=/ours PYTHONPATH=/ours:/mine DL_DEBUG_PATH=/x | tr ' ' '\n' | grep -v PYTHON=)" \
    "MASTER_PORT=5
PYTHONPATH=/mine" "nor the folder of --dl-debug"

# ---- a default of --dl-bind gives way to the user's own CPU binding
free () { # free [VARIABLE=VALUE]... -- [WORD]...: print "bind,-" if srun lets the default act, else "-"
    vars=
    while [ "$1" != -- ]; do
        vars="$vars $1"
        shift
    done
    shift
    env -i PATH="$PATH" SLURM_JOB_GPUS=0 $vars FAKE_PROBE='echo "free ${SLURM_DL_POLICY%% *}"' "$stub" "$PLUGIN" local "$@" -- bind=closest | sed -n 's/^free //p'
}
is "$(free --)" bind,- "no one has chosen cores: the default may"
is "$(free SLURM_CPU_BIND=cores --) $(free SLURM_HINT=nomultithread --) $(free KMP_AFFINITY=compact --) $(free -- --cpu-bind=none) $(free -- --hint=nomultithread)" \
    "- - - - -" "the user has chosen"
is "$(free -- dl-bind=spread)" - "nor does the default act then"
is "$(env -i PATH="$PATH" FAKE_PROBE='echo "free ${SLURM_DL_POLICY:-no} ${DL_SECRET:-none}"' "$stub" "$PLUGIN" local -- bind=closest default=auto monitor=5 | tail -n 1)" \
    "free no none" "a command that does not mention GPUs"
bound () { fake $gpu "$@" "$stub" "$PLUGIN" 0 -- bind=closest | grep -cE '^set DL_BIND_SET=$'; }
is "$(bound) $(bound FAKE_SRUN=bind,)" "0 1" "a default binds a task only if srun allows it"

is "$(fake $gpu FAKE_SRUN=bind, "$stub" "$PLUGIN" 0 -- bind=closest | grep -c OMP_NUM)/$(fake $gpu "$stub" "$PLUGIN" 0 dl-bind=closest | grep -c '^set OMP_NUM')" 0/1 "which leaves OMP_NUM_THREADS to the user"

# ---- srun decides on the defaults once for the whole step
nothing "no default without a word of srun's" fake $gpu FAKE_SRUN=- "$stub" "$PLUGIN" 0 -- default=torch
like "$(fake $gpu SLURM_DL_POLICY='- default=torch' "$stub" "$PLUGIN" 0 -- default=tf deny=torch)" '^set RANK=2$' "a node with other arguments follows srun"
like "$(fake $gpu SLURM_DL_POLICY='- default=torch' "$stub" "$PLUGIN" 0 -- defualt=x when=gpus:true dl=x)" '^set RANK=2$' "so does one with wrong arguments"
nothing "nor has it a default of its own" fake $gpu SLURM_DL_POLICY=- "$stub" "$PLUGIN" 0 -- default=torch bind=closest
nothing "a policy that srun does not allow" fake SLURM_DL_POLICY='- when=account:x deny=torch' SLURM_JOB_ACCOUNT=x "$stub" "$PLUGIN" 0 dl=torch
told () { # told [VARIABLE=VALUE]... -- [OPTION]...: print the policy that srun passes to the tasks
    vars=
    while [ "$1" != -- ]; do
        vars="$vars $1"
        shift
    done
    shift
    env -i PATH="$PATH" SLURM_JOB_GPUS=0 $vars FAKE_PROBE='echo "told $SLURM_DL_POLICY"' "$stub" "$PLUGIN" local "$@" -- dl=/x when=gpus:any default=auto nccl=auto | sed -n 's/^told //p'
}
is "$(told --)" "- when=gpus:any default=auto nccl=auto" "srun passes its policy, and no path"
is "$(told -- dl=torch)" "- when=gpus:any default=auto nccl=auto" "also for a user's option"
is "$(env -i PATH="$PATH" FAKE_PROBE='echo "told $SLURM_DL_POLICY"' "$stub" "$PLUGIN" local dl-bind=closest -- dl=/x when=gpus:any nccl_dir=/x default=torch | sed -n 's/^told //p')" \
    "- when=gpus:any nccl_dir=/x default=torch" "except a misplaced one, which ends defaults"
nothing "as it does in the tasks" fake $gpu "$stub" "$PLUGIN" 0 -- when=partition:x default=jax nccl_dir=/x when=gpus:any default=torch
is "$(told -- dl=off)$(told DL_DEFAULTS=off --)" "" "--dl=off or DL_DEFAULTS=off: no default is left"
is "$(told DL_DEFAULTS=off -- dl=torch)" "off,- when=gpus:any default=auto nccl=auto" "nor beside an option"
nothing "which the tasks follow" fake $gpu SLURM_DL_POLICY='off,- default=torch nccl=auto' "$stub" "$PLUGIN" 0
is "$(told SLURM_MPI_TYPE=pmix --)" "mpi,- when=gpus:any default=auto nccl=auto" "MPI is named, too"
out=$(fake $gpu $zero FAKE_SRUN=bind, "$stub" "$PLUGIN" 0 -- default=torch bind=closest)
like "$out" "^log dl: this site's default is --dl=torch --dl-bind=closest; --dl=off or DL_DEFAULTS=off disables it$" "rank 0 reports what a default did"
is "$(fake $gpu $zero "$stub" "$PLUGIN" 0 dl=torch -- default=jax | grep -c '^log')" 0 "but not if the user chose"

# ---- default=auto acts only on programs whose ranks train together
meant () { # meant PROGRAM [ARGUMENT]...: print 1 if default=auto sets RANK for it, else 0
    fake $gpu PATH="$PATH" PROGRAM="$*" "$stub" "$PLUGIN" 0 -- $when default=auto | grep -c '^set RANK='
}
when=
echo 'torch.distributed.init_process_group("nccl")' >"$work/ddp.py"
echo 'Trainer(seed=int(os.environ["SLURM_PROCID"]))' >"$work/seeds.py"
echo 'import torch' >"$work/plain.py"
printf 'from mpi4py import MPI\nimport torch.distributed.run\n' >"$work/mpi.py"
printf '\177ELF...libmpi.so.40...' >"$work/gmx" && chmod +x "$work/gmx"
echo SIF >"$work/gmx.sif"
is "$(meant python3 "$work/ddp.py" --lr 1) $(meant torchrun "$work/plain.py") $(meant python3 -m torch.distributed.run x.py)" "1 1 1" "auto is for programs that say so"
is "$(meant timeout 60 singularity exec --nv image.sif python3 -u "$work/ddp.py") $(meant singularity exec "$work/gmx.sif" /opt/venv/bin/torchrun "$work/plain.py")" "1 1" "also as arguments of another program"
is "$(meant timeout 60 conda run -n base python3 "$work/plain.py")" 0 "others are not"
is "$(meant python3 "$work/plain.py") $(meant python3 "$work/seeds.py") $(meant python3 "$work/mpi.py") $(meant "$work/gmx" mdrun) $(meant hostname) $(meant /nonexistent)" "0 0 0 0 0 0" "and for no others"
when=when=partition:ai
gpu="$gpu SLURM_JOB_PARTITION=ai"
is "$(meant python3 "$work/plain.py") $(meant python3 "$work/ddp.py")" "1 1" "in a partition for all"
is "$(meant singularity exec --nv --bind /data image.sif python3 "$work/seeds.py")" 0 "independent tasks in a container"
is "$(meant python3 "$work/seeds.py") $(meant sh -c 'run --seed $SLURM_PROCID') $(meant python3 "$work/mpi.py") $(meant "$work/gmx" mdrun)" "0 0 0 0" "but independent tasks and programs of MPI"
gpu="$gpu FAKE_SRUN=mpi,"
is "$(meant python3 "$work/ddp.py")" 0 "and what srun starts with --mpi"
gpu=SLURM_STEP_GPUS=0

# ---- --dl-nccl
mkdir "$work/nccl.d"
for f in infiniband roce slingshot efa tcp; do
    echo "NCCL_IB_TC=41" >"$work/nccl.d/$f.conf"
done
printf 'NCCL_IB_SL=3\nNCCL_ALGO=Ring\nNCCL_NET="AWS Libfabric"\nUCX_IB_SL=3\n' >"$work/nccl.d/site.conf"
head -c 17000 /dev/zero | tr '\0' '\n' >"$work/nccl.d/big.conf"
dir=nccl_dir=$work/nccl.d
for c in local allocator; do
    like "$("$stub" "$PLUGIN" $c dl-nccl=sit -- "$dir")" '^error dl: --dl-nccl=sit: no such profile in ' "$c: a missing profile"
    like "$("$stub" "$PLUGIN" $c dl-nccl=sit -- "$dir")" '^status -1' "$c: is refused"
    for good in auto none site; do
        like "$("$stub" "$PLUGIN" $c dl-nccl=$good -- "$dir")" '^status 0' "$c: --dl-nccl=$good"
    done
    for bad in ../site a/b .site 'a b' 123456789012345678901234567890123; do
        like "$("$stub" "$PLUGIN" $c "dl-nccl=$bad" -- "$dir")" '^status -1' "$c: --dl-nccl=$bad is refused"
    done
    like "$("$stub" "$PLUGIN" $c dl-nccl=site -- nccl_dir=/nonexistent)" '^status 0' "$c: a host without profiles cannot tell"
done
out=$(fake SLURM_PROCID=0 "$stub" "$PLUGIN" 0 dl-nccl=site -- "$dir")
for v in NCCL_IB_SL=3 'NCCL_NET=AWS Libfabric' UCX_IB_SL=3 DL_NCCL_SET=NCCL_IB_SL,NCCL_NET,UCX_IB_SL; do
    like "$out" "^set $v\$" "the profile sets $v"
done
like "$out" '^set DL_NCCL_FABRIC=(infiniband|roce|slingshot|efa|tcp):' "and the fabric is reported"
is "$(echo "$out" | grep '^error')" "error dl: $work/nccl.d/site.conf:2: NCCL_ALGO: for debugging only, by NVIDIA's manual" "what it must not set is reported"
is "$(echo "$out" | grep -cE '^set (NCCL_ALGO|RANK|DL_ENV)')" 0 "and not set, nor what --dl sets"
is "$(fake SLURM_PROCID=1 "$stub" "$PLUGIN" 0 dl-nccl=site -- "$dir" | grep -c '^error')" 0 "by rank 0 only"
out=$(fake SLURM_PROCID=0 NCCL_IB_SL=7 NCCL_TIMEOUT=1 "$stub" "$PLUGIN" 0 dl-nccl=site -- "$dir")
like "$out" '^set DL_NCCL_SET=NCCL_NET,UCX_IB_SL$' "the user's export wins"
like "$out" '^error dl: NCCL_TIMEOUT has no effect' "an error in an export is reported"
out=$(fake SLURM_PROCID=0 NCCL_IB_SL=7 DL_NCCL_SET=NCCL_IB_SL "$stub" "$PLUGIN" 0 dl-nccl=site -- "$dir")
like "$out" '^set NCCL_IB_SL=3$' "what an outer step's plugin set is replaced"
long=$(head -c 100000 /dev/zero | tr '\0' 'n')
out=$(fake SLURM_PROCID=0 NCCL_IB_SL="$long" NCCL_SOCKET_IFNAME="$long" NCCL_"$long"=1 UCX_"$long"=1 DL_NCCL_SET="$long" \
    "$stub" "$PLUGIN" 0 dl-nccl=site -- "$dir")
is $? 0 "oversized exports"
is "$(echo "$out" | grep -c '^set NCCL_IB_SL')" 0 "win too"
like "$(fake "$stub" "$PLUGIN" 0 dl-nccl=auto -- "$dir")" '^set NCCL_IB_TC=41$' "auto: the profile of the fabric"
like "$(fake $gpu "$stub" "$PLUGIN" 0 -- nccl=auto "$dir")" '^set NCCL_IB_TC=41$' "the site's default"
closed () { # closed NAME: check that the profile is rejected because other users could write to it
    out=$(fake SLURM_PROCID=0 "$stub" "$PLUGIN" 0 dl-nccl=tcp -- "$dir")
    is "$(echo "$out" | grep -c '^set NCCL')" 0 "$1: nothing is read"
    is "$(echo "$out" | grep '^error')" "error dl: --dl-nccl=tcp: nothing is set: $work/nccl.d/tcp.conf: others than root and its owner may write there" "and that is reported"
}
for mode in 777 1777 775; do
    chmod $mode "$work/nccl.d"
    closed "a folder of mode $mode"
done
chmod 755 "$work/nccl.d"
chmod 664 "$work/nccl.d/tcp.conf"
closed "a profile of mode 664"
chmod 644 "$work/nccl.d/tcp.conf"
if [ "$(id -u)" -eq 0 ]; then
    chown 65534 "$work/nccl.d/tcp.conf"
    closed "a profile of another user"
    chown 0 "$work/nccl.d/tcp.conf"
fi
mode=$(stat -c %a "$work")
chmod 777 "$work"
closed "a folder above"
chmod "$mode" "$work"
like "$(fake SLURM_PROCID=0 "$stub" "$PLUGIN" 0 dl-nccl=tcp -- "$dir")" '^set NCCL_IB_TC=41$' "once fixed, it is read again"
like "$(DL_DOCTOR=1 "$stub" "$PLUGIN" local -- nccl=sit "$dir")" '^error dl: plugstack.conf: nccl=sit: no such profile' "a missing site default"
[ -e /etc/nccl.conf ] || like "$(fake "$stub" "$PLUGIN" 0 dl-nccl=auto -- nccl_dir=/nonexistent)" '^set NCCL_DEBUG=WARN$' "auto without a profile"
like "$(fake SLURM_PROCID=0 "$stub" "$PLUGIN" 0 dl-nccl=big -- "$dir")" '^error dl: --dl-nccl=big: nothing is set: .*: File too large$' "a file that is too large"
like "$(fake SLURM_PROCID=0 "$stub" "$PLUGIN" 0 dl-nccl=nope -- "$dir")" '^error dl: --dl-nccl=nope: nothing is set: .*: No such file' "a node without the profile"
like "$(fake SLURM_PROCID=0 "$stub" "$PLUGIN" 0 dl-nccl=nope)" '^error dl: --dl-nccl=nope: nothing is set: /.*/nccl.d/nope.conf: No such file' "without nccl_dir there is the folder of the installation"
like "$(DL_DOCTOR=1 "$stub" "$PLUGIN" local -- nccl_dir=x)" '^error dl: plugstack.conf: nccl_dir=x: not an absolute path' "a folder that is not an absolute path"
other=$(fake SLURM_PROCID=0 NCCL_SOCKET_IFNAME=nosuch0 "$stub" "$PLUGIN" 0 dl-nccl=auto -- nccl_dir=/nonexistent)
if unshare -rn true 2>/dev/null && echo "$other" | grep -q '^error dl: NCCL_SOCKET_IFNAME=nosuch0: this node has no such interface$'; then
    out=$(fake SLURM_PROCID=0 NCCL_SOCKET_IFNAME=nosuch0 unshare -rn "$stub" "$PLUGIN" 0 dl-nccl=auto -- nccl_dir=/nonexistent)
    is "$(echo "$out" | grep -c '^error')" 0 "in a network namespace with the host's /sys the interfaces are unknown"
else
    skip "in a network namespace with the host's /sys the interfaces are unknown" "no namespace, or no interface in /sys"
fi
nothing "--dl-nccl=none" fake "$stub" "$PLUGIN" 0 dl-nccl=none -- nccl=auto "$dir"
nothing "--dl-nccl in a batch step" fake "$stub" "$PLUGIN" 0xfffffffb dl-nccl=site -- "$dir"
nothing "--dl-nccl in an extern step" fake "$stub" "$PLUGIN" 0xfffffffc dl-nccl=site -- "$dir"
nothing "--dl-nccl in an interactive step" fake "$stub" "$PLUGIN" 0xfffffffa dl-nccl=site -- "$dir"
if command -v strace >/dev/null; then
    strace -f -e trace=file -o "$work/trace" "$stub" "$PLUGIN" 0xfffffffb dl-nccl=site -- "$dir" >/dev/null 2>&1
    is "$(grep -v execve "$work/trace" | grep -cE "nccl.d|/sys/class")" 0 "the plugin looks for no file as root"
fi

# ---- random values of all sizes in srun and in a task (CVE-2026-65108)
for size in 1 63 64 65 255 4096 65536; do
    head -c $size /dev/urandom | tr -d '\000' >"$work/value"
    for c in local 0; do
        fake "$stub" "$PLUGIN" $c "dl=@$work/value" "dl-roles=@$work/value" >"$work/out" 2>&1
        is $? 0 "$size random bytes in context $c"
        is "$(grep -ac '^set' "$work/out")" 0 "and nothing is set"
        fake "$stub" "$PLUGIN" $c "dl-nccl=@$work/value" >"$work/out" 2>&1
        is $? 0 "$size random bytes for --dl-nccl in context $c"
    done
    tr '\000-\377' 'torch' <"$work/value" >"$work/letters"
    fake "$stub" "$PLUGIN" 0 "dl=@$work/letters" >/dev/null
    is $? 0 "$size letters"
    tr '\000-\377' 'worke:1,*' <"$work/value" >"$work/letters"
    fake "$stub" "$PLUGIN" 0 dl=tf "dl-roles=@$work/letters" >/dev/null
    is $? 0 "$size letters of roles"
    for v in value letters; do
        fake "$stub" "$PLUGIN" 0 "dl-bind=@$work/$v" >"$work/out" 2>&1
        is "$? $(grep -ac '^set' "$work/out")" "0 0" "$size bytes of $v for --dl-bind"
    done
done
long=$(head -c 100000 /dev/zero | tr '\0' 'n')
fake SLURM_STEP_NODELIST="$long" SLURM_STEP_TASKS_PER_NODE="$long" SLURM_GTIDS="$long" "$stub" "$PLUGIN" 0 dl=torch >/dev/null
is $? 0 "oversized variables"

# ---- --dl-check: a task ends or goes on, by the exit status of dl
printf '#!/bin/sh\necho "called $*"\nexit $FAKE_STATUS\n' >"$work/dl"
chmod +x "$work/dl"
for s in 75 79; do
    out=$(fake FAKE_STATUS=$s "$stub" "$PLUGIN" 0 dl-check=full -- "dl=$work/dl" 2>&1)
    is $? $s "--dl-check: a task ends with dl's status $s"
    like "$out" '^called check-rank full plain$' "it requested a full check"
done
out=$(fake FAKE_STATUS=0 "$stub" "$PLUGIN" 0 dl-check=quick -- "dl=$work/dl" 2>/dev/null)
like "$out" '^unset SLURM_DL_GATHER$' "a task that continues does not have the token"
like "$out" '^status 0$' "and continues"
for s in 1 127 139; do
    out=$(fake FAKE_STATUS=$s "$stub" "$PLUGIN" 0 dl-check=quick -- "dl=$work/dl" 2>/dev/null)
    like "$out" '^error dl: --dl-check: this node is not checked: .*/dl: it failed$' "dl's status $s is reported"
    like "$out" '^status 0$' "and the task continues"
done
# Slurm 25.05.8 starts tasks with SIGCHLD blocked
printf '#!/bin/sh\ngrep SigBlk /proc/self/status\n' >"$work/blocked"
chmod +x "$work/blocked"
like "$(fake env --block-signal=CHLD,USR1 "$stub" "$PLUGIN" 0 dl-check=quick -- "dl=$work/blocked" 2>&1)" \
    '^SigBlk:.0000000000000000$' "dl has no signal blocked, whatever started the task"
out=$(fake FAKE_STATUS=79 FAKE_UID=12345 "$stub" "$PLUGIN" 0 dl-check=quick -- "dl=$work/dl" 2>&1)
like "$out" '^error dl: --dl-check: this node is not checked: .*/dl: Operation not permitted$' "nothing runs as a user other than the job's"
is "$(echo "$out" | grep -c called)" 0 "nor did anything start"
out=$(fake "$stub" "$PLUGIN" 0 dl-check=quick -- dl=/nonexistent)
like "$out" '^error dl: --dl-check: this node is not checked: /nonexistent: No such file' "a missing dl is reported"
like "$("$stub" "$PLUGIN" local dl-check=quick -- dl=/nonexistent)" '^error dl: --dl-check: each node is checked alone: cannot run /nonexistent: No such file' "also by srun"
is "$(fake FAKE_STATUS=79 "$stub" "$PLUGIN" 0 dl-check=off -- "dl=$work/dl" 2>&1 | grep -c called)" 0 "--dl-check=off starts nothing"
is "$(fake FAKE_STATUS=79 "$stub" "$PLUGIN" 0 -- "dl=$work/dl" 2>&1 | grep -c called)" 0 "nor does a task without it"
for c in 0xfffffffb 0xfffffffc 0xfffffffa; do
    is "$(fake FAKE_STATUS=79 "$stub" "$PLUGIN" $c dl-check=quick -- "dl=$work/dl" 2>&1 | grep -c called)" 0 "nor does step $c"
done

# ---- the manual lists exactly the options of the plugin
options=$("$stub" "$PLUGIN" local | sed -n 's/^option \(--[a-z-]*\).*/\1/p' | sort)
echo "$options" >plugin-options
manual=$(sed -n '/^\.SH OPTIONS/,/^\.SH WHAT/s/^\.BI \(\\-\\-[a-z\\-]*= .*\)/\1/p' "$srcdir/doc/dl-spank.7" | sed 's/\\f.//g; s/\\//g; s/[ "]//g')
is "$(echo "$manual" | cut -d= -f1 | sort -u)" "$options" "dl-spank(7) has the options of the table"
for o in $("$stub" "$PLUGIN" local | sed -n 's/^option //p'); do
    case $manual in
    *"$o"*) ok 0 "dl-spank(7) has the argument of $o" ;;
    *) ok 1 "dl-spank(7) has the argument of $o" ;;
    esac
done

# ---- dl env has four of them
is "$(dl --complete env | sed -n 's/^\(--dl[a-z-]*\).*/\1/p' | sort | comm -12 - plugin-options | wc -l)" 4 "dl env completes the options that it reads"
# ---- the port of rank 0: report one that is in use before the rendezvous times out
if command -v python3 >/dev/null; then
    out=$(python3 -c '
import os, socket, subprocess, sys
s = socket.create_server(("", 0))
port = s.getsockname()[1]
for _ in range(2):
    env = dict(os.environ, SLURM_STEP_RESV_PORTS=f"{port}-{port + 2}")
    print("said", subprocess.run(sys.argv[1:], env=env, capture_output=True, text=True).stdout.replace(str(port), "PORT"))
    s.close()
' env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=2 \
        SLURM_STEP_NODELIST=n1 SLURMD_NODENAME=n1 SLURM_GTIDS=0,1 "$stub" "$PLUGIN" 0 dl=torch)
    is "$(echo "$out" | grep '^said\|^error' | cut -d' ' -f1-9)" "said option --dl=FRAMEWORK
error dl: port PORT of this node is in
said option --dl=FRAMEWORK" "a port that is in use is reported, another is not"
else
    skip "a port that is in use" "no python3"
fi

# ---- the secret of a step: srun generates it if any option is given
secret () { # secret [VARIABLE=VALUE]... COMMAND...: print DL_SECRET as it is in the environment afterwards
    env DL_SECRET=of-an-outer-step FAKE_PROBE='echo "secret ${DL_SECRET:-none}"' "$@" | sed -n 's/^secret //p'
}
first=$(secret "$stub" "$PLUGIN" local dl=torch)
like "$first" '^[0-9a-f]{32}$' "srun makes 128 bits"
is "$([ "$first" != "$(secret "$stub" "$PLUGIN" local dl=torch)" ] && echo other)" other "and others for the next step"
like "$(secret "$stub" "$PLUGIN" local dl-bind=closest)" '^[0-9a-f]{32}$' "with any option"
is "$(secret SLURM_STEP_ID= "$stub" "$PLUGIN" local)" of-an-outer-step "without one the user's own is kept"
is "$(secret SLURM_STEP_ID=0 "$stub" "$PLUGIN" local dl=off)" none "but not that of an enclosing step"
is "$(secret "$stub" "$PLUGIN" 0 dl=torch)" of-an-outer-step "tasks create none"
is "$(secret FAKE_FAILS=getrandom "$stub" "$PLUGIN" local dl=torch)" none "a step that gets none does not have an outer one's"
# ---- the folder of --dl-debug: the plugin does not use one that another user may have planted
debugged () { # debugged [VARIABLE=VALUE]...: print the plugin's errors and variables
    (cd "$work/debug" && fake SLURM_JOB_ID=7 "$@" "$stub" "$PLUGIN" remote dl-debug=hang:1000 2>&1)
}
mkdir "$work/debug"
taken=$work/debug/dl-debug-7.0
for plant in 'touch' 'ln -s /tmp' 'mkfifo'; do
    rm -f "$taken"
    $plant "$taken"
    like "$(debugged)" '^error dl: --dl-debug: nothing is recorded: .*choose another folder with DL_DEBUG_DIR$' "$plant: the name is taken"
    is "$(debugged | grep -c DL_DEBUG_PATH)" 0 "$plant: nothing is written there"
done
rm -f "$taken"
mkdir "$taken"
for mode in 775 757; do
    chmod $mode "$taken"
    like "$(debugged)" '^error dl: --dl-debug: nothing is recorded' "the user's own folder of mode $mode, which others can write to"
done
chmod 755 "$taken"
like "$(debugged)" "^set NCCL_DEBUG_FILE=$taken/nccl\.2\." "one of another task of the same user is used"
like "$(debugged FAKE_FAILS=lstat)" '^error dl: --dl-debug: nothing is recorded: .*: Input/output error; ' "but not if it cannot be examined"
like "$(debugged DL_DEBUG_DIR="$work/missing/deeper")" '^error dl: --dl-debug: nothing is recorded: .*: No such file or directory; ' "nor if none can be created"
rm -rf "$taken"
if [ "$(id -u)" = 0 ]; then
    mkdir "$taken"
    chown 12345 "$taken"
    like "$(debugged)" '^error dl: --dl-debug: nothing is recorded' "another user's folder"
    rmdir "$taken"
else
    skip "another user's folder" "needs root"
fi

# ---- the Python module of --dl-debug comes first in PYTHONPATH
py=$work/py
mkdir "$py"
python_path () { # python_path [VARIABLE=VALUE]...: print the PYTHONPATH that the plugin sets
    (cd "$work/debug" && fake SLURM_JOB_ID=8 DL_DEBUG_PYTHON="$py" "$@" "$stub" "$PLUGIN" remote dl-debug=600 2>&1) | sed -n 's/^set PYTHONPATH=//p'
}
is "$(python_path PYTHONPATH=/mine)" "" "a missing module is not looked for"
touch "$py/sitecustomize.py"
is "$(python_path) $(python_path PYTHONPATH=/mine:/other) $(python_path PYTHONPATH="${py}2:/mine")" "$py $py:/mine:/other $py:${py}2:/mine" "it is before the user's folders"
is "$(python_path PYTHONPATH="$py") $(python_path PYTHONPATH="$py:/mine")" " " "once, also in a step within a step"

done_testing
