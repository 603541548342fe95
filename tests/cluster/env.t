#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl env promises what each rank of a real Slurm then has; tests/launcher/env.t is of what needs none
. "$srcdir/tests/lib.sh"
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT OMP_NUM_THREADS CUDA_VISIBLE_DEVICES
for v in $(env | sed -n 's/^\(\(SLURM\|DL\|NCCL\|PMI\)[A-Z_]*\)=.*/\1/p'); do unset "$v"; done

need_cluster
cluster_up env --nodes=3 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl"

cat >step.sh <<'END'
# step.sh FOLDER STEP FACTS OPTIONS...: promise, run, compare.  The ports that
# Slurm reserves are known when it has: then run, promise, compare.
d=$1/$2; s=$2; facts=$3; shift 3
mkdir -p "$d"
promise () {
    dl env "$@" --job="$SLURM_JOB_ID.$s" --json >"$d/promised" 2>"$d/err" || { cat "$d/err"; exit 1; }
}
[ "$RESERVED" ] || promise $facts "$@"
timeout 300 srun "$@" sh -c 'env -0 >"$0/$SLURM_PROCID"' "$d" 2>"$d/err" || { cat "$d/err"; exit; }
[ "$RESERVED" ] && promise $facts --resv-ports="$(tr '\0' '\n' <"$d/0" | sed -n 's/^SLURM_STEP_RESV_PORTS=//p')" "$@"
cd "$d" && /usr/bin/python3 "$srcdir/tests/cluster/env.py" promised $(ls | grep '^[0-9]' | sort -n)
END
cat >all.sh <<'END'
s=0
while read -r options; do
    echo "$options: $(sh ./step.sh "$PWD/$1" $s "$2" $options </dev/null 2>&1 | tr "\n" ";")"
    s=$((s + 1))
done <cases
END
cat >cases <<'END'
--nodelist=n[1-3] --ntasks=6 --distribution=block --dl=torch
--nodelist=n[1-3] --ntasks=6 --distribution=cyclic --dl=torch
--nodelist=n[1-3] --ntasks=12 --distribution=plane=2 --dl=torch
--nodelist=n[1-3] --ntasks=8 --distribution=plane=3 --dl=tf
--nodelist=n[1-3] --ntasks=12 --ntasks-per-node=4 --distribution=cyclic:block --dl=lightning
--nodelist=n1,n3 --nodes=2 --ntasks=3 --dl=torch
--nodelist=n[1-3] --ntasks=7 --dl=jax
--nodelist=n[1-3] --ntasks=7 --distribution=cyclic --dl=horovod
--nodelist=n[1-3] --ntasks=3 --dl=torchrun
--nodelist=n2 --nodes=1 --ntasks=2 --dl=auto
--nodelist=n2 --nodes=1 --ntasks=1 --dl=auto
--nodelist=n2,n1,n1 --ntasks=3 --distribution=arbitrary --dl=torch
--nodelist=n3,n1,n2,n1 --ntasks=4 --distribution=arbitrary --dl=torch
--nodelist=n[1-3] --ntasks=6 --dl=tf --dl-roles=chief:1,ps:2,worker:*
--nodelist=n[1-3] --ntasks=7 --distribution=cyclic --dl=tf --dl-roles=worker:*,evaluator:1
--nodelist=n[1-3] --ntasks=5 --dl=ps
--nodelist=n[1-3] --ntasks=5 --distribution=cyclic --dl=ps --dl-roles=worker:3,server:1,scheduler:1
--nodelist=n[1-3] --ntasks=6 --dl=paddle
--nodelist=n[1-3] --ntasks=6 --dl=paddle --dl-roles=ps:2,worker:4
--nodelist=n[1-2] --nodes=2 --ntasks=4 --mpi=pmi2 --dl=mpi
--nodelist=n[1-3] --ntasks=6 --dl=deepspeed --dl-roles=master:1,worker:*
END
compare () { # compare CLUSTER FACTS PATTERN
    timeout 300 salloc -Q --nodes=3 --ntasks=12 --exclusive sh ./all.sh "$1" "$2" >results 2>&1
    is "$(grep -c ': ' results)" "$(wc -l <cases)" "$1: all cases ran"
    while read -r line; do
        echo "$line" | grep -qE ": [0-9]+ variables$3;\$"
        ok $? "$1: ${line%%: *}"
        echo "$line" | grep -qE ": [0-9]+ variables$3;\$" || echo "# $line"
    done <results
}
export SLURM_RESV_PORTS=0 # as where slurm.conf reserves none
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
dl env --job="$job.0" --one-machine --json het.sh >het/promised
like "$(cd het && /usr/bin/python3 "$srcdir/tests/cluster/env.py" promised 0 1 2 3 4 2>&1)" '^[0-9]+ variables$' "a heterogeneous job"
sed 's/^/# /' het.out
unset SLURM_RESV_PORTS
# in a step
out=$(timeout 300 srun --dl=torch --nodes=1 --ntasks=1 dl env)
is $? 0 "in a step"
like "$out" '^rank 0 of 1: task 0 of node 0 \(n[1-3]\)' "where this is"
like "$out" '^  WORLD_SIZE=1$' "what the plugin set"
out=$(RANK=5 MASTER_PORT=1234 timeout 300 srun --dl=torch --nodes=1 --ntasks=1 dl env 2>&1)
like "$out" 'RANK=5 +\(the plugin.s: 0\)' "what the user exported, and what the plugin would have set"
like "$out" 'RANK=5, but SLURM_PROCID=0' "a contradiction"
like "$out" 'MASTER_PORT=1234 is exported, while MASTER_ADDR=127.0.0.1 is' "half of a pair"
timeout 300 srun --dl=torch --nodes=1 --ntasks=1 sh -c 'RANK=3 dl env >/dev/null' 2>/dev/null
is $? 1 "its exit status"
timeout 300 srun --dl=torch --nodes=1 --ntasks=1 dl env --json | /usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); sys.exit(d["plugin"]["RANK"] != "0" or d["contradictions"] != [])'
is $? 0 "as JSON"
if [ "$(id -u)" -eq 0 ] && try_cluster envh --nodes=3 --hosts --plugin="$PLUGIN dl=$builddir/launcher/dl"; then
    export RESERVED=1
    grep -v ntasks=12 cases >few; mv few cases # two cores are enough
    compare hosts "" "( but .*)?"
else
    skip "hosts" "needs root and network namespaces"
fi
done_testing
