#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the check before a step: GPUs of a stand-in driver, nodes of a real Slurm
. "$srcdir/tests/lib.sh"
nfs=
libs=$builddir/tests/fakes/.libs
mkdir "$work/gpus" "$work/less"
ln -s "$libs/nvml.so" "$work/gpus/libnvidia-ml.so.1"
ln -s "$libs/cuda.so" "$work/gpus/libcuda.so.1"
ln -s "$libs/cuda.so" "$work/gpus/libcublas.so.13"
ln -s "$libs/nvmlless.so" "$work/less/libnvidia-ml.so.1"
cd "$work" || exit 1
for v in $(env | sed -n 's/^\(SLURM[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
unset CUDA_VISIBLE_DEVICES MASTER_PORT MASTER_ADDR DL_ATTEMPT_DIR DL_GATHER

# ---- one machine
out=$(timeout 300 dl check)
is $? 0 "a machine without GPUs is good"
like "$out" '^dl: check: 1 node, 1 rank, 0 GPUs: good$' "and the verdict says so"
export LD_LIBRARY_PATH="$work/gpus"
out=$(timeout 300 dl check --table)
like "$out" '^dl: check: 1 node, 1 rank, 2 GPUs: good$' "two GPUs"
like "$out" '00000000:1B:00\.0,00000000:1C:00\.0' "the table has their addresses"
fault () { # fault FAULT STATUS PATTERN
    out=$(FAKE_FAULTS=here:$1 timeout 300 dl check)
    is $? "$2" "$1: status $2"
    like "$out" "$3" "$1 is told"
}
fault ecc:1 79 '^dl: check: bad: [^ ]*: GPU 00000000:1C:00.0: 3 uncorrected ECC errors'
fault noecc:0 0 'warning: .*GPU 00000000:1B:00.0: ECC is off'
fault rows:0 79 'a row of its memory is to be remapped'
fault thermal:1 79 'GPU 00000000:1C:00.0: slowed down by its hardware \(temperature\)'
fault link:0 79 '1 of 12 NVLinks down \(the first is link 5\)'
fault lost:1 79 'GPU number 1: lost'
fault busy:0 0 'warning: .*1 process on it already \(the first is 4711\)'
fault memory:0 0 'warning: .*71680 of 81920 MiB are in use'
fault width:0 0 'warning: .*PCIe x8 instead of x16'
fault name:0 0 'Evil\?\[31m\?GPU'
start=$(date +%s)
fault hang:1 79 'GPUs: no answer for 8 s at GPU number 1'
[ $(($(date +%s) - start)) -le 250 ]
ok $? "a driver that hangs does not hold it"
out=$(CUDA_VISIBLE_DEVICES=0 FAKE_FAULTS=here:ecc:1 timeout 300 dl check)
is $? 0 "another job's GPU is not looked at"
out=$(CUDA_VISIBLE_DEVICES=GPU-00000000-1 FAKE_FAULTS=here:ecc:1 timeout 300 dl check)
is $? 79 "a GPU that is given by its UUID is"
out=$(SLURM_GPUS_ON_NODE=4 timeout 300 dl check)
is $? 79 "a GPU that Slurm gave and the driver does not have"
like "$out" 'Slurm gave 4, the driver has 2' "is told"
out=$(LD_LIBRARY_PATH="$work/less" FAKE_FAULTS=here:ecc:1 timeout 300 dl check)
is $? 0 "an old driver, without most functions"
like "$out" '2 GPUs: good' "has GPUs all the same"

# ---- full
# its GPUs are memory of this machine, and its probes have a time: one of five runs is not in anybody's way
for _ in 1 2 3 4 5; do
    out=$(CUDA_VISIBLE_DEVICES=0,1 timeout 300 dl check --full)
    status=$?
    [ $status -ne 0 ] || break
    echo "$out" | sed 's/^/# /'
done
is $status 0 "--full"
for kind in "GPU copy" "GPU to host" "host to GPU"; do
    like "$out" "$kind: [0-9.e+]+ to [0-9.e+]+ GB/s" "$kind is measured"
done
like "$out" 'GPU product: [0-9.e+]+ to [0-9.e+]+ TFLOP/s' "products of matrices are measured"
like "$out" 'note: memory: [0-9.]+ GB/s' "and the memory"
for f in "cuda:0 GPU 0000:1b:00.0: it cannot compute \(CUDA error 999\)" "flip:1 GPU 0000:1c:00.0: its memory gives back other than was written"; do
    out=$(CUDA_VISIBLE_DEVICES=0,1 FAKE_FAULTS=here:${f%% *},here:full:0 timeout 300 dl check --full)
    is $? 79 "--full: ${f%% *}"
    like "$out" "${f#* }" "is told"
done
like "$out" 'note: .*GPU 0000:1b:00.0: no rates are measured: too little memory is free' "where little is free, nothing is measured"
is "$(echo "$out" | grep -c "half of the nodes")" 0 "nor called slow"
for _ in 1 2 3 4 5; do
    out=$(CUDA_VISIBLE_DEVICES=0,1 FAKE_FAULTS=here:pcie:1,here:product:1,here:blas:0 timeout 300 dl check --full)
    status=$?
    case $out in *"half of the nodes"*) break ;; esac
