#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Nodes with their own network and GPUs: addresses and interfaces of ranks, predictions of dl env, GPUs of trials.
. "$srcdir/tests/lib.sh"
need_hosts
need_cluster
export PATH="$builddir/launcher:$PATH"
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT OMP_NUM_THREADS CUDA_VISIBLE_DEVICES
try_cluster hosts --nodes=3 --cpus=4 --gpus=4 --hosts --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no network namespaces here"

# ---- dl env
. "$srcdir/tests/cluster/promise.sh"
grep -v ntasks=12 cases >few # skip the large ones, so that a machine with two cores can run these
mv few cases
RESERVED=1
export RESERVED
compare hosts "" "( but .*)?"
unset RESERVED

# ---- addresses and interfaces; name the nodes, because Slurm avoids one that still cleans up after the last step
torch=
/usr/bin/python3 -c 'import torch' 2>/dev/null && torch=1
train=$srcdir/contrib/examples/torch/train.py
out=$(timeout 300 srun --dl=torch -w n1,n2 -n2 sh -c 'echo "$MASTER_ADDR $GLOO_SOCKET_IFNAME"' | sort -u)
is "$out" "n1 eth0" "hosts: address and interface"
out=$(timeout 300 srun --dl=torch -N1 -n1 -w n2 sh -c 'echo "$MASTER_ADDR $GLOO_SOCKET_IFNAME"')
is "$out" "127.0.0.1 lo" "a step on one host needs no network"
out=$(timeout 300 srun --dl=tf -w n1,n2 -n3 sh -c 'echo "$TF_CONFIG"' | sed 's/, "task".*//; s/:[0-9]*"/"/g' | sort -u)
is "$out" '{"cluster": {"worker": ["n1","n1","n2"]}' "TF_CONFIG over hosts"
is "$(timeout 300 srun --dl=ps -w n1,n2 -n4 --ntasks-per-node=2 -m cyclic --dl-roles=worker:2,server:1,scheduler:1 sh -c 'echo "$DMLC_PS_ROOT_URI $DMLC_INTERFACE"' | sort -u)" \
    "$(timeout 300 srun -w n2 -n1 hostname -I | tr -d ' ') eth0" "the scheduler's address"
is "$(timeout 300 srun --dl=horovod -w n1,n2 -n3 sh -c 'echo "$HOROVOD_GLOO_RENDEZVOUS_ADDR $HOROVOD_GLOO_IFACE"' | sort -u)" \
    "$(timeout 300 srun -w n1 -n1 hostname -I | tr -d ' ') eth0" "Horovod's address over hosts"
if [ -n "$torch" ]; then
    out=$(timeout 300 srun --dl=torch -w n1,n2 -n4 /usr/bin/python3 "$train" 2>err)
    like "$out" '^4 ranks: loss 0\.[0-9]+ accuracy 0\.9' "DistributedDataParallel over two hosts"
    sed 's/^/# /' err | head -5
else
    skip "PyTorch over hosts" "no python3-torch"
fi

# ---- GPUs of two trials in one task
cat >lane.conf <<END
name = "lane";
entrypoint = "echo gpus=\$CUDA_VISIBLE_DEVICES; touch $work/begun.{trial}; until [ -f $work/begun.1 ] && [ -f $work/begun.2 ]; do sleep 0.1; done; dl log loss={trial}";
searcher = { name = "random"; metric = "loss"; max_trials = 2; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; trials_per_task = 2; slots_per_trial = 2; };
END
runs 0 "two trials side by side in a task" dl run lane.conf
is "$(cat lane-0001/trials/*/a.*/log | grep gpus | sort -u | tr '\n' ' ')" "gpus=0,1 gpus=2,3 " "each has its own GPUs"
done_testing
