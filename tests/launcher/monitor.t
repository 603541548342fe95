#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The monitor of a node, with ranks that this test starts: simulated GPUs, kills, full disks.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/launcher/samples.sh"
unset SLURM_CONF
mkdir nvml
cp "$builddir/tests/fakes/.libs/nvml.so" nvml/libnvidia-ml.so.1

# a job ID that no other test on this machine uses
id=$$
rank () { # rank N COMMAND...
    env MONITOR_TEST="$work" SLURM_JOB_ID=$id SLURM_STEP_ID=0 SLURM_PROCID="$1" SLURM_LOCALID="$1" SLURMD_NODENAME=m1 SLURM_CPUS_ON_NODE=2 \
        SLURM_GTIDS=0,1 sh -c 'export SLURM_TASK_PID=$$; echo $$ >"rank.$SLURM_PROCID"; exec "$@"' "$@"
}
sampler () { # sampler [ARGUMENT...]: run it in a subshell, because it calls exec; its task is rank 0
    exec env MONITOR_TEST="$work" DL_MONITOR_DIR="$PWD" SLURM_JOB_ID=$id SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_GTIDS=0,1 SLURMD_NODENAME=m1 SLURM_CPUS_ON_NODE=2 \
        SLURM_TASK_PID="$(cat rank.0)" "$@"
}
fresh () { # fresh: start two ranks
    rm -rf dl-monitor-$id.* rank.*
    rank 0 sleep 1000 &
    rank 1 sleep 1000 &
    wait_for 300 test -s rank.0 && wait_for 300 test -s rank.1
}
end_ranks () {
    # shellcheck disable=SC2046
    kill $(cat rank.0 rank.1)
}
samples () { # samples N: wait until the file $f has at least N samples
    HDF5_USE_FILE_LOCKING=FALSE timeout 300 /usr/bin/python3 read.py wait $f monitor/cpu "$1"
}
sample () { # sample N VARIABLE=VALUE... COMMAND...: run the monitor until it has N samples, then end the ranks
    wanted=$1
    shift
    (sampler "$@") 2>err &
    pid=$!
    samples "$wanted"
    end_ranks
    wait $pid
}
values () { # values FIELDS: print fields of the file 'last'
    cut -d ' ' -f "$1" last
}

# ---- the part that needs its own mounts
if [ "${1:-}" = full ]; then
    mkdir full && mount -t tmpfs -o size=256k none full || exit 1
    f=full/dl-monitor-$id.0/m1.h5
    fresh
    (sampler DL_MONITOR_DIR="$work/full" dl sample 1) 2>err &
    pid=$!
    samples 2
    cat /dev/zero >full/fill 2>/dev/null
    # The file's last page still has room for some samples, so wait until the monitor has woken three times and added no row.
    wakeups () { sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/$pid/status; }
    has_woken () { [ "$(wakeups)" -ge "$1" ]; }
    has_lost () { [ "$(last $f monitor/lost)" != none ]; }
    rows () { /usr/bin/python3 -c "import h5py; print(len(h5py.File('$f')['metrics']))"; }
    before=
    until [ "$before" = "$(rows)" ]; do
        before=$(rows)
        wait_for 300 has_woken $(($(wakeups) + 3)) || break
    done
    rm full/fill
    wait_for 300 has_lost
    ok $? "a disk that was full for a while: the file has the number of lost samples"
    # The last sample, written after the ranks have ended, must find room.
    end_ranks
    wait $pid
    is "$(last $f rank/0/processes)" 0.0 "and has the last sample"
    cat /dev/zero >full/fill 2>/dev/null
    rm -rf full/dl-monitor-*
    cat /dev/zero >full/fill2 2>/dev/null
    fresh
    (sampler DL_MONITOR_DIR="$work/full" dl sample 1 2>err)
    is "$?$(grep -c 'No space left on device; nothing is sampled' err)" 71 "a full disk: no monitor, and one line"
    end_ranks
    umount full
    done_testing
fi

# ---- killed at any moment
fresh
mkdir killed
for after in 0 0.01 0.02 0.03 0.05 0.08 0.1 0.2 0.4 0.8 1 1.05 1.1; do
    sampler dl sample 1 2>/dev/null &
    pid=$!
    # kill the later ones only once their file exists
    case $after in 0.[1-9]* | 1*) wait_for 300 test -s "dl-monitor-$id.0/m1.h5" ;; esac
    sleep $after
    kill -9 $pid
    wait $pid 2>/dev/null
    [ ! -f "dl-monitor-$id.0/m1.h5" ] || mv "dl-monitor-$id.0/m1.h5" killed/$after.h5
    rm -rf dl-monitor-$id.0
