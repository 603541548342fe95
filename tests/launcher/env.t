#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl env: predict each rank's environment from options, also for recorded machines.  tests/cluster/env.t compares with Slurm.
. "$srcdir/tests/lib.sh"
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT OMP_NUM_THREADS CUDA_VISIBLE_DEVICES
for v in $(env | sed -n 's/^\(\(SLURM\|DL\|NCCL\|PMI\)[A-Z_]*\)=.*/\1/p'); do unset "$v"; done

# ---- options
out=$(dl env --nodes=2 --ntasks=4 --dl=torch)
is $? 0 "options"
like "$out" '^3 +node2 +1' "one row per rank, on nodes that are not known yet"
like "$out" '^  MASTER_ADDR=node1$' "the same for all"
like "$out" '^  LOCAL_RANK=0 1 0 1$' "by rank"
like "$out" '^  MASTER_PORT, DL_ENV_STEP: chosen by the number of the job' "it reports what depends on the job's number"
like "$out" '^  GLOO_SOCKET_IFNAME, DL_ENV_SET: each node' "and what depends on the node"
like "$out" 'node\[1-2\] here' "and that the nodes are made up"
dl env --nodes=1 --ntasks=2 --dl=tf --dl-roles=chief:1,worker:* --job=5 --rank=1 >lines 2>err
is "$(cat err)" "" "one rank, all known"
is "$(set -a; eval "$(cat lines)"; printenv TF_CONFIG | cut -c-24)" '{"cluster": {"chief": ["' "its lines are shell syntax"
is "$(env -S "$(cat lines) printenv DL_ROLE DL_ROLE_INDEX" | tr '\n' ' ')" "worker 0 " "and valid for env -S"
is "$(dl env --nodes=2 --ntasks=2 --dl=torch --rank=1 2>err | grep -c MASTER_PORT)" 0 "an unknown value is in no line"
like "$(cat err)" '^dl: env: MASTER_PORT is not known: ' "but on standard error"
is "$(RANK=7 dl env --nodes=1 --ntasks=2 --dl=torch --json | grep -c '"RANK"')" 0 "variables that are exported here win"
like "$(RANK=7 dl env --nodes=1 --ntasks=2 --dl=torch)" '^  RANK=7$' "and is reported"
like "$(dl env --nodes=3 --ntasks=4 --dl=torch)" 'as Slurm places them' "uneven tasks: the assumption is reported"
like "$(dl env --ntasks-per-node='4(x2),3' --dl=torch)" '^10 +node3 +2' "tasks of each node as Slurm writes them"
like "$(dl env --nodes=2 --ntasks=3 --dl=torchrun)" 'torchrun starts the ranks of a node itself' "it prints what the plugin would report"
like "$(taskset -c "$(taskset -cp $$ | sed 's/.*[ ,-]//')" dl env --nodes=1 --ntasks=4 --dl=tf --dl-roles=chief:1,ps:1,worker:*)" \
    '^  TF_NUM_INTEROP_THREADS, DL_ENV_SET: set where Slurm gives' "the CPUs of a task are Slurm's, not those of dl env"
like "$(dl env --nodes=1 --ntasks=1)" 'No variable is set' "without --dl"

# ---- mistakes
mistake () { # mistake PATTERN ARGUMENT...
    pattern=$1
    shift
    refused 2 "$pattern" "dl env $*" dl env "$@"
}
mistake "^dl: --dl: 'toch': no such value; did you mean torch\?$" --nodes=1 --dl=toch
mistake "^dl: --dl: '': no value is given$" --nodes=1 --dl=
mistake "did you mean closest\?" --nodes=1 --dl-bind=closet
mistake "^dl: --dl: 'xyz': no such value; there are torch, torchrun, .*, auto, off$" --nodes=1 --dl=xyz
mistake "no such distribution; there are block, cyclic, plane, arbitrary$" --nodes=1 --distribution=xyz
mistake "did you mean cyclic\?" --nodes=1 --distribution=cylic
mistake "did you mean '--nodes'\?" --nodse=1
mistake "^dl: --nodes: '0': must be a number from 1 to [0-9]+$" --nodes=0
mistake "^dl: --ntasks: '2x': must be a number from 1 to [0-9]+$" --nodes=1 --ntasks=2x
mistake "no list of hosts" --nodelist='n[1-'
mistake "2 hosts do not match --nodes=3" --nodelist=a,b --nodes=3
mistake "the roles need 3 tasks; the step has 2" --nodes=1 --ntasks=2 --dl=tf --dl-roles=chief:1,worker:2
mistake "the ranks 0 to 1" --nodes=1 --ntasks=2 --dl=torch --rank=2
mistake "^dl: env: not in a Slurm step: .* --nodes=2 --ntasks=8$"
mistake "^dl: env: " job.sh
like "$(dl env --nodes=2-4 --ntasks=4 --dl=torch)" 'as if Slurm gave 2$' "a range of nodes"
like "$(dl env --nodes=1 --ntasks=1 --gpus-per-node=4 --dl=torch)" 'one rank on a node for its 4 GPUs; .* --ntasks-per-node=4, for torchrun --dl=torchrun$' "one rank for all GPUs"

