#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl names a rank of an unmodified DDP training that is slowed down from outside, by its GPU or by its network, with the
# cause, and no rank before that.
. "$srcdir/tests/lib.sh"
need_cluster
. "$srcdir/tests/cluster/heal.sh"
cluster_up slow --nodes=1 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl"

cat >code/ddp.conf <<END
name = "ddp";
entrypoint = "/usr/bin/python3 healed.py --work $work --products 100 [--resume {resume_dir}/ckpt.pt]";
searcher = { name = "single"; metric = "loss"; max_length = 1000000; };
metrics = { pattern = [ "step={step} loss={loss}" ]; };
resources = { ranks_per_node = 4; framework = "torch"; };
END
dl run --detach code/ddp.conf >out 2>&1
is $? 0 "submitted"
begins ddp
wait_for 300 trains
ok $? "it trains"
steps () { # steps N: whether the log has N more steps than $had
    [ "$(grep -c '^step=' "$trial/a.1/log")" -ge $((had + $1)) ]
}
said () { # said REGEX
    grep -qE "$1" "$trial/a.1/healing" 2>/dev/null
}
# run for as many windows as dl needs to name a rank
had=$(grep -c '^step=' "$trial/a.1/log")
begin=$(date +%s)
long_enough () { [ $(($(date +%s) - begin)) -ge "${1:-60}" ] && steps 30; }
wait_for 600 long_enough
slow () { # print the lines that name a slow rank, except for busy cores, which other programs on this machine may cause
    grep ' is slow' "$trial/a.1/healing" 2>/dev/null | grep -v 'other processes run on its cores'
}
is "$(slow)" "" "a clean run: no rank is named"

# ---- slow a rank down: limit its cgroup, or, without permission for that, stop it again and again
group=/sys/fs/cgroup/cpu/dl-slow-$$
[ -e /sys/fs/cgroup/cgroup.subtree_control ] && group=/sys/fs/cgroup/dl-slow-$$
victim=$(of_rank 2 python3)
if mkdir "$group" 2>/dev/null && { echo 10000 >"$group/cpu.cfs_quota_us" || echo "10000 100000" >"$group/cpu.max"; } 2>/dev/null \
    && echo "$victim" >"$group/cgroup.procs"; then
    cause='the limit of its cgroup \(cpu\.max\) throttles it [0-9]+ % of the time'
    release () {
        echo "$victim" >"${group%/*}/cgroup.procs"
        rmdir "$group"
    }
else
    rmdir "$group" 2>/dev/null
    cause='it is stopped \(SIGSTOP\) [0-9]+ % of the time'
    (while [ ! -e released ] && kill -STOP "$victim" 2>/dev/null; do sleep 0.5; kill -CONT "$victim"; sleep 0.25; done) &
    release () { touch released; }
fi
begin=$(date +%s)
wait_for 300 said "^[0-9]+ rank 2 on n1 is slow, and the others wait for it: $cause\$"
ok $? "a slow rank is named, with the cause"
echo "# after $(($(date +%s) - begin)) s"
like "$(dl show ddp 1)" 'rank 2 on n1 is slow' "dl show reports it"
like "$(cat "$trial/a.1/log")" '^dl: rank 2 on n1 is slow' "and the log"
release
wait_for 300 said 'rank 2 on n1 is no longer slow$'
ok $? "its end is reported"
is "$(slow | wc -l)" 1 "one line, about one rank"
end ddp
is "$(causes ddp)" "" "during the first attempt"

# ---- a GPU that gets slow; the stand-in for NVML has one for each rank
mkdir nvml
ln -s "$builddir/tests/fakes/.libs/nvml.so" nvml/libnvidia-ml.so.1
gpus () { # gpus LINE...: what the GPUs read; of each LINE, reasons, clock (MHz), power limit (W) and lanes
    k=0
    for gpu; do
        # shellcheck disable=SC2086
        set -- $gpu
        echo "100 500 81920 400 50 $1 $work/gpu$k $2 $3 $4"
        k=$((k + 1))
    done >gpus.new
    mv gpus.new gpus
}
well="0 1980 700 16"
gpus "$well" "$well" "$well" "$well"
sed 's/"ddp"/"gpu"/' code/ddp.conf >code/gpu.conf
FAKE_NVML=$work/gpus LD_LIBRARY_PATH=$work/nvml dl run --detach code/gpu.conf >out 2>&1
is $? 0 "on GPUs: submitted"
begins gpu
wait_for 300 trains
ok $? "on GPUs: it trains"
for k in 0 1 2 3; do
    echo "$(of_rank $k python3) 90" >gpu$k