done
files=$(/usr/bin/python3 -c '
import h5py, sys
for path in sys.argv[1:]:
    with h5py.File(path) as f:
        f["metrics"][:], f["names"][:]
print(len(sys.argv) - 1)' killed/*.h5)
is $? 0 "13 monitors killed at different moments: h5py opens every file"
[ "$files" -ge 7 ]
ok $? "some files exist ($files)"
wait_for 300 no_monitors
ok $? "and their child processes are gone"
end_ranks

# ---- NVIDIA
f=dl-monitor-$id.0/m1.h5
fresh
cat >gpus <<END
43 20000 81920 512.5 65 4 $work/rank.0
12 8000 81920 200 55 20 $work/rank.1
0 0 81920 70 30 0 -
END
sample 8 FAKE_NVML=gpus LD_LIBRARY_PATH="$work/nvml" SLURM_STEP_GPUS=0-1 dl sample 1
is "$?" 0 "the monitor ends with its tasks"
last $f gpu/0/busy gpu/0/memory gpu/0/memory_size gpu/0/power gpu/0/temperature gpu/0/clock gpu/0/memory_clock gpu/0/capped gpu/0/hot gpu/1/capped gpu/1/hot \
    gpu/0/pcie_rx gpu/0/pcie_tx gpu/0/sm gpu/0/tensor gpu/2/busy rank/0/gpu/0 rank/1/gpu/1 rank/0/gpu/1 >last
is "$(values 1-3)" "43.0 20971520000.0 85899345920.0" "GPU 0: load and memory"
is "$(values 4-7)" "512.5 65.0 1980.0 2619.0" "GPU 0: power, heat, clocks"
is "$(values 8-11)" "1.0 0.0 0.0 1.0" "why their clocks are low"
is "$(values 12-15)" "7000000.0 3000000.0 10.75 none" "PCIe; SMs if the driver reports them"
is "$(values 16)" none "a GPU of another step is not sampled"
is "$(values 17-19)" "0.0 0.0 none" "which process uses which GPU"
out=$(dl monitor)
like "$out" '^ *1 m1 .* 1 +12% +7\.8 GiB$' "dl monitor prints GPUs"
like "$out" '^2 ranks on 1 node, .*: 2 GPUs were busy 28 % \(rank 1: 12 %\), their SMs 7 %, memory 20 GiB of 80 GiB, 356 W each; a rank kept 0\.0 of 1 core busy' "and the summary"
DL_MONITOR_DIR="$work" dl monitor --summary $id.0 2>err
like "$(cat err)" '^dl: 2 ranks on 1 node' "as srun prints it"
like "$(cat err)" '^dl: the GPUs waited, and cores, storage and network were not busy' "with advice"
like "$(cat err)" "^dl: rank 1 on m1: its GPU was much less busy than the others'" "that names the rank"
for what in hang crash; do
    fresh
    echo $what >gpus
    sample 2 FAKE_NVML=gpus LD_LIBRARY_PATH="$work/nvml" dl sample 1
    is "$(last $f gpu/0/busy rank/1/processes)" "none 0.0" "a driver that does $what: the rest is sampled"
    wait_for 300 no_monitors
    ok $? "and nothing is left"
done

# ---- GPUs that stay idle for a minute: four steps at once
step () { # step NAME JOB GPUS VARIABLE=VALUE...: start its ranks and its monitor in their own folder
    mkdir "$1" && cd "$1" || exit 1
    id=$2
    printf "$3" "$PWD" "$PWD" >gpus
    name=$1
    shift 3
    rank 0 sleep 1000 2>>err &
    rank 1 sleep 1000 2>>err &
    wait_for 300 test -s rank.0 && wait_for 300 test -s rank.1
    sampler DL_MONITOR_DIR="$PWD" FAKE_NVML="$PWD/gpus" LD_LIBRARY_PATH="$work/nvml" SLURM_STEP_GPUS=0-1 "$@" \
        dl sample 1,idle:1,park 2>said &
    echo $! >monitor
    cd "$work" && id=$$ || exit 1
}
idle='0 20000 81920 70 30 0 %s/rank.0\n0 8000 81920 70 30 0 %s/rank.1\n'
partly='43 20000 81920 500 65 0 %s/rank.0\n0 8000 81920 70 30 0 %s/rank.1\n'
step plain ${id}1 "$idle" SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1
step some ${id}2 "$partly" SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1
mkdir attempt
step trial ${id}3 "$idle" SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 DL_ATTEMPT_DIR="$work/attempt"
step nodes ${id}4 "$idle" SLURM_NODEID=0 SLURM_STEP_NUM_NODES=2
told () { grep -q 'idle since' "$1/err"; }
lives () { kill -0 "$(cat "$1/rank.0")" && kill -0 "$(cat "$1/rank.1")"; }
for name in plain some trial nodes; do
    wait_for 300 told $name
done
like "$(cat plain/err)" '^dl: GPUs 0, 1 of m1 \(ranks 0, 1\) have been idle since [0-9:]{8}, for 1 min$' "idle GPUs: one line, with node and ranks, on the step's standard error"
like "$(cat some/err)" '^dl: GPU 1 of m1 \(rank 1\) has been idle since [0-9:]{8}, for 1 min$' "one of two: only that one"
wait "$(cat plain/monitor)"
is "$?$(cat plain/said)" 0 "all GPUs are idle: the ranks end, and so does the monitor"
! lives plain 2>/dev/null
ok $? "by SIGTERM"
like "$(cat plain/err)" '^dl: all GPUs of the step are idle: its ranks get SIGTERM$' "which is reported"
is "$(last plain/dl-monitor-${id}1.0/m1.h5 gpu/0/idle gpu/1/idle)" "60.0 60.0" "the file says how long"
DL_MONITOR_DIR="$work/plain" dl monitor --summary ${id}1.0 2>err
like "$(cat err)" '^dl: GPU 1 of m1 was idle at the end, for 1m00s or more$' "and the summary"
is "$(ls plain/dl-monitor-${id}1.0)" "m1.h5
park" "no marker of an idle node is left"
wait_for 300 test -s attempt/idle
is "$(cat attempt/idle)" "all GPUs were idle for 1 min, and --dl-monitor says park" "in a trial its worker is notified"
lives trial
ok $? "which ends the ranks, not the monitor"
lives some && [ ! -e some/dl-monitor-${id}2.0/park ]
ok $? "nothing ends while one GPU works"
lives nodes && [ -e nodes/dl-monitor-${id}4.0/m1.idle ] && [ ! -e nodes/dl-monitor-${id}4.0/park ]
ok $? "nor while another node has reported nothing"
mark=nodes/dl-monitor-${id}4.0
echo 1 >$mark/m2.idle
# m1 reports every 33 s.  By its fifth report, m2's mark has not changed for longer than NFS caches.
wait_for 300 sh -c "[ \$(cat $mark/m1.idle) -ge 5 ]"
lives nodes && [ ! -e $mark/park ]
ok $? "nor if it reported only once, because its monitor may be gone"
echo 2 >$mark/m2.idle
wait "$(cat nodes/monitor)"
! lives nodes 2>/dev/null && [ -e $mark/park ]
ok $? "all nodes keep reporting that they are idle: the ranks end"
is "$(ls $mark)" "m1.h5
m2.idle
park" "and the node removes its marker"
for name in some trial; do
    # shellcheck disable=SC2046
    kill $(cat $name/rank.?)
    wait "$(cat $name/monitor)"
done

# ---- AMD, InfiniBand
fresh
for i in 0 2; do
    d=sys/class/drm/card$i/device
    mkdir -p "$d/hwmon/hwmon$((i + 3))"
    echo 0x1002 >$d/vendor
    echo $((i * 20 + 50)) >$d/gpu_busy_percent
    echo 68702699520 >$d/mem_info_vram_total
    echo 12884901888 >$d/mem_info_vram_used
    echo 305000000 >"$d/hwmon/hwmon$((i + 3))/power1_average"
    echo 61000 >"$d/hwmon/hwmon$((i + 3))/temp1_input"
    echo 1700000000 >"$d/hwmon/hwmon$((i + 3))/freq1_input"
done
mkdir -p sys/class/drm/card1/device sys/class/drm/card1-DP-1 sys/class/infiniband/mlx5_0/ports/1/counters
echo 0x1a03 >sys/class/drm/card1/device/vendor
echo "200 Gb/sec (4X HDR)" >sys/class/infiniband/mlx5_0/ports/1/rate
echo 1000 >sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data
echo 2000 >sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data
sample 3 dl sample 1 /proc "$work/sys"
last $f gpu/0/busy gpu/1/busy gpu/2/busy gpu/1/memory gpu/1/memory_size gpu/1/power gpu/1/temperature gpu/1/clock ib/mlx5_0/1/rx ib/mlx5_0/1/tx ib/mlx5_0/1/speed >last
is "$(values 1-3)" "50.0 90.0 none" "AMD's cards, in order"
is "$(values 4-8)" \
    "12884901888.0 68702699520.0 305.0 61.0 1700.0" "and their values from sysfs"
is "$(values 9-11)" "4000.0 8000.0 25000000000.0" "InfiniBand's counters are words of four bytes"

# ---- a full disk
if private=$(private_mounts); then
    $private sh "$srcdir/tests/launcher/monitor.t" full >full.out 2>&1
    is "$? $(grep -c '^ok' full.out)" "0 3" "a disk that is full for a while, or permanently"
    sed 's/^/# /' full.out
else
    skip "a full disk" "no mounts of one's own"
fi
wait_for 300 no_monitors
ok $? "no monitor is left"
done_testing