# ---- a recorded machine
if [ -x "$builddir/tests/runtime/machine" ]; then
    "$builddir/tests/runtime/machine" "$srcdir/tests/runtime/topology/dgx-a100" dgx-a100
    out=$(dl env --nodes=1 --ntasks=8 --gpus-per-node=8 --dl=torch --dl-bind=closest,nic --topology=dgx-a100 --job=1)
    is "$(echo "$out" | grep -cE '^[0-7] +node1 +[0-7] +[0-9a-f]{4}:[0-9a-f]{2}:00\.0 +[0-9,-]+ +mlx5_[0-9]+ PXB$')" 8 "binding: GPU, cores and adapter of each rank"
    like "$out" '^  OMP_NUM_THREADS=8$' "threads"
    like "$(dl env --nodes=1 --ntasks=4 --gpus-per-node=8 --dl-bind=closest --topology=dgx-a100)" \
        '^3 +node1 +3 +0000:b7:00\.0,0000:bd:00\.0 +80-95,208-223' "two GPUs for each rank"
    like "$out" '^  UCX_NET_DEVICES=mlx5_[0-9]+:1 ' "and adapters"
    like "$(dl env --nodes=1 --ntasks=8 --gpus-per-node=8 --dl-bind=closest)" 'decided on the node' "the lack of it is reported"
    like "$(dl env --nodes=1 --ntasks=2 --dl-nccl=auto --topology=dgx-a100)" '^  DL_NCCL_FABRIC=' "the fabric"
else
    skip "a recorded machine" "no tests/runtime/machine"
fi

# ---- on recorded machines the plugin does what dl env predicts
variables () { grep -E '^(OMP_|CUDA_|ROCR_|UCX_|JAX_|DL_BIND)' | sort; }
bound () { # bound MACHINE RANKS GPUS CPUS WORDS [VARIABLE]: compare the two for all ranks of one node
    [ -d "$1" ] || "$builddir/tests/runtime/machine" "$srcdir/tests/runtime/topology/$1" "$1"
    gpus=$(seq -s, 0 $(($3 - 1)))
    for rank in $(seq 0 $(($2 - 1))); do
        env -i FAKE_ROOT="$PWD/$1" FAKE_CPUS="$4" SLURM_PROCID="$rank" SLURM_LOCALID="$rank" SLURM_NODEID=0 \
            SLURM_STEP_TASKS_PER_NODE="$2" SLURMD_NODENAME=n1 SLURM_CPUS_ON_NODE=256 "${6:-CUDA_VISIBLE_DEVICES}=$gpus" \
            "$builddir/tests/fakes/spank" "$PLUGIN" 0 "dl-bind=$5" >fake
        { sed -n 's/^set //p' fake | variables; sed -n 's/^cpus //p' fake; } >real.$rank
        { dl env --nodes=1 --ntasks="$2" --gpus-per-node="$3" --cpu-list="$4" --topology="$1" --dl-bind="$5" --rank="$rank" | tr -d "'" | variables
            dl env --nodes=1 --ntasks="$2" --gpus-per-node="$3" --cpu-list="$4" --topology="$1" --dl-bind="$5" --json |
                sed -n 's/^ *"cpus": "\(.*\)",*$/\1/p' | sed -n "$((rank + 1))p"; } >promised.$rank
        cmp -s real.$rank promised.$rank || { diff real.$rank promised.$rank | sed 's/^/# /'; return 1; }
    done
    [ "$(cat real.* | sort -u | wc -l)" -gt 2 ]
}
if [ -x "$builddir/tests/fakes/spank" ] && [ -f "$PLUGIN" ]; then
    while read -r case; do
        bound $case
        ok $? "the plugin binds as promised: $case"
        rm -f real.* promised.*
    done <<END
dgx-a100 8 8 0-255 closest
dgx-a100 4 8 0-255 closest,nic
dgx-a100 8 8 0-255 spread
dgx-a100 8 8 0-127 socket,own-gpu
dgx-h100 8 8 0-223 closest,nic
hgx-h100 8 8 0-191 closest
pcie-4gpu 4 4 0-63 closest,own-gpu
mi250x 8 8 0-127 closest ROCR_VISIBLE_DEVICES
END
else
    skip "the plugin binds as promised" "no tests/fakes/spank"
fi

# ---- profiles
mkdir nccl.d
printf 'NCCL_IB_HCA==mlx5_0\nNCCL_SOCKET_IFNAME=ib0\nNCCL_PROTO=Simple\n' >nccl.d/site.conf
out=$(dl env --nodes=2 --ntasks=2 --dl-nccl=site --nccl-dir=nccl.d)
like "$out" '^  NCCL_IB_HCA==mlx5_0$' "a network profile"
like "$out" 'nccl.d/site.conf:3: NCCL_PROTO: for debugging only' "a variable that it must not set is reported"
like "$(dl env --nodes=2 --ntasks=2 --dl-nccl=none2 --nccl-dir=nccl.d)" 'nothing is set: nccl.d/none2.conf: No such file' "no such profile"
like "$(dl env --nodes=2 --ntasks=2 --dl-nccl=auto)" 'DL_NCCL_FABRIC, and the profile, are known on the node' "auto without --topology"
done_testing