done
slow_hardware () { # print the lines that name a slow rank because of hardware
    grep ' is slow: ' "$trial/a.1/healing" 2>/dev/null
}
quiet () { # quiet NAME: run for longer than dl needs to name a rank, and check that it names none
    had=$(grep -c '^step=' "$trial/a.1/log")
    begin=$(date +%s)
    wait_for 600 long_enough 45
    is "$(slow_hardware)" "" "$1"
}
quiet "healthy GPUs: nobody is named"
gpus "4 1300 700 16" "4 1200 700 16" "4 1250 700 16" "4 1150 700 16"
quiet "all GPUs at their power limit: nobody is named"
gpus "1 345 700 16" "$well" "4 1300 700 16" "$well"
quiet "an idle GPU, and one that works more than the others: nobody is named"
named () { # named REGEX NAME GPU...: these GPUs make dl name rank 2
    regex=$1 name=$2
    shift 2
    gpus "$@"
    begin=$(date +%s)
    wait_for 300 said "$regex"
    ok $? "$name: its rank is named"
    echo "# after $(($(date +%s) - begin)) s"
    had=$(grep -c 'no longer slow' "$trial/a.1/healing")
    gpus "$well" "$well" "$well" "$well"
    sed -i 2d gpu2
    over () { [ "$(grep -c 'rank 2 on n1 is no longer slow$' "$trial/a.1/healing")" -gt "$had" ]; }
    wait_for 300 over
    ok $? "$name: its end is reported"
}
named '^[0-9]+ rank 2 on n1 is slow: its GPU 2 runs at 705 MHz, those of the others at 1980 MHz: thermal slowdown by its hardware$' \
    "a hot GPU" "$well" "$well" "48 705 700 16" "$well"
echo "$$ 40" >>gpu2
named "^[0-9]+ rank 2 on n1 is slow: another program \\(pid $$\\) uses its GPU 2 40 % of the time\$" \
    "a GPU with another program" "$well" "$well" "$well" "$well"
is "$(slow_hardware | wc -l)" 2 "two lines, about one rank"
like "$(dl show gpu 1)" 'rank 2 on n1 is slow: its GPU 2 runs at 705 MHz' "dl show reports it"
end gpu
is "$(causes gpu)" "" "during the first attempt"

# ---- a host whose link loses what it sends, at the switch
# Without netem, use classic BPF: load a random number, and drop the packet if it is below 2^32 / 16.
drop="4,32 0 0 4294963256,53 1 0 268435456,6 0 0 2,6 0 0 0"
lose () { # lose [both]: from now on, every sixteenth packet from n2 is lost, or also every sixteenth to n2
    if tc -n "$bridge-n2" qdisc add dev eth0 root netem loss 6% 2>/dev/null; then
        [ -z "$1" ] || tc qdisc add dev "$bridge.2" root netem loss 6%
    else
        tc qdisc add dev "$bridge.2" clsact 2>/dev/null &&
            tc filter add dev "$bridge.2" ingress bpf da bytecode "$drop" 2>/dev/null || return 1
        [ -z "$1" ] || tc filter add dev "$bridge.2" egress bpf da bytecode "$drop"
    fi
}
stop_losing () {
    tc -n "$bridge-n2" qdisc del dev eth0 root 2>/dev/null
    tc qdisc del dev "$bridge.2" root 2>/dev/null
    tc qdisc del dev "$bridge.2" clsact 2>/dev/null
}
lossy () { # lossy NAME [both]: lose packets, and check that rank 1, and only it, is named; stop that
    had=$(slow_hardware | wc -l)
    begin=$(date +%s)
    more () { slow_hardware | tail -n +$((had + 1)) | grep -qE "$resent"; }
    wait_for 300 more
    ok $? "$1: its rank is named"
    echo "# after $(($(date +%s) - begin)) s"
    well=$(grep -c 'no longer slow$' "$trial/a.1/healing")
    stop_losing
    over () { [ "$(grep -c 'rank 1 on n2 is no longer slow$' "$trial/a.1/healing")" -gt "$well" ]; }
    wait_for 300 over
    ok $? "$1: it is reported when that is over"
    is "$(slow_hardware | wc -l)" $((had + 1)) "$1: one line, of one rank"
}
network_cases () {
    cluster_down
    [ "$(id -u)" -eq 0 ] && try_cluster slownet --nodes=3 --cpus=2 --hosts --plugin="$PLUGIN dl=$builddir/launcher/dl" ||
        { skip "a host that loses packets" "no network namespaces here"; return; }
    bridge=mcb$(cat "${SLURM_CONF%/*}/place")
    cat >code/net.conf <<END
name = "net";
entrypoint = "/usr/bin/python3 healed.py --work $work --inputs 100000 [--resume {resume_dir}/ckpt.pt]";
searcher = { name = "single"; metric = "loss"; max_length = 1000000; };
metrics = { pattern = [ "step={step} loss={loss}" ]; };
resources = { nodes_per_trial = 3; framework = "torch"; };
END
    dl run --detach code/net.conf >out 2>&1
    is $? 0 "on hosts: submitted"
    begins net
    wait_for 300 trains
    ok $? "on hosts: it trains"
    quiet "healthy links: nobody is named"
    resent=' rank 1 on n2 is slow: n2 sends [0-9]+ % of its TCP segments again, the other hosts (none|[0-9.]+ %)$'
    lose || { skip "a host that loses packets" "tc knows neither netem nor bpf here"; end net; return; }
    lossy "a host whose packets are lost"
    lose both
    lossy "a host whose packets are lost both ways"
    sed 's/^/# /' "$trial/a.1/healing"
    end net
    is "$(causes net)" "" "during the first attempt"
}
network_cases
done_testing
