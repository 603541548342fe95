#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Site policy: the arguments in plugstack.conf.
. "$srcdir/tests/lib.sh"
[ -f "$PLUGIN" ] || skip_all "the plugin was not built"
stub=$builddir/tests/fakes/spank

one='SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=1
    SLURM_STEP_NODELIST=n1 SLURMD_NODENAME=n1 SLURM_GTIDS=0 SLURM_CPUS_ON_NODE=1 SLURM_TASKS_PER_NODE=1'

not_allowed () { # not_allowed OPTION MESSAGE ARGUMENT...: check that srun rejects the option, and that a node ignores it
    option=$1
    line=$2
    shift 2
    for c in local allocator; do
        out=$("$stub" "$PLUGIN" $c "$option" -- "$@")
        is "$(echo "$out" | grep '^error')" "error dl: --$line" "$c: --$option with $*"
        like "$out" '^status -1' "is refused"
    done
    out=$(env -i $one "$stub" "$PLUGIN" 0 "$option" -- "$@")
    is "$(echo "$out" | grep -c '^set')" 0 "a node where it is forged: nothing is set"
    like "$out" '^status 0' "and no job fails"
}
taken () { # taken OPTION ARGUMENT...: check that the option is accepted without a message
    option=$1
    shift
    for c in local allocator; do
        out=$("$stub" "$PLUGIN" $c "$option" -- "$@")
        is "$(echo "$out" | grep '^error')" "" "$c: --$option with $*: no message"
        like "$out" '^status 0' "and is accepted"
    done
}
ignored () { # ignored ARGUMENT WHY [ARGUMENT]...: check that a bad argument is reported at submission, but not on nodes
    wrong=$1
    why=$2
    shift 2
    for c in local allocator; do
        out=$("$stub" "$PLUGIN" $c dl=torch -- "$@" "$wrong")
        is "$(echo "$out" | grep '^error')" "error dl: plugstack.conf: $wrong: $why; ignored" "$c: $wrong is reported"
        like "$out" '^status 0' "and ignored"
    done
    out=$("$stub" "$PLUGIN" 0xfffffffb dl=torch -- "$@" "$wrong")
    is "$(echo "$out" | grep '^error')" "" "a node prints nothing about it"
    like "$out" '^status 0' "and runs the job"
}

# ---- lists
not_allowed dl=tf 'dl=tf: this site allows torch,jax' allow=torch,jax
not_allowed dl=ps 'dl=ps: this site does not allow ps,paddle' deny=ps,paddle
not_allowed dl=jax 'dl=jax: this site does not allow jax' allow=torch,jax deny=jax
not_allowed dl-bind=closest,own-gpu 'dl-bind=closest,own-gpu: this site does not allow own-gpu' deny_bind=own-gpu
not_allowed dl-nccl=site 'dl-nccl=site: this site allows auto' allow_nccl=auto
taken dl=torch allow=torch,jax
taken dl=off allow=torch deny=off
taken dl-bind=closest,verbose deny_bind=own-gpu
taken dl-bind=none allow_bind=closest
taken dl-nccl=none allow_nccl=auto
taken dl=torch allow=tf allow=torch

# ---- defaults
task () { # task ARGUMENT...: run one task with a GPU
    env -i $one SLURM_STEP_GPUS=0 FAKE_SRUN=bind, "$stub" "$PLUGIN" 0 "$@"
}
like "$("$stub" "$PLUGIN" local -- default=torch bind=closest nccl=auto)" '^status 0' "defaults of three options"
is "$("$stub" "$PLUGIN" local -- default=torch bind=closest nccl=auto | grep -c '^error')" 0 "without a message"
out=$(task -- bind=none,verbose)
like "$out" '^log dl: rank 0 on .*: no GPU' "bind= applies"
out=$(task dl-bind=none -- bind=none,verbose)
is "$(echo "$out" | grep -c '^log')" 0 "and a job's own value wins"
ignored default=toch "no such value; did you mean torch?"
ignored default=tf "this site allows torch" allow=torch
ignored default=tf "this site does not allow tf" deny=tf
ignored nccl=../x "not a valid profile name; see dl-spank(7)"
ignored nccl=auto "--dl-nccl is not in options=" options=dl
ignored monitor=5 "a default of monitor= or debug= needs monitor_dir="
ignored debug=600 "a default of monitor= or debug= needs monitor_dir="
ignored monitor=idle:30,park "a site default cannot end steps: use warn instead of park" monitor_dir=/tmp
ignored monitor_dir=x "not an absolute path"
is "$("$stub" "$PLUGIN" local dl=torch -- monitor=5 monitor_dir=/tmp monitor=off | grep -c '^error')" 0 "with it they are valid"
ignored roles=worker:1 "roles are set by each job"

