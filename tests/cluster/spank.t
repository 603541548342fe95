#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The plugin in a real Slurm, and PyTorch with the variables that it sets.
. "$srcdir/tests/lib.sh"
need_cluster
export PATH="$builddir/launcher:$PATH"
cluster_up spank --nodes=2 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT

# ---- srun
out=$(timeout 300 srun --dl=torch -N2 -n4 --ntasks-per-node=2 sh -c \
    'echo "$SLURM_PROCID:$RANK/$WORLD_SIZE:$LOCAL_RANK/$LOCAL_WORLD_SIZE:$NODE_RANK:$MASTER_ADDR"' | sort | tr '\n' ' ')
is "$out" "0:0/4:0/2:0:127.0.0.1 1:1/4:1/2:0:127.0.0.1 2:2/4:0/2:1:127.0.0.1 3:3/4:1/2:1:127.0.0.1 " "srun: every rank"
is "$(timeout 300 srun --dl=torch -N2 -n3 sh -c 'echo $MASTER_PORT' | sort -u | wc -l)" 1 "all ranks have the same port"
is "$(timeout 300 srun -n1 sh -c 'env | grep -vE "^DL_(TEST_|FREEZE=)" | grep -cE "^(RANK|WORLD_SIZE|MASTER_|DL_)"')" 0 "a job without --dl has no new variable"
is "$(RANK=77 timeout 300 srun --dl=torch -n1 sh -c 'echo $RANK $WORLD_SIZE')" "77 1" "the user's export wins"

# ---- cores
cores=$(nproc)
cpus='sed -n "s/^Cpus_allowed_list:[[:space:]]*/$SLURM_PROCID /p" /proc/self/status'
if [ "$cores" -ge 2 ] && [ "$(cat /sys/devices/system/cpu/smt/active 2>/dev/null)" != 1 ]; then
    out=$(timeout 300 srun --dl-bind=closest -N1 -n2 sh -c "$cpus; echo \$SLURM_PROCID threads \$OMP_NUM_THREADS" 2>err)
    is "$(echo "$out" | grep -v threads | cut -d' ' -f2 | sort -u | wc -l)" 2 "--dl-bind: two ranks have separate cores"
    is "$(echo "$out" | grep -c 'threads [1-9]')" 2 "and OMP_NUM_THREADS"
    is "$(grep -c 'dl:' err)" 0 "without a message"
    out=$(timeout 300 srun --dl-bind=none -N1 -n2 sh -c "$cpus; env | grep OMP_NUM; true" 2>&1)
    is "$(echo "$out" | grep ' ' | cut -d' ' -f2 | sort -u | wc -l)" 1 "--dl-bind=none leaves the cores alone"
else
    skip "--dl-bind" "one core"
fi
like "$(timeout 300 srun --dl-bind=closest,verbose -n1 true 2>&1)" 'dl: rank 0 on n[12]: no GPU, CPUs [0-9,-]+, NIC ' "verbose"
out=$(timeout 300 srun --dl-bind=closet true 2>&1)
like "$out" 'did you mean closest\?' "a typo is reported"

# ---- sbatch, several steps at once, and no leaks into other jobs
cat >job.sh <<'END'
#!/bin/sh
#SBATCH --dl=torch -N2 -n4 --output=job.out
echo "script $(env | grep -cE '^(RANK|MASTER_|DL_ENV)')"
for i in 1 2; do
    srun --exact -N1 -n2 sh -c 'sleep 1; echo "step $RANK/$WORLD_SIZE $MASTER_PORT"' &
done
wait
END
timeout 300 sbatch -W job.sh >/dev/null
is $? 0 "sbatch with a directive"
like "$(cat job.out)" '^script 0$' "the batch script's environment is left alone"
is "$(grep -c '^step [01]/2 ' job.out)" 4 "inner steps inherit the option"
is "$(sed -n 's/^step .* //p' job.out | sort -u | wc -l)" 2 "concurrent steps have different ports"
is "$(timeout 300 salloc -Q --dl=torch -n1 srun sh -c 'echo $RANK/$WORLD_SIZE' 2>/dev/null)" "0/1" "salloc"
timeout 300 srun --dl=torch -n1 sh -c 'sbatch -W --dl=torch -n2 --output=inner.out --wrap "srun sh -c \"echo \\\$RANK/\\\$WORLD_SIZE\""' >/dev/null
is "$(sort inner.out | tr '\n' ' ')" "0/2 1/2 " "a job submitted from a step gets its own values"

