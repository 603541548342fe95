#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# --dl-check on the nodes of a real Slurm, with a stand-in for NVIDIA's driver. tests/launcher/check.t tests a single machine.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/spank/variant.sh"
need_cluster
mkdir "$work/gpus"
ln -s "$builddir/tests/fakes/.libs/nvml.so" "$work/gpus/libnvidia-ml.so.1"
export LD_LIBRARY_PATH="$work/gpus"
for v in $(env | sed -n 's/^\(SLURM[A-Z_]*\)=.*/\1/p'); do [ "$v" = SLURM_PREFIX ] || unset "$v"; done
unset CUDA_VISIBLE_DEVICES MASTER_PORT MASTER_ADDR DL_ATTEMPT_DIR SLURM_DL_GATHER

hosts_up check --nodes=3 --cpus=4 --gpus=2 --plugin="$PLUGIN dl=$builddir/launcher/dl"
step () { # step STATUS NAME SRUN-ARGUMENT...: run a step; its output is in the files out and err
    wanted=$1
    what=$2
    shift 2
    timeout 900 srun "$@" >out 2>err
    is $? "$wanted" "$what"
}
step 0 "a good step" --dl-check -N3 --ntasks-per-node=2 sh -c 'echo ran $SLURM_DL_GATHER'
is "$(grep -c '^ran$' out)" 6 "it runs, without the token"
like "$(cat err)" '^dl: check: 3 nodes, 6 ranks, 6 GPUs: good' "after one verdict"
is "$(grep -c 'dl: check' err)" 1 "and prints nothing else"
step 0 "without the option" -N3 -n3 sh -c 'echo ran'
is "$(grep -c dl: err)" 0 "nothing is checked"
step 0 "--dl-check=off" --dl-check=off -n1 sh -c 'echo ran'
is "$(grep -c dl: err)" 0 "nothing either"
FAKE_FAULTS=n2:ecc:0 step 79 "a bad GPU on n2" --dl-check -N3 --ntasks-per-node=2 sh -c 'echo ran'
is "$(cat out)" "" "no rank's program runs"
like "$(cat err)" '^dl: check: bad: n2: GPU 00000000:1B:00.0: 3 uncorrected' "the node and the GPU are named"
like "$(cat err)" 'Exited with exit code 75' "ranks on good nodes end with 75"
FAKE_FAULTS=n3:hang:1 step 79 "a driver that hangs on n3" --dl-check -N3 -n3 true
like "$(cat err)" 'BAD: n3: GPUs: no answer for 8 s at GPU number 1(; and [0-9]+ more)? \([0-9]+\.' "it is named in time"
FAKE_FAULTS=n2:link:1 step 79 "NVLinks down on n2" --dl-check -N3 -n3 true
like "$(cat err)" 'bad: n2: GPU 00000000:1C:00.0: 1 of 12 NVLinks down' "are reported"
FAKE_FAULTS=n2:unloaded:0 step 79 "a driver that is not loaded on n2" --dl-check -N3 -n3 --gpus-per-node=2 true
like "$(cat err)" 'bad: n2: GPUs: 2 expected \(by Slurm\), but cannot check any: the NVIDIA driver is not loaded \(NVML error 9\)' "is reported"
FAKE_FAULTS=n1:driver:0 step 0 "another driver on n1" --dl-check -N3 -n3 true
like "$(cat err)" 'warning: n1: NVIDIA driver 470.1, but 550.54.15 on 2 of 3 nodes' "is reported"
program slow.sh <<'END'
case $1 in check-rank) [ "$SLURM_PROCID" != 2 ] || exec sleep 800 ;; esac
exec dl "$@"
END
if ! command -v python3 >/dev/null; then
    skip "port in use" "no python3"
else
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
    if [ -z "$hosts" ]; then
        python3 -c "import socket, time; s = socket.socket(); s.bind(('', $port)); s.listen(); print('listens', flush=True); time.sleep(800)" >listens &
    else
        srun -w n1 -n1 --overlap python3 -c "import socket, time; s = socket.socket(); s.bind(('', $port)); s.listen(); print('listens', flush=True); time.sleep(800)" >listens &
    fi
    pid=$!
    wait_for 300 grep -q listens listens
    MASTER_PORT=$port MASTER_ADDR=127.0.0.1 step 75 "MASTER_PORT is in use" --overlap --dl-check -w n1 -N1 -n1 true
    like "$(cat err)" "BAD: n1: cannot listen on MASTER_PORT $port on rank 0's node: Address already in use" "is reported, and no node blamed"
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
fi
MASTER_PORT=$((port + 1)) MASTER_ADDR=240.0.0.1 step 75 "a master that cannot be reached" --dl-check -N2 -n2 true
like "$(cat err)" "cannot connect to MASTER_ADDR 240.0.0.1, MASTER_PORT [0-9]+: " "is reported"
step 0 "a real one can" --dl=torch --dl-check -N3 -n3 true
like "$(cat err)" ': good' "and is good"
step 0 "by hand, without the option" -N3 -n3 dl check --table
like "$(cat err)" '^2 +n3 +0 ' "who is where"
like "$(cat err)" '3 nodes, 3 ranks, 6 GPUs: good' "and a verdict"
step 0 "a heterogeneous job" --dl-check -N1 -n1 true : -N1 -n2 true
like "$(cat err)" '2 nodes, 3 ranks, 4 GPUs: good' "is one step"
timeout 300 sbatch -W --dl-check -N2 -n2 --output=batch.out --wrap 'echo script; srun sh -c "echo ran"' >/dev/null
is "$(grep -c '^ran$' batch.out) $(grep -c '^dl: check: 2 nodes' batch.out)" "2 1" "sbatch: each step, and not the script"

