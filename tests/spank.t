#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the plugin in a real Slurm, and PyTorch over what it sets
. "$srcdir/tests/lib.sh"
[ -f "$PLUGIN" ] || skip_all "the plugin was not built"
PATH=$PATH:/usr/sbin
command -v slurmctld >/dev/null && command -v munged >/dev/null || skip_all "Slurm is not installed"
case $(nm -D "$PLUGIN") in *__asan_*) skip_all "a plugin with sanitizers cannot be loaded into Slurm" ;; esac
minicluster=$srcdir/contrib/minicluster
name=spank$$
trap 'timeout 60 "$minicluster" down $name; timeout 60 "$minicluster" down ${name}h; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
timeout 60 "$minicluster" up --name=$name --nodes=2 --cpus=4 --plugin="$PLUGIN" >"$work/up" 2>&1 ||
    { sed 's/^/# /' "$work/up"; echo "Bail out! no cluster"; exit 1; }
eval "$("$minicluster" env $name)"
cd "$work" || exit 1
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT

# ---- srun
out=$(timeout 20 srun --dl=torch -N2 -n4 --ntasks-per-node=2 sh -c \
    'echo "$SLURM_PROCID:$RANK/$WORLD_SIZE:$LOCAL_RANK/$LOCAL_WORLD_SIZE:$NODE_RANK:$MASTER_ADDR"' | sort | tr '\n' ' ')
is "$out" "0:0/4:0/2:0:127.0.0.1 1:1/4:1/2:0:127.0.0.1 2:2/4:0/2:1:127.0.0.1 3:3/4:1/2:1:127.0.0.1 " "srun: every rank"
is "$(timeout 20 srun --dl=torch -N2 -n3 sh -c 'echo $MASTER_PORT' | sort -u | wc -l)" 1 "all ranks have one port"
is "$(timeout 20 srun -n1 sh -c 'env | grep -cE "^(RANK|WORLD_SIZE|MASTER_|DL_)"')" 0 "a job without --dl has no new variable"
is "$(RANK=77 timeout 20 srun --dl=torch -n1 sh -c 'echo $RANK $WORLD_SIZE')" "77 1" "the user's export wins"

# ---- sbatch, several steps at once, what leaks
cat >job.sh <<'END'
#!/bin/sh
#SBATCH --dl=torch -N2 -n4 --output=job.out
echo "script $(env | grep -cE '^(RANK|MASTER_|DL_ENV)')"
for i in 1 2; do
    srun --exact -N1 -n2 sh -c 'sleep 1; echo "step $RANK/$WORLD_SIZE $MASTER_PORT"' &
done
wait
END
timeout 40 sbatch -W job.sh >/dev/null
is $? 0 "sbatch with a directive"
like "$(cat job.out)" '^script 0$' "the batch script's environment is left alone"
is "$(grep -c '^step [01]/2 ' job.out)" 4 "inner steps inherit the option"
is "$(sed -n 's/^step .* //p' job.out | sort -u | wc -l)" 2 "steps at the same time have ports of their own"
is "$(timeout 20 salloc -Q --dl=torch -n1 srun sh -c 'echo $RANK/$WORLD_SIZE' 2>/dev/null)" "0/1" "salloc"
timeout 30 srun --dl=torch -n1 sh -c 'sbatch -W --dl=torch -n2 --output=inner.out --wrap "srun sh -c \"echo \\\$RANK/\\\$WORLD_SIZE\""' >/dev/null
is "$(sort inner.out | tr '\n' ' ')" "0/2 1/2 " "a job that a step submits gets its own values"

# ---- typos never reach a node
for c in "srun true" "sbatch job.sh" "salloc true"; do
    # shellcheck disable=SC2086
    out=$(timeout 20 ${c% *} --dl=toch ${c#* } 2>&1)
    [ $? -ne 0 ]
    ok $? "${c%% *} --dl=toch is refused"
    like "$out" 'did you mean torch\?' "with what was meant"
done
is "$(sinfo -h -o %T | sort -u)" idle "no node was harmed"
like "$(srun --help)" '\-\-dl=FRAMEWORK +\[dl\]' "srun --help has it"

# ---- PyTorch
torch=
/usr/bin/python3 -c 'import torch' 2>/dev/null && torch=1
train=$srcdir/contrib/examples/torch/train.py
if [ -n "$torch" ]; then
    out=$(timeout 120 srun --dl=torch -N1 -n2 /usr/bin/python3 "$train" 2>err)
    like "$out" '^2 ranks: loss 0\.[0-9]+ accuracy 0\.9' "DistributedDataParallel on one node, without a word of set-up"
    out=$(timeout 120 srun --dl=torch -N2 -n2 /usr/bin/python3 "$train" 2>err)
    like "$out" '^2 ranks: loss 0\.[0-9]+ accuracy 0\.9' "and on two nodes of one machine"
else
    skip "PyTorch on one machine" "no python3-torch"
fi

# ---- hosts
if [ "$(id -u)" -eq 0 ] && timeout 60 "$minicluster" up --name=${name}h --nodes=2 --hosts --plugin="$PLUGIN" >"$work/up" 2>&1; then
    eval "$("$minicluster" env ${name}h)"
    out=$(timeout 20 srun --dl=torch -N2 -n2 sh -c 'echo "$MASTER_ADDR $GLOO_SOCKET_IFNAME"' | sort -u)
    is "$out" "n1 eth0" "hosts: address and interface"
    out=$(timeout 20 srun --dl=torch -N1 -n1 -w n2 sh -c 'echo "$MASTER_ADDR $GLOO_SOCKET_IFNAME"')
    is "$out" "127.0.0.1 lo" "a step on one host needs no network"
    if [ -n "$torch" ]; then
        out=$(timeout 120 srun --dl=torch -N2 -n4 /usr/bin/python3 "$train" 2>err)
        like "$out" '^4 ranks: loss 0\.[0-9]+ accuracy 0\.9' "DistributedDataParallel over two hosts"
        sed 's/^/# /' err | head -5
    else
        skip "PyTorch over hosts" "no python3-torch"
    fi
else
    skip "hosts" "needs root and network namespaces"
fi
done_testing