# ---- where rank 0 is: arbitrary distributions, heterogeneous jobs
place='echo "$SLURM_PROCID $SLURMD_NODENAME $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK"'
is "$(timeout 300 srun --dl=torch -n3 -m arbitrary -w n2,n1,n1 sh -c "$place" | sort | tr '\n' ';')" "0 n2 0/1 1;1 n1 0/2 0;2 n1 1/2 0;" "arbitrary: every rank"
is "$(timeout 300 srun --dl=torch -n3 -m arbitrary -w n2,n1,n1 sh -c 'echo $MASTER_ADDR')" "127.0.0.1
127.0.0.1
127.0.0.1" "arbitrary on two nodes: the master is known"
is "$(timeout 300 srun --dl=torch -N1 -n1 -w n2 sh -c "$place" : -N1 -n2 -w n1 sh -c "$place" 2>/dev/null | sort | tr '\n' ';')" "0 n2 0/1 0;1 n1 0/2 1;2 n1 1/2 1;" "heterogeneous: every rank"
like "$(timeout 300 srun --dl=torch -N1 -n1 -w n2 sh -c 'echo "$WORLD_SIZE $MASTER_ADDR:$MASTER_PORT"' : -N1 -n2 -w n1 sh -c 'echo "$WORLD_SIZE $MASTER_ADDR:$MASTER_PORT"' 2>/dev/null | sort | uniq -c)" '^ *3 3 127\.0\.0\.1:[0-9]+$' "and one master for both components"
timeout 300 srun -N1 -n1 -w n2 true : --dl-check -N1 -n2 -w n1 true 2>err
is "$(grep -c 'each node is checked alone' err)" 0 "one collector, whichever component requests it"
het='echo "${RANK-no}"'
is "$(timeout 300 srun --dl=torch -N1 -n1 -w n2 sh -c "$het" : --dl=off -N1 -n1 -w n1 sh -c "$het" 2>/dev/null | sort | tr '\n' ' ')" "no no " "the last component's option applies to all, as in Slurm"
is "$(timeout 300 salloc -Q -N1 -n1 : -N1 -n1 srun --het-group=0 --dl=torch sh -c "$het" : --het-group=1 --dl=off sh -c "$het" 2>/dev/null | sort | tr '\n' ' ')" "no no " "with --het-group, too"
timeout 300 sbatch -W --dl=torch --array=1-2 -n1 --output=array.%a --wrap 'srun sh -c "echo \$RANK/\$WORLD_SIZE \$MASTER_PORT"' >/dev/null
is "$(cut -d' ' -f1 array.1 array.2 | tr '\n' ' ')$(cat array.? | sort -u | wc -l)" "0/1 0/1 2" "tasks of an array have different ports"

# ---- the other frameworks
tf=$(timeout 300 srun --dl=tf --dl-roles=chief:1,ps:1,worker:* -N2 -n4 sh -c 'echo "$TF_CONFIG"')
is "$(echo "$tf" | sed 's/, "task".*//' | sort -u | wc -l)" 1 "all tasks have one cluster"
is "$(echo "$tf" | /usr/bin/python3 -c 'import json, sys
all = [json.loads(line) for line in sys.stdin]
hosts = sum(all[0]["cluster"].values(), [])
print(*sorted("%(type)s.%(index)d" % c["task"] for c in all), len(set(hosts)), [len(all[0]["cluster"][k]) for k in ("chief", "ps", "worker")])')" \
    "chief.0 ps.0 worker.0 worker.1 4 [1, 1, 2]" "TF_CONFIG as TensorFlow reads it"
is "$(timeout 300 srun --dl=ps -n4 --dl-roles=scheduler:1,server:1,worker:* sh -c 'echo "$DMLC_ROLE $DMLC_NUM_WORKER $DMLC_NUM_SERVER"' | sort | tr '\n' ';')" \
    "scheduler 2 1;server 2 1;worker 2 1;worker 2 1;" "a parameter-server job"
like "$(timeout 300 srun --dl=ps -n2 true 2>&1)" 'dl: --dl=ps: nothing is set: the roles need at least 3 tasks; the step has 2' "too few tasks are reported"
like "$(timeout 300 srun --dl=mpi --mpi=none -n1 true 2>&1)" 'dl: --dl=mpi: nothing is set: this step has no PMI' "MPI without PMI is reported"
is "$(timeout 300 srun --dl=horovod -N2 -n3 sh -c 'echo "$HOROVOD_RANK $HOROVOD_SIZE $HOROVOD_LOCAL_RANK $HOROVOD_CROSS_RANK/$HOROVOD_CROSS_SIZE"' | sort | tr '\n' ';')" \
    "0 3 0 0/2;1 3 1 0/1;2 3 0 1/2;" "Horovod's variables"
