#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl check on one node, with a stand-in for the GPU driver and with simulated files.
. "$srcdir/tests/lib.sh"
libs=$builddir/tests/fakes/.libs
mkdir "$work/gpus" "$work/less"
ln -s "$libs/nvml.so" "$work/gpus/libnvidia-ml.so.1"
ln -s "$libs/cuda.so" "$work/gpus/libcuda.so.1"
ln -s "$libs/cuda.so" "$work/gpus/libcublas.so.13"
ln -s "$libs/cuda.so" "$work/gpus/libnccl.so.2"
ln -s "$libs/nvmlless.so" "$work/less/libnvidia-ml.so.1"
for v in $(env | sed -n 's/^\(SLURM[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
unset CUDA_VISIBLE_DEVICES MASTER_PORT MASTER_ADDR DL_ATTEMPT_DIR SLURM_DL_GATHER

# ---- one node
out=$(timeout 300 dl check)
is $? 0 "a machine without GPUs is good"
like "$out" '^dl: check: 1 node, 1 rank, 0 GPUs: good$' "and the verdict says so"
export LD_LIBRARY_PATH="$work/gpus"
out=$(timeout 300 dl check --table)
like "$out" '^dl: check: 1 node, 1 rank, 2 GPUs: good$' "two GPUs"
like "$out" '00000000:1B:00\.0,00000000:1C:00\.0' "the table has their addresses"
field () { # field EXPRESSION: evaluate it over the JSON d; standard error must not mix with the JSON
    FAKE_FAULTS=here:ecc:1 timeout 300 dl check --json 2>/dev/null | python3 -c "import json, sys; d = json.load(sys.stdin); print($1)"
}
is "$(field 'd["good"], len(d["nodes"]), d["nodes"][0]["gpus"], d["nodes"][0]["state"]')" "False 1 2 BAD" "--json"
is "$(field 'd["findings"][0]["severity"], d["findings"][0]["nodes"] == [d["nodes"][0]["node"]]')" "bad True" "with the findings"
like "$(field 'd["findings"][0]["what"]')" '^GPU 00000000:1C:00.0: 3 uncorrected ECC errors' "and what they are"
fault () { # fault FAULT STATUS PATTERN: dl check with this fault
    out=$(FAKE_FAULTS=here:$1 timeout 300 dl check)
    is $? "$2" "$1: status $2"
    like "$out" "$3" "$1 is reported"
}
says () { # says FAULT LINE: LINE is all that dl check reports about GPUs, apart from the verdict
    is "$(FAKE_FAULTS=$1 timeout 300 dl check | sed -n "s/^dl: check: \([a-z]*: \).*\(GPU [0n].*\)/\1\2/p" | sort | tr '\n' ';')" "$2" "$1"
}
says "" ""
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
says here:pages:0 "bad: GPU 00000000:1B:00.0: pages to retire; it needs a reset;"
says here:failed:0,here:rows:0 "bad: GPU 00000000:1B:00.0: a row of its memory could not be remapped;"
says here:warm:1 "warning: GPU 00000000:1C:00.0: slowed down by its driver (temperature);"
says here:brake:0 "bad: GPU 00000000:1B:00.0: slowed down by its hardware (power brake);"
says here:slow:0 "bad: GPU 00000000:1B:00.0: slowed down by its hardware (no further reason);"
says here:links:0 "" # no link is up, so the GPUs do not use NVLink
says here:generation:1 "note: GPU 00000000:1C:00.0: PCIe generation 1 instead of 5;"
says here:idle:1 ""
says here:unloads:0 "note: GPU 00000000:1B:00.0: persistence mode is off;"
says here:reset:1 "bad: GPU number 1: the driver requests a reset;"
says here:lostlate:1 "bad: GPU 00000000:1C:00.0: lost (it fell off the bus);"
says here:closed:1 "bad: GPU number 1: cannot open it (NVML error 999);"
says here:divided:0,here:ecc:0,here:slow:0 "" # a GPU in MIG mode is not checked further
CUDA_VISIBLE_DEVICES=0 says here:closed:1 "" # this GPU belongs to another job
CUDA_VISIBLE_DEVICES=NoDevFiles says here:ecc:1 "bad: GPU 00000000:1C:00.0: 3 uncorrected ECC errors since its driver was loaded;"
beside hang env FAKE_FAULTS=here:hang:1 dl check
out=$(CUDA_VISIBLE_DEVICES=0 FAKE_FAULTS=here:ecc:1 timeout 300 dl check)
is $? 0 "another job's GPU is not checked"
out=$(CUDA_VISIBLE_DEVICES=GPU-00000000-1 FAKE_FAULTS=here:ecc:1 timeout 300 dl check)
is $? 79 "a GPU given by its UUID is checked"
out=$(SLURM_GPUS_ON_NODE=4 timeout 300 dl check)
is $? 79 "a GPU that Slurm allocated and the driver lacks"
like "$out" 'Slurm allocated 4, but the driver has 2' "is reported"
for list in MIG-0/1/0,MIG-0/2/0,MIG-0/3/0 0,1 -1 ""; do
    out=$(CUDA_VISIBLE_DEVICES=$list SLURM_JOB_ID=1 timeout 300 dl check)
    is $? 0 "CUDA_VISIBLE_DEVICES=$list: none is missing"
done
out=$(CUDA_VISIBLE_DEVICES=0,1,2 timeout 300 dl check)
is $? 79 "a third one is missing"
like "$out" 'Slurm allocated 3, but the driver has 2' "and it is reported"
out=$(LD_LIBRARY_PATH="$work/less" FAKE_FAULTS=here:ecc:1 timeout 300 dl check)
is $? 0 "an old driver, without most functions"
like "$out" '2 GPUs: good' "has GPUs anyway"

# ---- the ranks of a node
rank () { # rank LEVEL LOCALID FAULTS: run one of two ranks of this node, without a collector
    FAKE_FAULTS=$3 SLURM_LOCALID=$2 SLURM_GTIDS=0,1 SLURM_GPUS_ON_NODE=2 CUDA_VISIBLE_DEVICES=0,1 TMPDIR=$work/nowhere timeout 300 dl check-rank "$1" plain 2>&1
    echo "status $?"
}
is "$(rank quick 0 here:ecc:0 | sed 's/.*GPU 0*//; s/.*TMPDIR.*/TMPDIR/' | sort | tr '\n' ';')" \
    ":1B:00.0: 3 uncorrected ECC errors since its driver was loaded;TMPDIR;status 79;" "the first rank checks its GPU and the node"
is "$(rank quick 0 here:ecc:1 | sed 's/.*TMPDIR.*/TMPDIR/' | tr '\n' ';')" "TMPDIR;status 0;" "but not the other rank's GPU"
is "$(rank quick 1 here:ecc:1 | sed 's/.*GPU 0*//')" ":1C:00.0: 3 uncorrected ECC errors since its driver was loaded
status 79" "the second rank checks only its GPU"
is "$(rank quick 1 here:ecc:0)" "status 0" "and it does"
is "$(rank none 0 here:ecc:0)" "status 0" "without a check no rank looks"
out=$(FAKE_FAULTS=here:ecc:1 CUDA_VISIBLE_DEVICES=0,1 SLURM_GPUS_ON_NODE=4 SLURM_LOCALID=0 SLURM_GTIDS=0,1 timeout 300 dl check-rank quick plain 2>&1)
is $? 79 "a rank with its own GPUs checks each of them"
out=$(timeout 300 dl check-rank quik plain 2>&1)
is $? 2 "an unknown level"

# ---- a step of two nodes that both are this machine, with a collector that runs as the plugin starts it
ranks () { # ranks LEVEL NODE=VARIABLE=VALUE...: one rank per node; the collector writes 'verdict', the ranks write 'said.0' and 'said.1'
    level=$1
    shift
    rm -f said.* token parent
    mkfifo parent
    timeout 300 dl gather "$level" table <parent >token 2>verdict &
    collector=$!
    exec 9>parent
    wait_for 300 grep -q ' ' token
    pids=
    for r in 0 1; do
        (
            for v in "$@"; do
                case $v in n$((r + 1))=*) export "${v#n?=}" ;; esac
            done
            export SLURMD_NODENAME=n$((r + 1)) SLURM_PROCID=$r SLURM_NODEID=$r SLURM_LOCALID=0 SLURM_GTIDS=$r SLURM_STEP_NUM_TASKS=2
            export SLURM_STEP_NODELIST='n[1-2]' SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_DISTRIBUTION=block
            SLURM_DL_GATHER=$(cat token)
            export SLURM_DL_GATHER SLURM_LAUNCH_NODE_IPADDR=127.0.0.1
            [ -z "${silent:-}" ] || [ $r -eq 0 ] || exit 1
            timeout 300 dl check-rank "$level" plain
        ) >said.$r 2>&1 9>&- &
        pids="$pids $!"
    done
    status=
    for pid in $pids; do
        wait "$pid"
        status="$status $?"
    done
    exec 9>&-
    wait $collector
    is "$(cat said.0 said.1)" "" "the ranks leave the output to the collector"
}
verdict () { # verdict SEVERITY: print the collector's findings of it in one line
    sed -n "s/^dl: check: $1: //p" verdict | tr '\n' ';'
}
ranks quick n1=FAKE_NCCL=22005 n2=FAKE_NCCL=22005
is "$status" " 0 0" "two good nodes"
is "$(sed -n 's/^\(dl: check: .*\) (.*/\1/p' verdict)" "dl: check: 2 nodes, 2 ranks, 4 GPUs: good" "a verdict"
is "$(verdict '[a-zBb]*')" "" "and prints nothing else"
row () { # row PATTERN: print the first columns of matching table lines, without those that differ between machines
    grep -E "^ *$1" verdict | awk '{ print $1, $2, $3, $5 }' | tr '\n' ';'
}
is "$(row '[01] ')" "0 n1 0 00000000:1B:00.0,00000000:1C:00.0;1 n2 0 00000000:1B:00.0,00000000:1C:00.0;" "each rank's node and devices"
ranks quick n1=FAKE_NCCL=22005 n2=FAKE_NCCL=2708
is "$status" " 75 75" "two versions of NCCL"
is "$(verdict '[a-z]*')" "n2: NCCL 2.7.8, but 2.20.5 on 1 of 2 nodes;" "are reported"
ranks quick n1=FAKE_FAULTS=n1:ecc:0
is "$status" " 79 75" "a bad node and a good one"
is "$(verdict bad)" "n1: GPU 00000000:1B:00.0: 3 uncorrected ECC errors since its driver was loaded;" "is reported"
ranks none n1=FAKE_FAULTS=n1:ecc:0 n1=FAKE_NCCL=22005 n2=FAKE_NCCL=2708
is "$status" " 0 0" "a table only, without a check"
is "$(grep -c '^dl:' verdict) $(grep -c '^[01] ' verdict)" "0 2" "lists the ranks, and nothing else"
DL_ATTEMPT_DIR=$work ranks quick n2=FAKE_FAULTS=n2:ecc:0
is "$(cat bad-nodes)" n2 "the launcher reads which node was bad"