# ---- a rank that never answers
echo "optional $PLUGIN dl=$work/slow.sh" >"$plugstack"
start=$(date +%s)
step 75 "a rank that does not answer" --dl-check -N3 -n3 true
like "$(cat err)" 'BAD: n3: no answer' "its node is named"
[ $(($(date +%s) - start)) -le 600 ]
ok $? "in time"
echo "optional $PLUGIN dl=$builddir/launcher/dl" >"$plugstack"

# ---- dl run avoids a bad node
cat >one.conf <<'END'
name = "one";
entrypoint = "dl log loss=1";
max_restarts = 0;
searcher = { name = "random"; metric = "loss"; max_trials = 4; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 2; check = "quick"; };
worker = { heartbeat = 1; lease = 8; };
END
cat >two.conf <<'END'
name = "two";
entrypoint = "if [ $SLURM_PROCID = 0 ]; then dl log loss=1; fi";
max_restarts = 0;
searcher = { name = "random"; metric = "loss"; max_trials = 2; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; nodes_per_trial = 2; framework = "torch"; check = "quick"; };
worker = { heartbeat = 1; lease = 8; };
END
sed 's/"quick"/"quik"/' one.conf >typo.conf
like "$(dl run --dry-run typo.conf 2>&1)" "'resources.check' is 'quik': no such value; did you mean quick" "a typo in the experiment file"
FAKE_FAULTS=n1:ecc:0 timeout 900 dl run one.conf >out 2>&1
is $? 0 "an experiment continues without the bad node"
like "$(dl show one)" 'machine n1 is excluded: it failed its check' "which is excluded"
is "$(dl show one | grep -c 'machine n[23] is excluded')" 0 "and no other"
FAKE_FAULTS=n2:ecc:0 timeout 900 dl run two.conf >out 2>&1
is $? 0 "so does one with two-node trials"
like "$(dl show two)" 'machine n2 is excluded: it failed its check' "a bad node other than the worker's is excluded"
is "$(dl show two | grep -c 'machine n[13] is excluded')" 0 "and no other"
like "$(dl show two 1)" "^trial 1: completed" "the trial was retried, although max_restarts is 0"
# ---- the plugin's options reach the ranks of a trial, from resource keys and from sbatch_args as one string
cat >plugin.conf <<'END'
name = "keys";
entrypoint = "env >{attempt_dir}/env.$SLURM_PROCID; [ $SLURM_PROCID != 0 ] || dl log loss={lr}";
searcher = { name = "single"; metric = "loss"; };
hyperparameters = { lr = 1; };
resources = { workers = 1; nodes_per_trial = 2; framework = "torch"; KEYS };
END
plugged () { # plugged NAME KEYS: run a trial with KEYS, and print what its ranks lack
    sed "s/\"keys\"/\"$1\"/; s/KEYS/$2/" plugin.conf >"$1.conf"
    timeout 300 dl run "$1.conf" >"$1.out" 2>&1 || tail -3 "$1.out"
    for r in 0 1; do
        grep -q '^RANK='$r "$1"-0001/trials/0001/a.1/env.$r || echo "no rank $r"
        grep -q '^DL_DEBUG_PATH=.' "$1"-0001/trials/0001/a.1/env.$r || echo "no debug of $r"
        grep -q '^DL_NCCL_SET=' "$1"-0001/trials/0001/a.1/env.$r || echo "no nccl of $r"
    done
}
is "$(plugged keys 'debug = "hang:300"; nccl = "auto"; bind = "closest";')" "" "keys of the plugin's options"
is "$(plugged args 'sbatch_args = "--dl-debug=hang:300 --dl-nccl=auto --comment=x";')" "" "and sbatch_args as one string"
cat >plugin-flow.conf <<'END'
name = "plug";
steps = {
    line = { cache = false; entrypoint = "env >$OUT/line.$SLURM_PROCID"; resources = { nodes_per_trial = 2; framework = "torch"; sbatch_args = "--dl-debug=hang:300 --dl-nccl=auto"; }; };
    list = { cache = false; entrypoint = "env >$OUT/list.$SLURM_PROCID"; resources = { nodes_per_trial = 2; framework = "torch"; sbatch_args = ["--dl-debug=hang:300", "--dl-nccl=auto"]; }; };
    keys = { cache = false; entrypoint = "env >$OUT/keys.$SLURM_PROCID"; resources = { nodes_per_trial = 2; framework = "torch"; debug = "hang:300"; nccl = "auto"; }; };
};
END
mkdir flow-env
OUT=$PWD/flow-env timeout 300 dl flow run plugin-flow.conf >flow.out 2>&1
is $? 0 "a flow whose steps have options of the plugin"
flow_has_ended () { dl flow show plug | head -n 1 | grep -q ': completed\|: failed'; }
wait_for 300 flow_has_ended
like "$(dl flow show plug; tail -n 5 plug-0001/steps/*/0/a.*/log)" ': completed$' "which completes"
for step in line list keys; do
    is "$(for r in 0 1; do sed -n 's/^\(RANK\|DL_DEBUG_PATH\|DL_NCCL_SET\)=.*/\1/p' "flow-env/$step.$r" | sort | tr '\n' ' '; done)" \
        "DL_DEBUG_PATH DL_NCCL_SET RANK DL_DEBUG_PATH DL_NCCL_SET RANK " "they reach both ranks of step $step"
