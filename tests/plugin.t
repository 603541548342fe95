#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the plugin in a stub of Slurm: options, contexts, hostile values
. "$srcdir/tests/lib.sh"
[ -f "$PLUGIN" ] || skip_all "the plugin was not built"
trap 'rm -rf "$work"' EXIT

# What Slurm sets for rank 2 of 3: n1 has two tasks, n2 one.
fake () {
    env -i SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_NUM_NODES=2 \
        SLURM_STEP_TASKS_PER_NODE='2,1' SLURM_STEP_NODELIST='n[1-2]' SLURMD_NODENAME=n2 \
        SLURM_STEP_RESV_PORTS=41004-41006 "$@"
}
stub=$builddir/tests/fakespank

for c in local allocator 0; do
    like "$("$stub" "$PLUGIN" $c)" '^option --dl=FRAMEWORK$' "context $c: the option is registered"
done
is "$("$stub" "$PLUGIN" slurmd)" "status 0" "slurmd: nothing"

for c in local allocator; do
    out=$("$stub" "$PLUGIN" $c dl=toch)
    like "$out" '^error dl: --dl=toch: no such value; did you mean torch\?$' "$c: a typo is told"
    like "$out" '^status -1' "$c: and refused"
    like "$("$stub" "$PLUGIN" $c dl=torch)" '^status 0' "$c: torch is accepted"
    like "$("$stub" "$PLUGIN" $c dl=off)" '^status 0' "$c: off is accepted"
done

out=$(fake "$stub" "$PLUGIN" 0 dl=torch)
for v in RANK=2 WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=1 MASTER_PORT=41004 DL_ENV_STEP=1234.0; do
    like "$out" "^set $v\$" "a task gets $v"
done
like "$out" '^set MASTER_ADDR=127.0.0.1' "names of emulated nodes that do not resolve"
like "$(fake SLURM_STEP_NUM_NODES=1 SLURM_NODEID=0 "$stub" "$PLUGIN" 0 dl=torch)" '^set MASTER_ADDR=127.0.0.1$' "one node needs no name"
like "$(fake SLURMD_NODENAME="$(hostname)" "$stub" "$PLUGIN" 0 dl=torch)" '^set MASTER_ADDR=n1$' "else the name of the first host"
is "$(echo "$out" | grep -cE 'TORCHELASTIC|CUDA')" 0 "never TORCHELASTIC_*, never CUDA_VISIBLE_DEVICES"

nothing () { # nothing NAME COMMAND...
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
nothing "arbitrary distribution" fake SLURM_DISTRIBUTION=arbitrary "$stub" "$PLUGIN" 0 dl=torch
nothing "heterogeneous job" fake SLURM_HET_SIZE=2 "$stub" "$PLUGIN" 0 dl=torch
nothing "no word from Slurm" env -i "$stub" "$PLUGIN" 0 dl=torch
like "$(fake SLURM_DISTRIBUTION=arbitrary "$stub" "$PLUGIN" 0 dl=torch)" '^error dl: --dl=torch: nothing is set: ' "and why is told"
like "$(env -i "$stub" "$PLUGIN" 0 dl=torch)" '^status 0' "and the job goes on"

like "$(fake "$stub" "$PLUGIN" 0 -- default=torch)" '^set RANK=2$' "the site's default"
nothing "the user's off wins over the default" fake "$stub" "$PLUGIN" 0 dl=off -- default=torch
like "$("$stub" "$PLUGIN" local -- defualt=torch)" "^error dl: plugstack.conf: unknown argument 'defualt=torch'" "a typo in plugstack.conf is told"
like "$("$stub" "$PLUGIN" local -- defualt=torch)" '^status 0' "and harms nobody"

out=$(fake MASTER_PORT=5 RANK=9 "$stub" "$PLUGIN" 0 dl=torch)
is "$(echo "$out" | grep -cE '^set (MASTER_PORT|RANK)=')" 0 "the user's variables win"
like "$out" '^set DL_ENV_SET=WORLD_SIZE,LOCAL_RANK' "and are not marked as ours"
out=$(fake MASTER_PORT=5 RANK=9 DL_ENV_SET=RANK,WORLD_SIZE DL_ENV_STEP=1.0 "$stub" "$PLUGIN" 0 dl=torch)
like "$out" '^set RANK=2$' "what an outer step's plugin set is replaced"
is "$(echo "$out" | grep -c '^set MASTER_PORT=')" 0 "what its user set is not"

# ---- values of any length and bytes, in any context (as in CVE-2026-65108)
for size in 1 63 64 65 255 4096 65536; do
    head -c $size /dev/urandom | tr -d '\000' >"$work/value"
    for c in local 0; do
        fake "$stub" "$PLUGIN" $c "dl=@$work/value" >"$work/out" 2>&1
        is $? 0 "$size random bytes in context $c"
        is "$(grep -ac '^set' "$work/out")" 0 "and nothing is set"
    done
    tr '\000-\377' 'torch' <"$work/value" >"$work/letters"
    fake "$stub" "$PLUGIN" 0 "dl=@$work/letters" >/dev/null
    is $? 0 "$size letters"
done
long=$(head -c 100000 /dev/zero | tr '\0' 'n')
fake SLURM_STEP_NODELIST="$long" SLURM_STEP_TASKS_PER_NODE="$long" "$stub" "$PLUGIN" 0 dl=torch >/dev/null
is $? 0 "oversized variables"

# ---- every option is in the manual, and the other way round
options=$("$stub" "$PLUGIN" local | sed -n 's/^option \(--[a-z-]*\).*/\1/p' | sort)
documented=$(sed -n '/^\.SH OPTIONS/,/^\.SH WHAT/s/^\.BI \(\\-\\-[a-z\\-]*\)=.*/\1/p' "$srcdir/doc/dl-spank.8" | sed 's/\\//g' | sort -u)
is "$documented" "$options" "dl-spank(8) has the options of the table"
done_testing