# ---- how many GPUs to expect; the stand-in has 2
has () { # has STATUS PATTERN [VARIABLE=VALUE]... -- [OPTION]...: dl check with them
    wanted=$1
    pattern=$2
    shift 2
    vars=
    while [ "$1" != -- ]; do
        vars="$vars $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    out=$(env $vars timeout 300 dl check "$@" 2>&1)
    is $? "$wanted" "GPUs expected:$vars $*: status"
    like "$out" "$pattern" "and the finding"
}
more=$(dl check | sed -n 's/.* \([0-9]*\) GPUs.*/\1/p')
has 0 good -- "--gpus=$more"
has 79 "GPUs: $((more + 1)) expected \(by --gpus\), but the driver has $more" -- "--gpus=$((more + 1))"
has 0 good SLURM_JOB_GPUS=0,1,2,3,4 -- --gpus=0
has 79 'GPUs: Slurm allocated 9, but the driver has [0-9]+ of them' SLURM_JOB_GPUS=0,1,2,3,4,5,6,7,8 --
mkdir slurm
node=$(hostname | cut -d. -f1)
printf 'NodeName=x1 Gres=gpu:1\nNodeName=x[2-3],%s CPUs=4 Gres=gpu:a100:8(S:0-1),shard:16\n' "$node" >slurm/slurm.conf
has 79 'GPUs: 8 expected \(by slurm.conf\), but the driver has ' "SLURM_CONF=$PWD/slurm/slurm.conf" --
has 79 'GPUs: Slurm allocated 9, ' "SLURM_CONF=$PWD/slurm/slurm.conf" SLURM_JOB_ID=1 SLURM_GPUS_ON_NODE=9 --
has 0 good "SLURM_CONF=$PWD/slurm/slurm.conf" SLURM_JOB_ID=1 SLURMD_NODENAME=x1 --
has 0 good "SLURM_CONF=$PWD/slurm/slurm.conf" SLURMD_NODENAME=x1 --
printf 'NodeName=%s CPUs=4\n' "$node" >slurm/slurm.conf
printf 'AutoDetect=off\nNodeName=x1 Name=gpu File=/dev/nvidia0\nNodeName=x2,%s Name=gpu File=/dev/nvidia[0-6]\n' "$node" >slurm/gres.conf
has 79 'GPUs: 7 expected \(by gres.conf\)' "SLURM_CONF=$PWD/slurm/slurm.conf" --
printf 'NodeName=DEFAULT Gres=gpu:5\nInclude nodes.conf\n' >slurm/slurm.conf
printf 'NodeName = x1,%s CPUs=4 \\\n RealMemory=1 # Gres=gpu:9\n' "$(echo "$node" | tr a-z A-Z)" >slurm/nodes.conf
has 79 'GPUs: 5 expected \(by slurm.conf\)' "SLURM_CONF=$PWD/slurm/slurm.conf" --
printf 'NodeName=c[1-3] NodeHostname=x1,%s,x2 Gres="gpu:4"\n' "$node" >slurm/nodes.conf
has 79 'GPUs: 4 expected \(by slurm.conf\)' "SLURM_CONF=$PWD/slurm/slurm.conf" --
printf 'NodeName=c[1-3] NodeHostname=x1,%s,x2\n' "$node" >slurm/nodes.conf
sed -i s/:5/:0/ slurm/slurm.conf
printf 'NodeName=c1 Name=gpu File=/dev/nvidia[0-8]\nNodeName=c2 Name=GPU File=/dev/nvidia0,/dev/nvidia1\nNodeName=c2 Name=gpu Type=v100 File=/dev/nvidia2\n' >slurm/gres.conf
has 79 'GPUs: 3 expected \(by gres.conf\)' "SLURM_CONF=$PWD/slurm/slurm.conf" --
rm slurm/gres.conf
mkdir slurm/bin
printf '#!/bin/sh\n[ "$*" = "--oneliner show node x9" ] && echo "NodeName=x9 CPUTot=4 Gres=gpu:6(S:0) State=IDLE"\n' >slurm/bin/scontrol
chmod +x slurm/bin/scontrol
has 79 'GPUs: 6 expected \(by scontrol show node\)' "SLURM_CONF=$PWD/slurm/slurm.conf" SLURMD_NODENAME=x9 "PATH=$PWD/slurm/bin:$PATH" --

