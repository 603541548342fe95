#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --dl-bind in a stub of Slurm, on the machines in tests/runtime/topology/.
. "$srcdir/tests/lib.sh"
[ -f "$PLUGIN" ] || skip_all "the plugin was not built"
stub=$builddir/tests/fakes/spank

use () { # use MACHINE: make it the current one
    root=$work/$1
    [ -d "$root" ] || { mkdir "$root" && "$builddir/tests/runtime/machine" "$srcdir/tests/runtime/topology/$1" "$root"; }
}

# Print what rank RANK of RANKS on one node gets: bind RANK RANKS CPUS WORDS [VARIABLE=VALUE]...
bind () {
    rank=$1 ranks=$2 cpus=$3 words=$4
    shift 4
    env -i FAKE_ROOT="$root" FAKE_CPUS="$cpus" SLURM_PROCID="$rank" SLURM_LOCALID="$rank" SLURM_NODEID=0 \
        SLURM_STEP_TASKS_PER_NODE="$ranks" SLURMD_NODENAME=n1 SLURM_CPUS_ON_NODE=256 "$@" \
        "$stub" "$PLUGIN" 0 ${words:+"dl-bind=$words"}
}
all=0,1,2,3,4,5,6,7

# ---- DGX A100
use dgx-a100
out=$(bind 2 8 0-255 closest CUDA_VISIBLE_DEVICES=$all)
like "$out" '^cpus 16-23,144-151$' "DGX A100: rank 2 is in NUMA node 1"
like "$out" '^set OMP_NUM_THREADS=8$' "threads are cores, not hyperthreads"
like "$out" '^set CUDA_DEVICE_ORDER=PCI_BUS_ID$' "indices count as nvidia-smi does"
is "$(echo "$out" | grep -cE '^set (CUDA_VISIBLE|ROCR|HIP|UCX|NCCL|JAX)')" 0 "all GPUs stay visible, in order; no network variable"
is "$(echo "$out" | grep -c '^error')" 0 "nothing to complain about"
like "$(bind 2 8 0-255 socket CUDA_VISIBLE_DEVICES=$all)" '^cpus 16-23,32-39,144-151,160-167$' "socket: and of a NUMA node without GPUs"
like "$(bind 2 8 0-255 closest,nic CUDA_VISIBLE_DEVICES=$all)" '^set UCX_NET_DEVICES=mlx5_2:1$' "nic"
is "$(bind 2 8 0-255 closest,nic CUDA_VISIBLE_DEVICES=$all UCX_NET_DEVICES=all | grep -c '^set UCX')" 0 "nic: the user's variable wins"
out=$(bind 2 8 0-255 own-gpu CUDA_VISIBLE_DEVICES=$all)
like "$out" '^set CUDA_VISIBLE_DEVICES=2$' "own-gpu: one GPU is visible"
like "$out" '^set JAX_LOCAL_DEVICE_IDS=0$' "own-gpu: JAX takes it"
like "$out" '^cpus 16-23,144-151$' "own-gpu alone means closest"
out=$(bind 2 8 0-255 none,own-gpu CUDA_VISIBLE_DEVICES=$all)
like "$out" '^set CUDA_VISIBLE_DEVICES=2$' "none,own-gpu"
is "$(echo "$out" | grep -cE '^set OMP|^cpus [0-9]*-[0-9]+,')" 0 "none: cores stay"
is "$(bind 2 8 0-255 none CUDA_VISIBLE_DEVICES=$all | grep -v '^option')" "status 0" "none: nothing at all"
is "$(bind 2 8 0-255 "" CUDA_VISIBLE_DEVICES=$all | grep -v '^option')" "status 0" "no option: nothing at all"
like "$(bind 2 8 0-255 closest,verbose CUDA_VISIBLE_DEVICES=$all)" \
    '^log dl: rank 2 on n1: GPU 0000:47:00.0, CPUs 16-23,144-151, NIC mlx5_2 at PXB$' "verbose"
like "$(bind 1 4 0-255 closest,verbose CUDA_VISIBLE_DEVICES=$all)" '^log dl: rank 1 on n1: GPU 0000:47:00.0,0000:4e:00.0, CPUs 16-31,144-159, ' "verbose: each of its GPUs"
out=$(bind 0 1 0-255 closest CUDA_VISIBLE_DEVICES=$all)
like "$out" '^cpus 0-255$' "one launcher for all GPUs keeps all cores"
like "$out" '^set OMP_NUM_THREADS=16$' "and has threads for each of its workers"
out=$(bind 2 8 0-255 closest CUDA_VISIBLE_DEVICES=$all OMP_NUM_THREADS=3 CUDA_DEVICE_ORDER=PCI_BUS_ID)
is "$(echo "$out" | grep -cE '^set (OMP|CUDA)')" 0 "the user's exports win"
like "$(bind 2 8 0-255 closest CUDA_VISIBLE_DEVICES=$all OMP_NUM_THREADS=3 DL_BIND_SET=OMP_NUM_THREADS)" \
    '^set OMP_NUM_THREADS=8$' "variables of an outer step's plugin are replaced"