if srun --mpi=list 2>&1 | grep -q 'pmix$'; then
    is "$(timeout 300 srun --dl=mpi --mpi=pmix -N1 -n2 sh -c 'echo "$PMIX_RANK $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK"' | sort | tr '\n' ';')" "0 0/2 0;1 1/2 1;" "MPI under pmix"
else
    skip "MPI under pmix" "Slurm has no pmix"
fi
if srun --mpi=list 2>&1 | grep -q pmi2; then
    is "$(timeout 300 srun --dl=mpi --mpi=pmi2 -N1 -n2 sh -c 'echo "$PMI_RANK $MPI_LOCALRANKID/$MPI_LOCALNRANKS"' | sort | tr '\n' ';')" "0 0/2;1 1/2;" "MPI under pmi2"
else
    skip "MPI under pmi2" "Slurm has no pmi2"
fi
# ---- network variables
out=$(NCCL_IB_TC=7 NCCL_TIMEOUT=60 timeout 300 srun --dl-nccl=auto -N2 -n4 sh -c 'env | grep -E "^(NCCL_IB_TC|DL_NCCL_FABRIC)="' 2>err)
is "$(echo "$out" | grep -c '^NCCL_IB_TC=7$')" 4 "--dl-nccl: the user's export wins"
is "$(echo "$out" | grep -cE '^DL_NCCL_FABRIC=(infiniband|roce|slingshot|efa|tcp):')" 4 "every rank knows the fabric"
is "$(grep -c 'NCCL_TIMEOUT has no effect' err)" 1 "errors are reported once"
[ -e /etc/nccl.conf ] || [ -e /etc/slurm-dl ] ||
    is "$(timeout 300 srun --dl-nccl=auto -n2 sh -c 'echo $NCCL_DEBUG')" "WARN
WARN" "defaults without a profile"
timeout 300 srun --dl-nccl=../x true 2>err
[ $? -ne 0 ]
ok $? "an unknown profile is refused"
is "$(timeout 300 srun -n1 sh -c 'env | grep -cE "^(NCCL_|DL_NCCL)"')" 0 "a job without --dl-nccl has no new variable"

# ---- typos never reach a node
for c in "srun true" "sbatch job.sh" "salloc true"; do
    out=$(timeout 300 ${c% *} --dl=toch ${c#* } 2>&1)
    [ $? -ne 0 ]
    ok $? "${c%% *} --dl=toch is refused"
    like "$out" 'did you mean torch\?' "with a suggestion"
done
for c in srun sbatch salloc; do
    timeout 300 $c --dl=tf --dl-roles=worker:2,chef:1 job.sh >out 2>&1
    [ $? -ne 0 ]
    ok $? "$c --dl-roles=worker:2,chef:1 is refused"
    like "$(cat out)" "no role 'chef'; did you mean chief\?" "and why"
done
unharmed
like "$(srun --help)" '\-\-dl=FRAMEWORK +\[dl\]' "srun --help lists the option"

# ---- PyTorch
torch=
/usr/bin/python3 -c 'import torch' 2>/dev/null && torch=1
train=$srcdir/contrib/examples/torch/train.py
if [ -n "$torch" ]; then
    out=$(timeout 300 srun --dl=torch -N1 -n2 /usr/bin/python3 "$train" 2>err)
    like "$out" '^2 ranks: loss 0\.[0-9]+ accuracy 0\.9' "DistributedDataParallel on one node, without any setup"
    out=$(timeout 300 srun --dl=torch -N2 -n2 /usr/bin/python3 "$train" 2>err)
    like "$out" '^2 ranks: loss 0\.[0-9]+ accuracy 0\.9' "and on two nodes of one machine"
    # PyTorch 1.13 cannot parse its own defaults of these two under Python 3.11
    export PET_REDIRECTS=1 PET_TEE=1 PET_LOG_DIR="$work/torchrun"
    out=$(PET_NPROC_PER_NODE=2 timeout 300 srun --dl=torchrun -N2 -n2 torchrun "$train" 2>err)
    like "$out" '4 ranks: loss 0\.[0-9]+ accuracy 0\.9' "torchrun, one per node, without arguments"
    is "$(grep -c Traceback err)" 0 "and without warnings"
    unset PET_REDIRECTS PET_TEE PET_LOG_DIR
else
    skip "PyTorch on one machine" "no python3-torch"
fi

done_testing
