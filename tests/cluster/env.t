#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl env predicts the environment of each rank in a real Slurm. tests/launcher/env.t needs no Slurm; hosts.t tests hosts.
. "$srcdir/tests/lib.sh"
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT OMP_NUM_THREADS CUDA_VISIBLE_DEVICES
for v in $(env | sed -n 's/^\(\(SLURM\|DL\|NCCL\|PMI\)[A-Z_]*\)=.*/\1/p'); do unset "$v"; done

need_cluster
cluster_up env --nodes=3 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl"

. "$srcdir/tests/cluster/promise.sh"
export SLURM_RESV_PORTS=0 # as if slurm.conf reserved no ports
compare slurmds "--one-machine" ""
mkdir het
cat >het.sh <<'END'
#!/bin/sh
#SBATCH -N1 -n1 -w n2
#SBATCH hetjob
#SBATCH -N2 --ntasks-per-node=2 -n4 -w n1,n3 --dl=torch
srun --het-group=0-1 --dl=torch sh -c 'env -0 >"het/$SLURM_PROCID"'
END
job=$(timeout 300 sbatch -W --parsable --output=het.out het.sh)
[ "$job" ]
ok $? "a heterogeneous job"
is "$(for rank in 0 1 2 3 4; do tr '\0' '\n' <het/$rank | sed -n 's/^\(WORLD_SIZE\|RANK\|LOCAL_RANK\|LOCAL_WORLD_SIZE\)=/&/p' | sort | tr '\n' ' '; done)" \
    "$(for rank in '0 1 0' '0 2 1' '1 2 2' '0 2 3' '1 2 4'; do
        printf 'LOCAL_RANK=%s LOCAL_WORLD_SIZE=%s RANK=%s WORLD_SIZE=5 ' $rank
    done)" "its step on all components"
sed 's/^/# /' het.out
unset SLURM_RESV_PORTS
# dl env in a step
out=$(timeout 300 srun --dl=torch --nodes=1 --ntasks=1 dl env)
is $? 0 "in a step"
like "$out" '^rank 0 of 1: task 0 of node 0 \(n[1-3]\)' "the place"
like "$out" '^  WORLD_SIZE=1$' "what the plugin set"
out=$(RANK=5 MASTER_PORT=1234 timeout 300 srun --dl=torch --nodes=1 --ntasks=1 dl env 2>&1)
like "$out" 'RANK=5 +\(the plugin.s: 0\)' "what the user exported, and what the plugin would have set"
like "$out" 'RANK=5, but SLURM_PROCID=0' "a contradiction"
like "$out" 'MASTER_PORT=1234 is exported, while MASTER_ADDR=127.0.0.1 is' "one variable of a pair"
timeout 300 srun --dl=torch --nodes=1 --ntasks=1 sh -c 'RANK=3 dl env >/dev/null' 2>/dev/null
is $? 1 "its exit status"
timeout 300 srun --dl=torch --nodes=1 --ntasks=1 dl env --json | /usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); sys.exit(d["plugin"]["RANK"] != "0" or d["contradictions"] != [])'
is $? 0 "as JSON"
done_testing