# ---- hardware that this machine lacks, simulated with mounts in a namespace
if unshare -Urm sh -c 'mount -t tmpfs none /sys/class && mount -t tmpfs none /proc/driver' 2>/dev/null; then
    machine () { # machine SCRIPT: run dl check in a namespace that SCRIPT prepared
        out=$(unshare -Urm sh -c "$1"'
exec timeout 300 dl check' 2>&1)
        status=$?
    }
    without='mount -t tmpfs none /sys/bus/pci/devices
mkdir /sys/bus/pci/devices/1
echo 0x10de >/sys/bus/pci/devices/1/vendor
echo 0x030200 >/sys/bus/pci/devices/1/class'
    export SLURM_GPUS_ON_NODE=1
    for fault in "mute the driver does not answer (NVML error 999)" "unloaded the NVIDIA driver is not loaded (NVML error 9)"; do
        export FAKE_FAULTS="here:${fault%% *}:0"
        machine "$without"
        is "$status $(echo "$out" | sed -n 's/^dl: check: bad: [^ ]* //p')" "79 GPUs: ${fault#* }" "a GPU whose driver is ${fault%% *}"
        machine "$without
echo 0x1002 >/sys/bus/pci/devices/1/vendor"
        is $status 0 "GPUs of another vendor"
        machine "$without
echo 0x020000 >/sys/bus/pci/devices/1/class"
        is "$status $(echo "$out" | sed -n 's/^dl: check: bad: [^ ]* //p')" "79 GPUs: 1 expected (by Slurm), but cannot check any: ${fault#* }" "a baseboard that is off"
        unset SLURM_GPUS_ON_NODE
        machine "$without"
        is "$status $(echo "$out" | sed -n 's/^dl: check: bad: [^ ]* //p' | cut -c1-30)" "79 GPUs: found NVIDIA GPUs, but c" "outside a job"
        export SLURM_GPUS_ON_NODE=1
    done
    unset FAKE_FAULTS
    machine "$without; LD_LIBRARY_PATH=/none; export LD_LIBRARY_PATH"
    is "$status $(echo "$out" | grep -c 'bad: .*GPUs: the NVIDIA driver is not loaded, and libnvidia-ml')" "79 1" "neither driver nor library"
    unset SLURM_GPUS_ON_NODE
    loaded='mount -t tmpfs none /proc/driver
mkdir /proc/driver/nvidia
touch /proc/driver/nvidia/version'
    machine "$loaded; LD_LIBRARY_PATH=/none; export LD_LIBRARY_PATH"
    like "$status $out" 'warning: .*GPUs: not checked: no libnvidia-ml' "a driver without its library"
    printf '%s\n' 'NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off' 'NVRM: Xid (PCI:0000:1c:00): 13, a mistake of a program' \
        'NVRM: Xid (PCI:0000:1d:00): 48, pid=1' 'NVRM: Xid (PCI:nonsense): 79' >kernel
    export FAKE_KERNEL_LOG="$work/kernel"
    machine "$loaded; LD_PRELOAD=$libs/nvml.so; export LD_PRELOAD"
    is "$(echo "$out" | sed -n 's/^dl: check: warning: [^ ]* \(GPU.*Xid\)/\1/p' | tr '\n' ';')" \
        "GPU 0000:1b:00: Xid 79 in the kernel's log since boot;GPU 0000:1d:00: Xid 48 in the kernel's log since boot;" \
        "faults of the hardware in the kernel's log"
    FAKE_KERNEL_LOG=none machine "$loaded; LD_PRELOAD=$libs/nvml.so; export LD_PRELOAD"
    like "$out" "note: .*Xid events not checked: users cannot read the kernel's log" "a log that cannot be read"
    unset FAKE_KERNEL_LOG
    amd='mount -t tmpfs none /sys/class
for d in card1 card2 card1-DP-1; do
    mkdir -p /sys/class/drm/$d/device/ras
    echo 0x1002 >/sys/class/drm/$d/device/vendor
    echo 10 >/sys/class/drm/$d/device/gpu_busy_percent
    printf "ue: 2\nce: 9\n" >/sys/class/drm/card1/device/ras/umc_err_count
    printf "ue: 3\nce: 9\n" >/sys/class/drm/card1/device/ras/gfx_err_count
    printf "ue: 0\nce: 9\n" >/sys/class/drm/$d/device/ras/sdma_err_count
done'
    machine "$amd"
    is "$status $(echo "$out" | sed -n 's/^dl: check: bad: [^ ]* \(card\)/\1/p' | tr '\n' ';')" "79 card1: 5 uncorrected memory errors;" "an AMD GPU with errors"
    machine "$amd
echo 11 >/sys/class/drm/card2/device/gpu_busy_percent
echo 0x8086 >/sys/class/drm/card1/device/vendor"
    is "$status $(echo "$out" | sed -n 's/^dl: check: [a-z]*: [^ ]* \(card\)/\1/p' | tr '\n' ';')" "0 card2: it is busy;" "a busy one, beside one of another vendor"
    net='mount -t tmpfs none /sys/class
for p in mlx5_0:4 mlx5_1:1; do
    d=/sys/class/infiniband/${p%:*}
    mkdir -p $d/ports/1 $d/device
    echo "${p#*:}: X" >$d/ports/1/state
    echo InfiniBand >$d/ports/1/link_layer
    echo "400 Gb/sec (4X NDR)" >$d/ports/1/rate
done'
    machine "$net"
    is "$status $(echo "$out" | sed -n 's/^dl: check: warning: [^ ]* \(network.*\)/\1/p' | tr '\n' ';')" "0 network: mlx5_1 port 1 is unused: down;" "a port that is down"
    machine 'printf "MemTotal: 4096000 kB\nMemFree: 1 kB\nMemAvailable: 203776 kB\n" >meminfo; mount --bind meminfo /proc/meminfo'
    like "$out" 'warning: .*memory: only 199 of 4000 MiB free$' "little memory"
    machine 'printf "MemTotal: 4096000 kB\nMemFree: 1 kB\nMemAvailable: 204800 kB\n" >meminfo; mount --bind meminfo /proc/meminfo'
    is "$(echo "$out" | grep -c 'MiB free')" 0 "a twentieth is enough"
    machine 'mount -t tmpfs -o size=511m none /dev/shm'
    like "$out" 'warning: .*/dev/shm: only 511 MiB free; NCCL and data loaders need it$' "little shared memory"
    machine 'mount -t tmpfs -o size=31m none /dev/shm'
    like "$status $out" '^dl: check: bad: .*/dev/shm: only 31 MiB free' "almost none is bad"
    is $status 79 "and no rank starts there"
    machine 'mount -t tmpfs -o size=512m none /dev/shm'
    is "$(echo "$out" | grep -c 'MiB free')" 0 "enough shared memory"
    for size in "size=99m only 99 MiB left in" "nr_inodes=100 only 99 more files fit into"; do
        machine "mkdir -p small; mount -t tmpfs -o ${size%% *} none small; TMPDIR=$work/small; export TMPDIR"
        like "$status $out" "warning: .*TMPDIR: ${size#* } $work/small\$" "a small TMPDIR: ${size%% *}"
    done
    machine "mkdir -p small; mount -t tmpfs -o size=100m,nr_inodes=101 none small; TMPDIR=$work/small; export TMPDIR"
    is "$status $(echo "$out" | grep -c TMPDIR)" "0 0" "a TMPDIR that is large enough"
else
    skip "a simulated machine" "no name spaces for users"
fi

# ---- full
# The stand-in's GPUs are memory of this machine, and dl check times them, so other processes disturb it: one of five runs must pass.
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
for f in "cuda:0 GPU 0000:1b:00.0: cannot compute \(CUDA error 999\)" "flip:1 GPU 0000:1c:00.0: its memory returns wrong data" \
    "late:1 GPU 0000:1c:00.0: cannot multiply matrices \(CUDA error 700\)"; do
    out=$(CUDA_VISIBLE_DEVICES=0,1 FAKE_FAULTS=here:${f%% *},here:full:0 timeout 300 dl check --full)
    is $? 79 "--full: ${f%% *}"
    like "$out" "${f#* }" "is reported"
done
like "$out" 'note: .*GPU 0000:1b:00.0: rates not measured: too little free memory' "where little is free, nothing is measured"
is "$(echo "$out" | grep -c "half of the nodes")" 0 "nor reported as slow"
for _ in 1 2 3 4 5; do
    out=$(CUDA_VISIBLE_DEVICES=0,1 FAKE_FAULTS=here:pcie:1,here:product:1,here:blas:0 timeout 300 dl check --full)
    status=$?
    case $out in *"half of the nodes"*) break ;; esac
