#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# case: order 50, seconds 60
# the plugin on a Slurm cluster of one node: which GPUs a step sees, PyTorch in a step, monitor and check
. "$srcdir/tests/lib.sh"
PLUGIN=$DL_GPU_BUNDLE/lib/slurm-dl/dl.so
slurm=$DL_GPU_BUNDLE/slurm
if [ -x "$slurm/sbin/slurmctld" ]; then
    export PATH=$slurm/bin:$slurm/sbin:$PATH LD_LIBRARY_PATH=$slurm/lib/slurm:$LD_LIBRARY_PATH
    own=--slurm=$slurm
fi
slurm_is_here || skip_all "no Slurm in the bundle or in PATH, or this user has no name"
[ -f "$PLUGIN" ] || skip_all "no plugin in the bundle"
case $DL_GPU_STAND_INS in
1) gpus=--gpus=1 ;;
*) gpus=--devices=$(echo /dev/nvidia[0-9]* | tr ' ' ,) ;;
esac

# ---- the cluster, with cgroups if possible
up () { # up GPUS: the directory must be world-accessible, for munged
    try_cluster gpu --nodes=1 --cpus="$(nproc)" ${own:+"$own"} --plugin="$PLUGIN dl=$DL_GPU_BUNDLE/bin/dl" "$1" && return
    cat "$work/up" >>"$DL_GPU_OUT/plugin.cluster"
    return 1
}
export MINICLUSTER_DIR=/tmp
# Slurm calls getaddrinfo() with AI_ADDRCONFIG, which fails if the only address is 127.0.0.1, so add another one
"$PYTHON" - 2>/dev/null <<'END'
import fcntl, os, socket, struct
if set(os.listdir("/sys/class/net")) == {"lo"}:
    address = struct.pack("16sH2x4s8x", b"lo:1", socket.AF_INET, socket.inet_aton("127.0.0.2"))
    fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8916, address)
END
constrained=
if up "$gpus"; then
    ! grep -qs ConstrainDevices=yes "${SLURM_CONF%/*}/cgroup.conf" || constrained=1
else
    up --gpus=1 || skip_all "slurmd does not run here: $(tail -n 1 "$work/up")"
fi
ok 0 "a private Slurm runs: $(slurmd -V)"
s () { # s OPTION... COMMAND...
    timeout $((DL_GPU_STAND_INS ? 320 : 40)) srun -Q "$@" 2>&1
}

# ---- GPUs that a step sees
is "$(s -n1 --gres=gpu:1 sh -c 'echo $CUDA_VISIBLE_DEVICES')" 0 "CUDA_VISIBLE_DEVICES of a step with the GPU"
is "$(s -n1 sh -c 'echo $CUDA_VISIBLE_DEVICES')" "" "and of a step without it"
is "$(s -n2 --gres=gpu:1 --dl=torch sh -c 'echo $CUDA_VISIBLE_DEVICES $RANK/$WORLD_SIZE $LOCAL_RANK' | grep -v 'see one GPU each' | sort)" "0 0/2 0
0 1/2 1" "--dl=torch: two ranks share it"
like "$(s -n1 --gres=gpu:1 --dl-bind=closest,verbose true)" 'dl: rank 0 on n1: ' "--dl-bind: $(s -n1 --gres=gpu:1 --dl-bind=closest,verbose true | head -n 1)"
opens='for d in /dev/nvidia[0-9]*; do (: <$d) 2>/dev/null && echo $d; done; true'
if [ -n "$constrained" ]; then
    is "$(s -n1 --gres=gpu:1 sh -c "$opens")" /dev/nvidia0 "cgroup: a step with the GPU opens it"
    is "$(s -n1 sh -c "$opens")" "" "cgroup: one without it does not"
    is "$(s -n1 nvidia-smi -L | grep -c '^GPU')" 0 "nor does nvidia-smi there"
    echo "# $(uname -r), $(zcat /proc/config.gz 2>/dev/null | grep CGROUP_BPF)"
    s -n1 sh -c 'cat /proc/self/cgroup; ls -l /dev/nvidia*; (: </dev/nvidia0)' 2>&1 | sed 's/^/# /'
    grep -i -e cgroup -e bpf "${SLURM_CONF%/*}/log/slurmd-n1.log" | tail -n 5 | sed 's/^/# /'