out=$(bind 2 8 0-255 closest)
like "$out" '^cpus 32-47,160-175$' "a step without GPUs: cores by NUMA node"
is "$(echo "$out" | grep -cE '^set CUDA')" 0 "and no variable of GPUs"

# ---- Slurm's own CPU binding
masks=0xff000000000000,0xff000000000000,0xff0000,0xff0000
out=$(bind 0 4 0-255 closest CUDA_VISIBLE_DEVICES=2,3,0,1 SLURM_CPU_BIND_TYPE=mask_cpu: SLURM_CPU_BIND_LIST=$masks \
    FAKE_OWN_CPUS=48-55 SLURM_CPUS_ON_NODE=32)
like "$out" '^set CUDA_VISIBLE_DEVICES=0,1,2,3$' "cores that stay: the GPUs are put in order"
like "$out" '^cpus 48-55$' "and cores do stay"
like "$(bind 3 4 0-255 closest CUDA_VISIBLE_DEVICES=2,3,0,1 SLURM_CPU_BIND_TYPE=mask_cpu: SLURM_CPU_BIND_LIST=$masks \
    FAKE_OWN_CPUS=16-23 SLURM_CPUS_ON_NODE=32)" '^set CUDA_VISIBLE_DEVICES=0,1,2,3$' "in one order for all ranks"
out=$(bind 0 4 0-255 closest CUDA_VISIBLE_DEVICES=2,3,0,1 SLURM_CPU_BIND_TYPE=mask_cpu: SLURM_CPU_BIND_LIST=0x1 \
    FAKE_OWN_CPUS=16-23 SLURM_CPUS_ON_NODE=32)
like "$out" '^cpus 16-17$' "masks of another step are ignored"
like "$(bind 1 2 0-255 closest CUDA_VISIBLE_DEVICES=0,2 FAKE_OWN_CPUS=0-7)" '^cpus 16-31,144-159$' \
    "the whole cpuset of the step can be used"
out=$(bind 0 2 0-255 closest CUDA_VISIBLE_DEVICES=0,1 FAKE_OWN_CPUS=0-3 SLURM_CPUS_ON_NODE=8)
like "$out" '^cpus 0-1$' "without a cpuset, not beyond what Slurm bound"
like "$out" "^error dl: 2 of 2 ranks on this node have no core in the NUMA node of their GPU \(the step's CPUs are 0-3\)" "distant cores are reported"
is "$(bind 1 2 0-255 closest CUDA_VISIBLE_DEVICES=0,1 FAKE_OWN_CPUS=0-3 SLURM_CPUS_ON_NODE=8 | grep -c '^error')" 0 "once on a node"
like "$(bind 0 2 0-255 closest FAKE_OWN_CPUS=0-0 SLURM_CPUS_PER_TASK=8)" \
    '^error dl: the job has --cpus-per-task=8, this task 1: .*SRUN_CPUS_PER_TASK=8$' "cpus-per-task that srun dropped"
like "$(bind 0 2 0-15 closest SLURM_CPUS_ON_NODE=4)" '^set OMP_NUM_THREADS=2$' "unconfined: threads for the job's part of the CPUs"

# ---- hidden GPUs
out=$(bind 0 8 0-255 closest CUDA_VISIBLE_DEVICES=0 SLURM_STEP_GPUS=$all)
like "$out" '^error dl: CUDA_VISIBLE_DEVICES shows this task 1 of the 8 GPUs .*--gpus-per-node=8' "one GPU visible"
is "$(bind 0 8 0-255 closest,own-gpu CUDA_VISIBLE_DEVICES=0 SLURM_STEP_GPUS=$all | grep -c '^error')" 0 "own-gpu: as requested"
is "$(bind 1 8 0-255 closest CUDA_VISIBLE_DEVICES=0 SLURM_STEP_GPUS=$all | grep -c '^error')" 0 "only rank 0 says so"
is "$(bind 0 1 0-255 closest CUDA_VISIBLE_DEVICES=0 SLURM_STEP_GPUS=0 | grep -c '^error')" 0 "one GPU for one task gives no warning"
is "$(bind 0 2 0-255 closest CUDA_VISIBLE_DEVICES=0 SLURM_STEP_GPUS=0 SLURM_GPUS_ON_NODE=8 | grep -c '^error')" 0 \
    "a step that uses one of the job's GPUs gives no warning"
rm "$root"/dev/nvidia[0-24-7] # as in a device cgroup that leaves only nvidia3
out=$(bind 0 8 0-255 closest CUDA_VISIBLE_DEVICES=0 SLURM_GPUS_ON_NODE=8 SLURM_GPUS_PER_TASK=1)
like "$out" '^error dl: this task can open 1 of the 8 GPUs .*NVLink.*--gpus-per-node=8 .*--gpu-bind=none.*SLURM_GRES_FLAGS=allow-task-sharing$' "the device cgroup's trap"
like "$out" '^cpus 16-17,144-145$' "index 0 is the remaining GPU"

