#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --dl-monitor and dl monitor in a real Slurm. tests/launcher/monitor.t tests the monitor without Slurm.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/launcher/samples.sh"
need_cluster
export PATH="$builddir/launcher:$PATH"
cluster_up monitor --nodes=2 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl"

# ---- two nodes: one rank burns CPU time, one sleeps, one reads and writes, one fails
cat >ranks.sh <<'END'
case $SLURM_PROCID in
0) sh -c 'ulimit -t 2; while :; do :; done'; while [ ! -e seen ]; do :; done ;;
1) until [ -e seen ]; do sleep 0.5; done; sleep 3 ;;
2) until [ -e seen ]; do dd if=/dev/zero of=big bs=1M count=40 2>/dev/null; cat big >/dev/null; sleep 0.5; done ;;
3) until [ -e seen ]; do sleep 0.5; done; exit 5 ;;
esac
exit 0
END
timeout 300 srun --dl-monitor=1 -N2 -n4 -m block --ntasks-per-node=2 sh ranks.sh 2>err &
waiter=$!
wait_for 300 sh -c 'dl monitor | grep -q "^4 ranks"'
sleep 3
touch seen
wait $waiter
is $? 5 "the job's exit status is that of the tasks"
wait_for 300 no_monitors
ok $? "no monitor is left"
like "$(cat err)" '^dl: 4 ranks on 2 nodes, [0-9.m]+s: a rank kept 0\.[0-9] of 1 core busy; node memory .* of .*; read [0-9.]+ [KM]iB/s' "srun ends with a line about the step"
set -- dl-monitor-*.0
f1=$1/n1.h5 f2=$1/n2.h5
evaluates "$(last "$f1" rank/0/cpu_user) + $(last "$f1" rank/0/cpu_system) > 0.6" "the rank that burns has CPU time"
evaluates "$(last "$f1" rank/1/cpu_user) < 0.5" "the one that sleeps has none"
evaluates "0 < $(most "$f1" rank/0/busiest) < 3" "its busiest process"
evaluates "$(last "$f2" rank/2/write) > 60e6" "the rank that writes has written"
evaluates "$(last "$f2" rank/2/read) > 60e6" "and read"
evaluates "$(last "$f1" rank/1/read) < 1e6" "the sleeping one has not"
is "$(last "$f1" rank/2/read)$(last "$f2" rank/0/read)" nonenone "each node has only its own ranks"
is "$(last "$f2" rank/2/processes rank/3/processes)" "0.0 0.0" "the end of the ranks is in the file"
evaluates "$(most "$f1" rank/0/processes) >= 2" "the processes below a rank count"
evaluates "$(most "$f1" node/memory_size) > $(most "$f1" node/memory) > 0" "the node's memory"
out=$(dl monitor)
is "$(echo "$out" | awk '$1 ~ /^[0-3]$/ { print $1, $2 }' | tr '\n' ';')" "0 n1;1 n1;2 n2;3 n2;" "dl monitor: a line for each rank"
job=${1#dl-monitor-}
for what in "${job%.0}" "$job" "$1" "./$1"; do
    is "$(dl monitor "$what")" "$out" "dl monitor $what"
done
dl monitor --json | /usr/bin/python3 -c 'import json, sys
u = json.load(sys.stdin)
r = u["ranks"]
assert [x["rank"] for x in r] == [0, 1, 2, 3] and all(x["ended"] for x in r)
assert r[0]["cores"] > r[1]["cores"]
assert r[2]["write"] > 5e5 and r[3]["seconds"] < r[1]["seconds"]
assert r[0]["gpu_busy"] is None and r[0]["cores_given"] == 1
assert [n["node"] for n in u["nodes"]] == ["n1", "n2"] and all(n["monitor"] < 0.2 and n["lost"] == 0 for n in u["nodes"])'
ok $? "--json has numbers"
dl monitor 987654 2>err
is $? 3 "an unknown job is not found"
like "$(cat err)" '^dl: 987654: no monitored step of that job in ' "and that is reported"

# ---- dl top finds running steps with squeue, from any folder
mkdir nvml
cp "$builddir/tests/fakes/.libs/nvml.so" nvml/libnvidia-ml.so.1
printf '43 20000 81920 512.5 65 4 -\n3 8000 81920 200 55 20 -\n' >top.gpus
umask 002
FAKE_NVML=$work/top.gpus LD_LIBRARY_PATH=$work/nvml SLURM_STEP_GPUS=0-1 timeout 600 \
    srun --dl-monitor=1 -n1 -w n2 sh -c 'until [ -e top.go ]; do sleep 0.2; done' 2>err &
waiter=$!
umask 022
wait_for 300 sh -c 'cd / && dl top | grep -q " GiB "'
out=$(cd / && dl top)
like "$out" '^2 GPUs, busy 23 %, 1 below 10 %' "dl top: GPUs of a running job"
like "$out" '^[0-9]+\.0 .* n2 +0 +0 .* 43 % +19\.5 of 80 GiB +512 W' "with step, node and rank"
is "$(stat -c %a "dl-monitor-$(squeue -h -t R -o %i).0")" 755 "nobody else can write into a step's folder"
touch top.go
wait $waiter
wait_for 300 sh -c '[ -z "$(squeue -h -t R)" ]'
like "$(cd / && dl top 2>&1)" '^dl: none of your running jobs has monitored GPUs' "and no GPU after its end"

# A rank that runs until the monitor has samples of its step.
cat >live.sh <<'END'
until dl monitor "$SLURM_JOB_ID.$SLURM_STEP_ID" 2>/dev/null | grep -q '^[0-9]* rank'; do sleep 0.1; done
END

# ---- running steps: in a job script, from salloc, cancelled
cat >job.sh <<'END'
#!/bin/sh
#SBATCH --dl-monitor=1 -n2 -N1 --output=job.out
srun sh -c 'until [ -e go ]; do sleep 0.1; done'
mkdir -p below && cd below && srun sh -c '. ../live.sh; exit 3'
echo "status $?"
END
timeout 300 sbatch -W job.sh >out &
waiter=$!
wait_for 300 sh -c 'dl monitor "$(sed -n "s/.*job //p" out)" 2>/dev/null | grep -q "^2 ranks"'
ok $? "dl monitor while the job runs"
touch go
wait $waiter
is $? 0 "the job script's status"
is "$(grep -c '^dl: 2 ranks on 1 node' job.out)$(sed -n 's/^status //p' job.out)" 23 "each srun of a job script ends with its line, and its status"
job=$(sed -n 's/.*job //p' out)
[ -f "dl-monitor-$job.0/n1.h5" ] && [ -f "dl-monitor-$job.1/n1.h5" ]
ok $? "the files are below the folder of sbatch"
timeout 300 sbatch -W --dl-monitor=1 --output=plain.out --wrap 'sleep 2' >out
is "$(cat plain.out)$(ls -d "dl-monitor-$(sed 's/.*job //' out)".* 2>/dev/null)" "" "a job script itself is not sampled"
out=$(timeout 300 salloc -Q --dl-monitor=1 -n1 srun sh live.sh 2>&1)
is "$(echo "$out" | grep -c '^dl: 1 rank on 1 node')" 1 "an srun under salloc"
newest () { # print the folder of the newest step
    # shellcheck disable=SC2012
    ls -dt dl-monitor-* | head -1
}
sampled () { # sampled RANKS: whether a step newer than $before has samples of that many ranks
    [ "$(newest)" != "$before" ] && dl monitor "$(newest)" | grep -q "^$1 rank"
}
before=$(newest)
timeout 300 srun --dl-monitor=1 -n2 -N2 --job-name=cancelled sleep 280 2>err &
waiter=$!
wait_for 300 sampled 2
scancel --name=cancelled
wait_for 300 no_monitors
ok $? "monitors end with a cancelled step"
wait $waiter
like "$(cat err)" '^dl: 2 ranks on 2 nodes' "and there is a summary"
rm go
before=$(newest)
timeout 300 srun --dl-monitor=1 -n1 sh -c 'until [ -e go ]; do sleep 0.1; done' 2>err &
waiter=$!
wait_for 300 sampled 1
pids=$(monitors)
for s in TERM INT USR1 USR2 HUP; do
    for p in $pids; do
        kill -$s "$p"
    done
done
sleep 0.5
is "$(monitors)" "$pids" "signals for tasks do not end it"
touch go
wait $waiter
timeout 300 srun --dl-monitor -n1 true 2>err
is "$?$(cat err)" 0 "a step too short for a sample prints nothing"

# ---- idle GPUs: the step ends, the job script continues
cat >idle.sh <<'END'
#!/bin/sh
#SBATCH -n1 -N1 --output=idle.out
srun --dl-monitor=1,idle:1,park sleep 1000
echo "status $?"
END
printf '0 20000 81920 70 30 0 -\n0 8000 81920 70 30 0 -\n' >idle.gpus
FAKE_NVML=$work/idle.gpus LD_LIBRARY_PATH=$work/nvml SLURM_STEP_GPUS=0-1 timeout 600 sbatch -W idle.sh >out
is "$?$(sed -n 's/^status //p' idle.out)" 0143 "all GPUs are idle: the step gets SIGTERM, and the job script continues"
like "$(cat idle.out)" '^dl: GPUs 0, 1 of n. have been idle since [0-9:]*, for 1 min$' "its standard error says since when"
like "$(cat idle.out)" '^dl: all GPUs of the step are idle: its ranks get SIGTERM$' "and what dl does"
like "$(cat idle.out)" '^dl: GPU 0 of n. was idle at the end, for 1m00s or more$' "the summary, too"

# ---- in an experiment the attempt parks, and the trial continues in a new allocation
cat >idle.conf <<END
name = "idle";
entrypoint = "sh -c 'test -e $work/idle.go || { trap \\"exit 0\\" TERM; sleep 1000 & wait; }; test \$SLURM_PROCID != 0 || dl log loss=1 --step=1'";
searcher = { name = "single"; metric = "loss"; max_length = 1; };
resources = { ranks_per_node = 2; monitor = "1,idle:1,park"; };
END
# beside it some of one rank: a trial, two side by side in one job, one in a batch script, and a step of a flow
cat >alone.sh <<'END'
trap 'exit 0' TERM
test -e "$1/idle.go" || { sleep 1000 & wait; }
dl log loss=1 --step=1
exit 0
END
cat >alone.conf <<END
name = "alone";
entrypoint = "sh $work/alone.sh $work";
searcher = { name = "single"; metric = "loss"; max_length = 1; };
resources = { monitor = "1,idle:1,park"; };
END
sed 's/alone";$/lanes";/; s/"single";/"random"; max_trials = 2;/; s/monitor/workers = 2; trials_per_task = 2; monitor/' alone.conf >lanes.conf
cat >steps.conf <<END
name = "steps";
steps = { one = { entrypoint = "sh $work/alone.sh $work"; resources = { monitor = "1,idle:1,park"; }; }; };
END
cat >batch.sh <<END
#!/bin/sh
exec dl job --dir="$work" --name=batch --set=resources.monitor='"1,idle:1,park"' -- sh "$work/alone.sh" "$work"
END
with_gpus () { HOME=$work FAKE_NVML=$work/idle.gpus LD_LIBRARY_PATH=$work/nvml "$@" >>out 2>&1; }
with_gpus dl run --detach alone.conf && with_gpus dl run --detach lanes.conf && with_gpus dl flow run steps.conf &&
    with_gpus sbatch --requeue --open-mode=append --output=batch.out batch.sh && with_gpus dl run --detach idle.conf
ok $? "all are submitted"
parked () { grep -qs 'says park' idle-0001/trials/0001/a.1/healing; }
wait_for 600 parked
is_idle () { find "$1-0001/log" -type f -exec cat {} + 2>/dev/null | grep -q '"op": *"park".*"cause": *"IdleGpus"'; }
for name in alone lanes steps batch; do
    wait_for 600 is_idle $name
    ok $? "$name: parks, too"
done
touch idle.go
timeout 600 dl wait idle >out 2>&1
is $? 0 "an experiment with park ends"
like "$(find idle-0001/log -type f -exec cat {} +)" '"op": *"park".*"cause": *"IdleGpus"' "after an attempt that parked for idle GPUs"
like "$(cat idle-0001/trials/0001/a.1/log)" 'all GPUs were idle for 1 min, and --dl-monitor says park' "as its log says"
is "$(ls -d idle-0001/trials/0001/a.* | wc -l)" 2 "and one more"
for name in alone lanes batch; do
    timeout 600 dl wait $name >out 2>&1
    is "$? $(ls -d $name-0001/trials/0001/a.[0-9] | wc -l)" "0 2" "$name: ends with its second attempt"
done
wait_for 600 sh -c 'dl flow show steps | grep -q "^one .* ok\|: completed"'
is "$(dl flow show steps | sed 1q) $(ls -d steps-0001/steps/one/0/a.[0-9] | wc -l)" "$work/steps-0001: completed 2" "steps: ends with its second attempt"

# ---- without --dl-monitor nothing changes
wait_for 300 no_monitors
timeout 300 srun -n1 sleep 1
monitors >out
is "$(cat out)" "" "without --dl-monitor nothing is started"
timeout 300 srun -n2 sh -c 'env | grep -c MONITOR' >out
is "$(tr '\n' ' ' <out)" "0 0 " "nor any variable set"
for value in 0 3601 -1 5s 1.5 99999 a; do
    timeout 300 srun --dl-monitor=$value true 2>err
    [ $? -ne 0 ] && grep -q "dl: --dl-monitor=$value: neither a number of seconds from 1 to 3600 nor off" err
    ok $? "--dl-monitor=$value is refused"
done
timeout 300 srun --dl-monitor=60,idle:1 true 2>err
[ $? -ne 0 ] && grep -q "dl: --dl-monitor=60,idle:1: a GPU that is idle for 1 min must be sampled each 30 s or more often" err
ok $? "too few samples to see an idle GPU are refused"
timeout 300 sbatch --dl-monitor=x job.sh 2>err
[ $? -ne 0 ]
ok $? "by sbatch, too"

# ---- folders that cannot be written
touch file
told='until grep -q "nothing is sampled" err; do sleep 0.1; done'
DL_MONITOR_DIR="$work/file" timeout 300 srun --dl-monitor=1 -N1 -n2 sh -c "$told" 2>err
is $? 0 "a folder that cannot be made: the job runs"
is "$(grep -c '^dl: --dl-monitor: .*file.*: Not a directory; nothing is sampled$' err)$(grep -c '^dl:' err)" 11 "and one line says so"
DL_MONITOR_DIR="$work/new/er" timeout 300 srun --dl-monitor=1 -n1 sh -c "$told" 2>err
like "$(cat err)" 'new/er/dl-monitor-.*: No such file or directory; nothing is sampled' "at most one folder is made above it"
DL_MONITOR_DIR="$work/new" timeout 300 srun --dl-monitor=1 -n1 sh live.sh 2>err
ls new/dl-monitor-*.0/n?.h5 >/dev/null
ok $? "DL_MONITOR_DIR"
wait_for 300 no_monitors
ok $? "no monitor is left"
done_testing
