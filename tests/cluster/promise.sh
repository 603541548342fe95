# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Check that dl env predicts the environment of each rank of a step.  Source this after lib.sh; compare() needs a cluster of
# three nodes.
cat >step.sh <<'END'
# step.sh FOLDER STEP FACTS OPTIONS...: predict, run, compare.  With RESERVED, run
# first, because the ports that Slurm reserves are known only afterwards.
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
compare () { # compare CLUSTER FACTS PATTERN: run all cases; PATTERN matches the variables that dl env cannot predict
    timeout 300 salloc -Q --nodes=3 --ntasks=12 --exclusive sh ./all.sh "$1" "$2" >results 2>&1
    is "$(grep -c ': ' results)" "$(wc -l <cases)" "$1: all cases ran"
    while read -r line; do
        echo "$line" | grep -qE ": [0-9]+ variables$3;\$"
        ok $? "$1: ${line%%: *}"
        echo "$line" | grep -qE ": [0-9]+ variables$3;\$" || echo "# $line"
    done <results
}