# ---- other machines
use mi250x
out=$(bind 4 8 1-7,9-15,17-23,25-31,33-39,41-47,49-55,57-63 closest ROCR_VISIBLE_DEVICES=$all CUDA_VISIBLE_DEVICES=$all GPU_DEVICE_ORDINAL=$all)
like "$out" '^cpus 1-7$' "MI250X: GCD 4 is at NUMA node 0"
like "$out" '^unset CUDA_VISIBLE_DEVICES$' "one device filter is left"
like "$out" '^unset GPU_DEVICE_ORDINAL$' "of three"
like "$(bind 4 8 0-127 own-gpu ROCR_VISIBLE_DEVICES=$all)" '^set ROCR_VISIBLE_DEVICES=4$' "own-gpu: ROCR_VISIBLE_DEVICES"
is "$(bind 4 8 0-127 nic ROCR_VISIBLE_DEVICES=$all | grep -c '^set UCX')" 0 "no UCX on Slingshot"
use laptop
like "$(bind 0 1 0-7 closest,verbose CUDA_VISIBLE_DEVICES=0)" '^log dl: rank 0 on n1: GPU 0000:01:00.0, CPUs 0-7, NIC none$' "a laptop"
like "$(bind 1 2 0-7 closest CUDA_VISIBLE_DEVICES=MIG-6a7ba0b4-5f2b-5b36-9e0e-5f8b5a0c0001)" '^cpus 2-3,6-7$' "a MIG device"
use pcie-4gpu
like "$(bind 0 2 0-31 own-gpu CUDA_VISIBLE_DEVICES=GPU-00000003-0000-0000-0000-000000000000,GPU-00000000-0000-0000-0000-000000000000)" \
    '^set CUDA_VISIBLE_DEVICES=GPU-00000003-' "UUIDs"
mkdir "$work/empty"
root=$work/empty
like "$(bind 0 2 0-3 closest CUDA_VISIBLE_DEVICES=0,1)" '^status 0' "a machine without sysfs"
root=$work/absent
like "$(bind 0 2 0-3 closest)" '^error dl: --dl-bind=closest: nothing is bound: ' "no root at all"
like "$(env -i "$stub" "$PLUGIN" 0 dl-bind=closest)" '^error dl: --dl-bind=closest: nothing is bound: Slurm does not say' "nothing known from Slurm"
for step in 0xfffffffb 0xfffffffc 0xfffffffa; do
    is "$(env -i SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=1 \
        "$stub" "$PLUGIN" $step dl-bind=closest | grep -c '^set')" 0 "nothing in step $step"
done

# ---- values
for v in closest socket spread none verbose closest,verbose none,own-gpu,nic,verbose; do
    like "$("$stub" "$PLUGIN" local "dl-bind=$v")" '^status 0' "$v is accepted"
done
for v in closet "closest," ,closest closest,,nic "closest nic" gpu; do
    like "$("$stub" "$PLUGIN" local "dl-bind=$v")" '^status -1' "'$v' is refused"
done
like "$("$stub" "$PLUGIN" local dl-bind=closet)" 'did you mean closest\?' "with a suggestion"

# ---- this machine: the affinity of a real process
own=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
real () { # real RANK RANKS [VARIABLE=VALUE]...: print the CPUs that the rank may use
    rank=$1 ranks=$2
    shift 2
    env -i PATH="$PATH" SLURM_PROCID="$rank" SLURM_LOCALID="$rank" SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE="$ranks" \
        SLURM_CPUS_ON_NODE="$(nproc)" FAKE_PROBE='grep ^Cpus_allowed_list /proc/self/status; head -1 /proc/self/numa_maps' \
        "$@" "$stub" "$PLUGIN" 0 dl-bind=closest >"$work/real"
    sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "$work/real"
}
is "$(real 0 1)" "$own" "one rank has all cores"
if [ "$(nproc)" -ge 2 ] && [ "$(cat /sys/devices/system/cpu/smt/active 2>/dev/null)" != 1 ]; then
    a=$(real 0 2)
    b=$(real 1 2)
    [ -n "$a" ] && [ -n "$b" ] && [ "$a" != "$b" ] && [ "$a" != "$own" ]
    ok $? "two ranks have separate cores ($a and $b of $own)"
else
    skip "two ranks have separate cores" "one core"
fi
use pcie-4gpu
real 0 2 FAKE_ROOT="$root" CUDA_VISIBLE_DEVICES=0,1 >/dev/null
if grep -q ' default ' /proc/self/numa_maps 2>/dev/null; then
    like "$(cat "$work/real")" ' prefer:0 ' "memory comes from the NUMA node of the cores first"
else
    skip "memory" "no /proc/self/numa_maps"
fi
done_testing