# ---- wrong arguments
ignored allow=toch "no such value; did you mean torch?"
ignored deny_bind=closest,x "no such value; there are closest, socket, spread, none, own-gpu, nic, verbose"
ignored options=dl,bind "'bind' is not an option"
ignored max_bind=3 "--dl-bind takes no number"
ignored min_roles=x "not a number"
ignored min_roles=-1 "not a number"
ignored max_roles=12345678901 "not a number"
for a in wen=x defualt=torch allow_=torch allow_dl=torch _bind=none =x x "" min=3; do
    ignored "$a" "no such argument"
done
ignored "when=partition:low,gpus:yes" "'partition:low,gpus:yes' has a comma instead of a semicolon between two conditions"
out=$("$stub" "$PLUGIN" local dl=torch -- when=gpus:true default=tf | grep '^error')
is "$out" "error dl: plugstack.conf: when=gpus:true: 'gpus:true' is not partition:, account: or qos: with names, or gpus: with yes, no or any; ignored; the arguments after it, up to the next when=, apply to no step" "it reports what a wrong condition turns off"
is "$(env -i $one "$stub" "$PLUGIN" 0 -- when=gpus:true default=torch | grep -c '^set')/$(env -i $one SLURM_STEP_GPUS=0 "$stub" "$PLUGIN" 0 -- when=gpus:true default=torch | grep -c '^set')" 0/0 "a wrong condition holds for no step"
long=$(head -c 300 /dev/zero | tr '\0' 'n')
out=$(DL_DOCTOR=1 "$stub" "$PLUGIN" local -- "allow_nccl=$long" "$long=$long" "dl=/$long" "nccl_dir=/$long" "default=$long" "options=$long")
is "$(echo "$out" | grep -c '^error dl: plugstack.conf: .*ignored')" 6 "long ones are reported"
like "$out" '^status 0' "and ignored"
# the leading ? makes every random value invalid
bytes () { # bytes N SEED: print N random bytes
    LC_ALL=C awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); while (n-- > 0) { b = 1 + int(255 * rand()); printf "%c", b == 10 ? 120 : b } }'
}
seed=${DL_TEST_SEED:-$(date +%s)}
echo "# DL_TEST_SEED=$seed"
for size in 1 64 255 4096 65536; do
    for key in '' default= allow= options= nccl_dir= dl= min_roles=; do
        seed=$((seed + 1))
        value="?$(bytes $size $seed)"
        DL_DOCTOR=1 "$stub" "$PLUGIN" local -- "$key$value" >"$work/out" 2>&1
        is "$? $(grep -ac '^status 0$' "$work/out") $(grep -ac '^error' "$work/out")" "0 1 1" "$size random bytes for '$key': one line"
        LC_ALL=C grep -aq '[^[:print:]]' "$work/out"
        is $? 1 "of plain characters"
    done
done

# ---- options=
is "$("$stub" "$PLUGIN" local -- options=dl,dl-bind | grep '^option' | cut -d= -f1)" "option --dl
option --dl-bind" "options= limits the options"
is "$("$stub" "$PLUGIN" 0 -- options=dl,dl-bind | grep -c '^option')" 7 "but nodes know all options, and follow srun's"
is "$(env -i $one "$stub" "$PLUGIN" 0 dl-nccl=auto -- options=dl,dl-bind | grep '^error')" "error dl: --dl-nccl=auto: this site has disabled this option (options= in plugstack.conf)" "a missing one does nothing"
for c in SLURM_SPANK__SLURM_SPANK_OPTION_dl_dl_nccl=auto _SLURM_SPANK_OPTION_dl_dl_nccl=auto; do
    is "$(env $c "$stub" "$PLUGIN" local -- options=dl,dl-bind | grep '^error')" "error dl: --dl-nccl=auto: this site has disabled this option (options= in plugstack.conf)" "srun reports one of the job: ${c%%OPTION*}"
done
is "$(env SLURM_SPANK__SLURM_SPANK_OPTION_dl_dl_debug=off "$stub" "$PLUGIN" local -- options=dl | grep -c '^error')" 0 "which is not off"

# ---- the manual lists exactly the arguments of the plugin
table=$(sed -n '/arguments\[\] = {/,/^};/s/^ *{ \([^ ]*\), *\([^ ]*\), *take_.*/\1 \2/p' "$srcdir/spank/policy.c" |
    awk '{ if ($1 != "NULL") print $1 "="; if ($2 != "NULL") print $2 "NAME=" }' | tr -d '"' | sort)
documented=$(sed -n '/^\.SH SITE POLICY/,/^\.SH SEC/s/^\.BI \([A-Za-z_]* *=\).*/\1/p' "$srcdir/doc/dl-spank.8" | tr -d ' ' | sort)
is "$documented" "$table" "dl-spank(8) has the arguments of the table"
done_testing