done
is $status 79 "--full: a GPU that gets its data slowly, and cannot multiply"
like "$out" 'bad: .*host to GPU 0000:1c:00.0: [0-9.]+ GB/s, half of the nodes have' "the one is told"
like "$out" 'bad: .*GPU 0000:1c:00.0: it cannot multiply matrices \(cuBLAS error 13\)' "and the other"
like "$out" 'note: .*GPU 0000:1b:00.0: products of matrices are not measured \(cuBLAS error 3\)' "what has no memory for it is not bad"

# ---- file systems
if [ "$(id -u)" -eq 0 ] && mkdir full && mount -t tmpfs -o size=64k tmpfs full 2>/dev/null; then
    head -c 65536 /dev/zero >full/file
    out=$(TMPDIR=$work/full timeout 300 dl check)
    is $? 79 "a full TMPDIR"
    like "$out" 'bad: .*TMPDIR: cannot write in .*/full: No space left' "is told"
    out=$(cd full && timeout 300 dl check)
    is $? 75 "a full working directory is not the node's fault alone"
    umount full
else
    skip "full disk" "needs root"
fi
touch plain
for bad in nowhere plain; do
    out=$(TMPDIR=$work/$bad timeout 300 dl check)
    is $? 0 "a user's TMPDIR that is wrong condemns no node: $bad"
    like "$out" "warning: .*TMPDIR: cannot write in .*/$bad: N" "and is told"
done
if fuse_is_here; then
    mkdir under hung
    "$builddir/tests/faults/nfs" -o backing="$work/under" hung >/dev/null 2>&1 &
    nfs=$!
    wait_for 300 mountpoint -q hung
    kill -STOP $nfs
    start=$(date +%s)
    out=$(TMPDIR=$work/hung timeout 300 dl check)
    is $? 79 "a file system that hangs"
    like "$out" "TMPDIR: no answer for 8 s at .*/hung" "is told"
    [ $(($(date +%s) - start)) -le 250 ]
    ok $? "in time"
    kill -CONT $nfs
    umount hung 2>/dev/null || fusermount -u hung
    kill $nfs 2>/dev/null
else
    skip "a file system that hangs" "no FUSE"
fi

# ---- a collector that is not there
out=$(DL_GATHER='1 token' SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 timeout 300 dl check-rank quick plain 2>&1)
is $? 0 "without its collector a good node goes on"
like "$out" '^dl: check: rank 0 on [^ ]+ cannot reach the collector at 127\.0\.0\.1 port 1: Connection refused; it checks only its own node$' "and says so"
is "$(echo "$out" | wc -l)" 1 "in one line"
echo "$out" | sed 's/^/# /'
out=$(FAKE_FAULTS=here:ecc:0 DL_GATHER='1 token' SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 timeout 300 dl check-rank quick plain 2>&1)
is $? 79 "a bad one does not"