else
    skip "cgroup: only a step with the GPU opens it" "no cgroup v2, or slurmd does not run with it"
fi
if [ -n "$(nvidia-smi -L 2>/dev/null | grep MIG)" ]; then
    like "$(s -n1 --gres=gpu:1 dl check --table)" MIG "a MIG device"
else
    skip "MIG devices" "this GPU has none"
fi

# ---- PyTorch in a step
cat >step.py <<'END'
import os, torch, torch.distributed as dist
cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
x = torch.ones(1000, device="cuda" if cuda else "cpu")
dist.all_reduce(x)
print("sum", int(x.sum().item()), "rank", os.environ["RANK"], torch.cuda.get_device_name() if cuda else "no GPU")
dist.destroy_process_group()
END
if "$PYTHON" -c 'import torch' 2>/dev/null; then
    out=$(s -n1 --gres=gpu:1 --dl=torch "$PYTHON" step.py)
    like "$out" "^sum 1000 rank 0 $([ -n "$DL_GPU_STAND_INS" ] || nvidia-smi --query-gpu=name --format=csv,noheader -i 0)" "--dl=torch: PyTorch's process group in a step"
    out=$(s -n1 --dl=torch "$PYTHON" step.py)
    [ -z "$constrained" ] || like "$out" "^sum 1000 rank 0 no GPU" "a step without the GPU: PyTorch has none"
else
    skip "PyTorch in a step" "$PYTHON has no torch"
fi

# ---- check and monitor
out=$(s -n1 --gres=gpu:1 dl check --table)
is $? 0 "dl check in a step"
like "$out" 'dl: check: 1 node, 1 rank, 1 GPU: good' "says that its GPU is good"
echo "$out" | sed 's/^/# /'
out=$(s -n1 --gres=gpu:1 --dl-check=quick true)
is $? 0 "--dl-check=quick"
cat >busy.py <<'END'
import time, torch
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.time() + 6
while time.time() < end:
    for _ in range(20):
        y = x @ x
    torch.cuda.synchronize()
END
if [ -n "$DL_GPU_STAND_INS" ]; then
    out=$(s -n1 --gres=gpu:1 --dl-monitor=1 sleep 3)
else
    out=$(s -n1 --gres=gpu:1 --dl-monitor=1 "$PYTHON" busy.py)
fi
is $? 0 "--dl-monitor=1"
like "$out" 'dl: 1 rank on 1 node, .*1 GPU' "its summary has the GPU: $(echo "$out" | head -n 1)"
busy=$(echo "$out" | sed -n 's/^dl: .* was busy \([0-9]*\) %.*/\1/p')
if [ -z "$DL_GPU_STAND_INS" ]; then
    dl monitor 2>&1 | sed 's/^/# /'
    like "$busy" '^[1-9]' "which was busy"
    echo "# figure plugin.monitor.busy ${busy:-0} %"
fi

# ---- startup overhead of the plugin; interleave the kinds so that load affects all alike
microseconds () { # microseconds OPTION...
    local begin=${EPOCHREALTIME/./}
    s -n1 --gres=gpu:1 "$@" true
    echo $((${EPOCHREALTIME/./} - begin))
}
half () { # half FILE: print the median in ms
    sort -n "$1" | awk '{ t[NR] = $1 } END { printf "%.2f\n", t[int((NR + 1) / 2)] / 1000 }'
}
pairs=30
[ -z "$DL_GPU_STAND_INS" ] || pairs=2
microseconds --dl=torch >/dev/null
for ((i = 0; i < pairs; i++)); do
    microseconds >>none
    microseconds --dl=torch >>torch
    microseconds --dl-bind=closest >>bind
done
for kind in torch bind; do
    echo "# figure plugin.start.$kind $(half $kind) ms srun $(half none)"
    paste $kind none | awk '{ print $1 - $2 }' >added
    echo "# figure plugin.start.$kind.added $(half added) ms"
    [ -n "$DL_GPU_STAND_INS" ] || awk -v t="$(half added)" 'BEGIN { exit t > 1 }'
    ok $? "$kind: adds $(half added) ms to the start of a step, by the median of $pairs pairs"
done
done_testing