done
is $status 79 "--full: a GPU with slow copies that cannot multiply"
like "$out" 'bad: .*host to GPU 0000:1c:00.0: [0-9.]+ GB/s, half of the nodes have' "the slow copies are reported"
like "$out" 'bad: .*GPU 0000:1c:00.0: cannot multiply matrices \(cuBLAS error 13\)' "and the failed product"
like "$out" 'note: .*GPU 0000:1b:00.0: matrix products not measured \(cuBLAS error 3\)' "a lack of memory is not a fault"

# ---- file systems
mkdir full
if private=$(private_mounts); then
    with_full () { # with_full COMMAND: run it with 'full' as a full disk
        $private sh -c 'mount -t tmpfs -o size=64k tmpfs full && head -c 65536 /dev/zero >full/file && eval "$0"' "$1"
    }
    out=$(with_full 'TMPDIR=$PWD/full timeout 300 dl check')
    is $? 79 "a full TMPDIR"
    like "$out" 'bad: .*TMPDIR: cannot write in .*/full: No space left' "is reported"
    out=$(with_full 'cd full && timeout 300 dl check')
    is $? 75 "a full working directory is not the node's fault alone"
else
    skip "full disk" "no mounts of one's own"
fi
touch plain
for bad in nowhere plain; do
    out=$(TMPDIR=$work/$bad timeout 300 dl check)
    is $? 0 "a user's invalid TMPDIR does not make a node bad: $bad"
    like "$out" "warning: .*TMPDIR: cannot write in .*/$bad: N" "and is reported"