done
timeout 60 dl run --dry-run --set 'resources.bind="nowhere"' keys.conf >out 2>&1
like "$(cat out)" "^keys.conf:.*|'resources.bind' is 'nowhere': .*closest" "an unknown value"

# ---- nodes that differ
if [ -n "$hosts" ]; then
    slurmd=$(cat "${SLURM_CONF%/*}/run/slurmd-n2.pid")
    nsenter -t "$slurmd" -n ip link set eth0 mtu 600
    step 79 "another MTU on n2" --dl-check -N3 -n3 true
    like "$(cat err)" 'bad: n2: MTU 600, but 1500 on 2 of 3 nodes' "is reported"
    nsenter -t "$slurmd" -n ip link set eth0 mtu 1500
    innode () { # innode K COMMAND...: run it in the network namespace of node K
        p=$(cat "${SLURM_CONF%/*}/run/slurmd-n$1.pid")
        shift
        nsenter -t "$p" -n "$@"
    }
    for k in 1 2 3; do innode $k ip link add ib0 type veth peer name ib1; done
    for k in 1 3; do for i in 0 1; do innode $k ip link set ib$i up; done; done
    step 0 "a link that is down on n2" --dl-check -N3 -n3 true
    like "$(cat err)" 'warning: n2: IP interfaces in use: 1, but 3 on 2 of 3 nodes' "is reported"
    innode 2 ip link set ib0 up
    step 0 "a link without a carrier" --dl-check -N3 -n3 true
    like "$(cat err)" 'warning: n2: network: ib0 is up but has no carrier' "is reported"
    for k in 1 2 3; do innode $k ip link delete ib0; done
    prlimit --pid "$slurmd" --nofile=999:4096
    step 0 "another limit on n2" --dl-check --propagate=NONE -N3 -n3 true
    like "$(cat err)" 'warning: n2: limit of open files 999, but [0-9]+ on 2 of 3 nodes' "is reported"
    line=$(cat "$plugstack")
    printf '%s\n' "$line" >other.conf
    nsenter -t "$slurmd" -m mount --bind "$PWD/other.conf" "$plugstack"
    printf '%s when=gpus:any default=torch\n' "$line" >"$plugstack"
    step 0 "other arguments on n2" --dl-check -N3 -n3 true
    like "$(cat err)" 'warning: n2: arguments of dl.so in plugstack.conf: dl=.*, but dl=.* on 2 of 3 nodes' "are reported"
    step 0 "srun decides" -N3 -n3 sh -c 'echo "rank ${RANK-none}"'
    is "$(sort out | tr '\n' ' ')" "rank 0 rank 1 rank 2 " "and all nodes follow it"
    variant "$work/other.so" -O0
    printf 'optional %s dl=%s\n' "$work/other.so" "$builddir/launcher/dl" >other.conf
    printf '%s\n' "$line" >"$plugstack"
    step 0 "another build of the plugin on n2" --dl-check -N3 -n3 true
    like "$(cat err)" 'warning: n2: build of dl.so [0-9a-f]{16}, but [0-9a-f]{16} on 2 of 3 nodes' "is reported"
    is "$(grep -c 'arguments of dl.so' err)" 0 "and no other arguments"
    printf '%s deny=torch\n' "$line" >other.conf
    step 0 "what only n2 denies" --dl=torch -N3 -n3 sh -c 'echo "rank ${RANK-none}"'
    is "$(sort out | tr '\n' ' ')" "rank 0 rank 1 rank 2 " "splits no step"
    nsenter -t "$slurmd" -m umount "$plugstack"
    printf '%s\n' "$line" >"$plugstack"
else
    skip "nodes that differ" "needs hosts of their own"
fi
done_testing