# ---- Slurm
slurm_is_here && slurm_loads_plugin || { skip "Slurm" "not here, or the plugin has sanitizers"; done_testing; }
hosts_up check --nodes=3 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl"
step () { # step STATUS NAME SRUN-ARGUMENT...
    wanted=$1
    what=$2
    shift 2
    timeout 900 srun "$@" >out 2>err
    is $? "$wanted" "$what"
}
step 0 "a good step" --dl-check -N3 --ntasks-per-node=2 sh -c 'echo ran $DL_GATHER'
is "$(grep -c '^ran$' out)" 6 "runs, without the token"
like "$(cat err)" '^dl: check: 3 nodes, 6 ranks, 6 GPUs: good' "after one verdict"
is "$(grep -c 'dl: check' err)" 1 "and no further word"
step 0 "without the option" -N3 -n3 sh -c 'echo ran'
is "$(grep -c dl: err)" 0 "nothing is checked"
step 0 "--dl-check=off" --dl-check=off -n1 sh -c 'echo ran'
is "$(grep -c dl: err)" 0 "nothing either"
FAKE_FAULTS=n2:ecc:0 step 79 "a bad GPU on n2" --dl-check -N3 --ntasks-per-node=2 sh -c 'echo ran'
is "$(cat out)" "" "no rank's program runs"
like "$(cat err)" '^dl: check: bad: n2: GPU 00000000:1B:00.0: 3 uncorrected' "the node and the GPU are named"
like "$(cat err)" 'Exited with exit code 75' "ranks on good nodes end with 75"
FAKE_FAULTS=n3:hang:1 step 79 "a driver that hangs on n3" --dl-check -N3 -n3 true
like "$(cat err)" 'BAD: n3: GPUs: no answer for 8 s at GPU number 1(; and [0-9]+ more)? \([0-9]+\.' "is named in time"
FAKE_FAULTS=n1:driver:0 step 0 "another driver on n1" --dl-check -N3 -n3 true
like "$(cat err)" 'warning: n1: NVIDIA driver 470.1, but 550.54.15 on 2 of 3 nodes' "is told"
cat >slow.sh <<'END'
#!/bin/sh
case $1 in check-rank) [ "$SLURM_PROCID" != 2 ] || exec sleep 800 ;; esac
exec dl "$@"
END
chmod +x slow.sh
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
    like "$(cat err)" "BAD: n1: MASTER_PORT $port cannot be used on rank 0's node: Address already in use" "is told, and no node blamed"
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
fi
MASTER_PORT=$((port + 1)) MASTER_ADDR=240.0.0.1 step 75 "a master that cannot be reached" --dl-check -N2 -n2 true
like "$(cat err)" "MASTER_ADDR 240.0.0.1, MASTER_PORT [0-9]+ cannot be reached" "is told"
step 0 "a real one can" --dl=torch --dl-check -N3 -n3 true
like "$(cat err)" ': good' "and is good"
step 0 "by hand, without the option" -N3 -n3 dl check --table
like "$(cat err)" '^2 +n3 +0 ' "who is where"
like "$(cat err)" '3 nodes, 3 ranks, 6 GPUs: good' "and a verdict"
step 0 "a heterogeneous job" --dl-check -N1 -n1 true : -N1 -n2 true
like "$(cat err)" '2 nodes, 3 ranks, 4 GPUs: good' "is one step"
timeout 300 sbatch -W --dl-check -N2 -n2 --output=batch.out --wrap 'echo script; srun sh -c "echo ran"' >/dev/null
is "$(grep -c '^ran$' batch.out) $(grep -c '^dl: check: 2 nodes' batch.out)" "2 1" "sbatch: each step, and not the script"

# ---- a rank that never comes
echo "optional $PLUGIN dl=$work/slow.sh" >"$plugstack"
start=$(date +%s)
step 75 "a rank that does not answer" --dl-check -N3 -n3 true
like "$(cat err)" 'BAD: n3: no answer' "its node is named"
[ $(($(date +%s) - start)) -le 600 ]
ok $? "in time"
echo "optional $PLUGIN dl=$builddir/launcher/dl" >"$plugstack"

# ---- dl run keeps away from a bad node
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
like "$(dl run --dry-run typo.conf 2>&1)" "'resources.check' must be" "a typo in the experiment file"
FAKE_FAULTS=n1:ecc:0 timeout 900 dl run one.conf >out 2>&1
is $? 0 "an experiment goes on without the bad node"
like "$(dl show one)" 'machine n1 is excluded: it failed its check' "which is excluded"
is "$(dl show one | grep -c 'machine n[23] is excluded')" 0 "and no other"
FAKE_FAULTS=n2:ecc:0 timeout 900 dl run two.conf >out 2>&1
is $? 0 "so does one whose trials have two nodes"
like "$(dl show two)" 'machine n2 is excluded: it failed its check' "and a bad one that is not the worker's is excluded"
is "$(dl show two | grep -c 'machine n[13] is excluded')" 0 "and no other"
like "$(dl show two 1)" "^trial 1: completed" "the trial was tried again, although max_restarts is 0"
done_testing