done

# ---- a driver that hangs does not block dl check
ended hang
is $? 79 "hang:1: status 79"
like "$(cat hang.out)" 'GPUs: no answer for 8 s at GPU number 1' "hang:1 is reported"

# ---- no collector answers
out=$(SLURM_DL_GATHER='1 token' SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 timeout 300 dl check-rank quick plain 2>&1)
is $? 0 "without its collector a good node continues"
like "$out" '^dl: check: rank 0 on [^ ]+ cannot reach the collector at 127\.0\.0\.1 port 1: Connection refused; it checks only its own node$' "and says so"
is "$(echo "$out" | wc -l)" 1 "in one line"
echo "$out" | sed 's/^/# /'
out=$(FAKE_FAULTS=here:ecc:0 SLURM_DL_GATHER='1 token' SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 timeout 300 dl check-rank quick plain 2>&1)
is $? 79 "a bad node does not"

# ---- a damaged notice of rank 0
mkdir -m 700 home home/.slurm-dl
(umask 077 && echo nonsense >home/.slurm-dl/77.0.0.check)
out=$(HOME=$work/home SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 timeout 300 dl check 2>&1)
like "$out" '^dl: check: each node is checked alone: ~/\.slurm-dl/77\.0\.0\.check: not the address of a collector$' "a damaged notice is named"
done_testing
