#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# resources.gpus_per_trial and slots_per_trial: shapes that the nodes allow, the earliest start, the user's choices,
# impossible requests, a log of another version.
. "$srcdir/tests/lib.sh"
unset DL_DIR SBATCH_PARTITION

mkdir bin
# a1 to a4 with 8 GPUs and 64 cores, b1 to b4 with 4 GPUs; b4 is in two partitions, c1 has no GPUs, f1 is FUTURE
program bin/scontrol <<'END'
echo "$*" >>scontrol.asked
case $* in *partition) cat partitions 2>/dev/null; exit ;; esac
[ ! -e silent ] || { echo "slurm_load_node error: Unable to contact slurm controller" >&2; exit 1; }
node () {
    echo "NodeName=$1 Arch=x86_64 CoresPerSocket=32 CPUAlloc=0 CPUTot=$2 CPULoad=0.1 AvailableFeatures=(null) Gres=$3 NodeAddr=$1 State=$4 ThreadsPerCore=1 Partitions=$5 BootTime=None Reason=a word Gres=gpu:99 "
}
for n in 1 2 3 4; do node a$n 64 'gpu:a100:8(S:0-1),lustre:2' IDLE big; done
for n in 1 2 3; do node b$n 16 'gpu:4' MIXED small; done
node b4 16 'gpu:v100:2(S:0,1),gpu:t4:2' IDLE+DRAIN small,mixed
node c1 64 '(null)' IDLE cpu
node f1 64 gpu:16 FUTURE big
END
# The file "starts" has lines "PATTERN SECONDS": when a job that matches would start; "none" means never.
program bin/sbatch <<'END'
echo "$*" >>asked
case " $* " in *" --test-only "*) ;; *) echo 7; exit ;; esac
while read -r pattern seconds; do
    case " $* " in *$pattern*) break ;; esac
done <starts
[ "$seconds" != none ] || { echo "allocation failure: Requested node configuration is not available" >&2; exit 1; }
partition=$(cat default 2>/dev/null || echo big)
case "$*" in *--partition=*) partition=${*#*--partition=} partition=${partition%% *} ;; esac
echo "sbatch: Job 12 to start at $(date -d "@$(($(date +%s) + seconds))" +%Y-%m-%dT%H:%M:%S) using 4 processors on nodes n1 in partition $partition" >&2
END
PATH=$work/bin:$PATH
conf () { # conf RESOURCES
    cat >g.conf <<END
name = "g"; entrypoint = "true {x}";
searcher = { name = "random"; metric = "loss"; max_trials = 2; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { $1 };
END
}
run () { # run ARGUMENT...: 'out' gets dl's messages, 'asked' the arguments of sbatch
    rm -rf g-0001 asked scontrol.asked
    timeout 300 dl run --detach "$@" g.conf >dir 2>out
    status=$?
}
shape () { # shape: print the resources of the submitted array
    grep -v -e --test-only asked | grep -o -E -e '--(nodes|ntasks|ntasks-per-node|gpus-per-node|partition)=[^ ]*' | tr '\n' ' '
}

# ---- shapes
echo '* 0' >starts
conf 'gpus_per_trial = 16;'
run
is $status 0 "16 GPUs"
is "$(shape)" "--nodes=2 --ntasks=16 --ntasks-per-node=8 --gpus-per-node=8 --partition=big " "the fewest nodes on which all would start at once"
is "$(cat out)" "dl: 16 GPUs: 2 nodes with 8 GPUs and 8 ranks each, in partition big; a job would start now" "a line says which"
is "$(cat scontrol.asked)" "--oneliner show node
--oneliner show partition" "scontrol is called once for the nodes, and once for the partitions"
like "$(tr -d ' \n' <g-0001/experiment.conf)" 'gpus_per_trial=16;.*nodes_per_trial=2;.*gpus_per_node=8;.*ranks_per_node=8;.*partition="big"' "the experiment has it"
echo small >default
run
is "$(shape)" "--nodes=4 --ntasks=16 --ntasks-per-node=4 --gpus-per-node=4 --partition=small " "of two that start together the default partition"
rm default
printf '%s\n' '--partition=big 7200' '--partition=small 600' '* none' >starts
run
is "$(shape)" "--nodes=4 --ntasks=16 --ntasks-per-node=4 --gpus-per-node=4 --partition=small " "the partition where it starts first"
like "$(cat out)" '4 nodes with 4 GPUs and 4 ranks each, in partition small; a job would start at 20[-0-9T:]* \(in (10m|9m5.s)' "and when"
is "$(grep -c preempt out)" 0 "no other jobs preempt there"
for tier in 1 50; do
    echo "PartitionName=small AllowGroups=ALL Nodes=b[1-4] PriorityJobFactor=1 PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=mixed AllowGroups=ALL Nodes=b4 PriorityJobFactor=1 PriorityTier=$tier PreemptMode=OFF State=UP
PartitionName=big AllowGroups=ALL Nodes=a[1-4] PriorityJobFactor=1 PriorityTier=99 PreemptMode=OFF State=UP" >partitions
    run
    like "$(cat out)" 'in partition small; a job would start at [^;]*'"$([ $tier = 1 ] || echo '; jobs of partition mixed preempt those of small .PreemptMode=REQUEUE.: resources.partition chooses another one')$" "a partition of tier $tier on the same nodes"
done
rm partitions
printf '%s\n' '--nodes=2 none' '--nodes=4 300' '* none' >starts
conf 'gpus_per_trial = 16; partition = "big";'
run
is "$(shape)" "--nodes=4 --ntasks=16 --ntasks-per-node=4 --gpus-per-node=4 --partition=big " "a shape that Slurm accepts, in the user's partition"
is "$(grep -c -e --partition=small asked)" 0 "no other one is tried"
echo '* 0' >starts

# ---- dl keeps the user's choices
conf 'gpus_per_trial = 8; nodes_per_trial = 4;'
run
is "$(shape)" "--nodes=4 --ntasks=8 --ntasks-per-node=2 --gpus-per-node=2 --partition=big " "nodes"
conf 'gpus_per_trial = 8; gpus_per_node = 4; ranks_per_node = 1;'
run
is "$(shape)" "--nodes=2 --ntasks=2 --ntasks-per-node=1 --gpus-per-node=4 --partition=big " "GPUs on each node, and ranks"
for chosen in '"-p", "small"' '"-psmall"' '"--partition=small"' '"--partition", "small"'; do
    conf "gpus_per_trial = 4; sbatch_args = [$chosen];"
    run
    is "$(shape | sed 's/--partition=small //')" "--nodes=1 --ntasks=4 --ntasks-per-node=4 --gpus-per-node=4 " "a partition in sbatch_args: $chosen"
    is "$(grep -c -e --partition=big asked)" 0 "no other one is tried"
done
conf 'gpus_per_trial = 4;'
export SBATCH_PARTITION=small
run
is "$(shape)" "--nodes=1 --ntasks=4 --ntasks-per-node=4 --gpus-per-node=4 " "and in the environment"
unset SBATCH_PARTITION
conf 'gpus_per_trial = 8; nodes_per_trial = 2; gpus_per_node = 4;'
run
is "$status $(cat scontrol.asked) $(grep -c -e --test-only asked)" "0 --oneliner show partition 0" "everything is given: only the partition's size is queried"
conf 'gpus_per_trial = 8; cpus_per_trial = 9;'
run
is "$(shape)" "--nodes=2 --ntasks=8 --ntasks-per-node=4 --gpus-per-node=4 --partition=big " "ranks need cores"
conf 'gpus_per_trial = 1;'
run
is "$(shape)" "--nodes=1 --ntasks=1 --ntasks-per-node=1 --gpus-per-node=1 --partition=big " "one GPU"
conf 'gpus_per_trial = 8;'
run --set resources.gpus_per_trial=4
is "$(shape)" "--nodes=1 --ntasks=4 --ntasks-per-node=4 --gpus-per-node=4 --partition=big " "--set"

# ---- slots_per_trial: as many GPUs, but one process on each node
row () { # row RESOURCES SHAPE LINE WHAT: expect this shape and message
    conf "$1"
    run
    is "$status $(shape)" "0 $2" "$4"
    is "$(cat out)" "$3" "$4: the message"
}
row 'slots_per_trial = 1;' '--nodes=1 --ntasks=1 --ntasks-per-node=1 --gpus-per-node=1 ' '' "one GPU"
holds "one GPU needs no query" [ ! -e scontrol.asked ]
row 'slots_per_trial = 8;' '--nodes=1 --ntasks=1 --ntasks-per-node=1 --gpus-per-node=8 ' '' "as many as a node has"
is "$(cat scontrol.asked) $(grep -c -e --test-only asked)" "--oneliner show node 0" "so nodes are queried"
row 'slots_per_trial = 16;' '--nodes=2 --ntasks=2 --ntasks-per-node=1 --gpus-per-node=8 --partition=big ' \
    'dl: 16 GPUs: 2 nodes with 8 GPUs and 1 rank each, in partition big; a job would start now' "more than a node has"
row 'slots_per_trial = 8; partition = "cpu,small";' '--nodes=2 --ntasks=2 --ntasks-per-node=1 --gpus-per-node=4 --partition=cpu,small ' \
    'dl: 8 GPUs: 2 nodes with 4 GPUs and 1 rank each; a job would start now' "more than a node of these partitions has"
row 'slots_per_trial = 16; nodes_per_trial = 4; ranks_per_node = 4;' '--nodes=4 --ntasks=16 --ntasks-per-node=4 --gpus-per-node=4 ' \
    'dl: 16 GPUs: 4 nodes with 4 GPUs and 4 ranks each' "on the nodes that the user wants"
row 'slots_per_trial = 8; gpus_per_node = 2;' '--nodes=4 --ntasks=4 --ntasks-per-node=1 --gpus-per-node=2 ' \
    'dl: 8 GPUs: 4 nodes with 2 GPUs and 1 rank each' "so many on a node"
row 'gpus_per_node = 2; nodes_per_trial = 2;' '--nodes=2 --ntasks=2 --ntasks-per-node=1 --gpus-per-node=2 ' '' "those of a node alone"
row 'slots_per_trial = 4; trials_per_task = 2;' '--nodes=1 --ntasks=2 --ntasks-per-node=2 --gpus-per-node=8 ' '' "several trials in a task"
row 'slots_per_trial = 16; sbatch_args = ["--clusters=other"];' '--nodes=1 --ntasks=1 --ntasks-per-node=1 --gpus-per-node=16 ' '' \
    "another cluster's nodes are not known"
cat >g.yaml <<'END'
name: g
entrypoint: "true {x}"
searcher: { name: random, metric: loss, max_trials: 2 }
hyperparameters: { x: { type: float, minval: 0, maxval: 1 } }
resources: { slots_per_trial: 16 }
END
timeout 300 dl run --dry-run g.yaml >dir 2>out
is "$? $(cat out)" "0 dl: 16 GPUs: 2 nodes with 8 GPUs and 1 rank each, in partition big; a job would start now" "--dry-run of a YAML file"
like "$(dl preview --seconds=3600 g.yaml)" '^2 trial-hours, 32 GPU-hours' "GPU-hours"

# ---- a log of another version
conf 'slots_per_trial = 2; nodes_per_trial = 2;'
run --no-workers
"${PYTHON:-python3}" - "$srcdir/tests/faults" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from replay import xxh64
path = "g-0001/log/000000/00000001"
line = open(path, "rb").read().splitlines(True)[0].replace(b'"version":1', b'"version":2')
open(path, "wb").write(line + b'{"xxh64": "%016x"}\n' % xxh64(line))
END
for command in show 'resume --detach' 'fork --trust --detach' report; do
    timeout 300 dl $command g-0001 >out 2>&1
    is "$? $(cat out)" "5 dl: $PWD/g-0001: written by another version of dl (the decision log has format 2, this dl reads format 1)" "dl $command: a log of another version"
done

# ---- impossible requests
bad () { # bad RESOURCES STATUS LINE WHAT: expect this error and no experiment
    conf "$1"
    run
    is $status "$2" "$4: exit status"
    like "$(cat out)" "$3" "$4"
    holds "$4: no experiment was made" [ ! -e g-0001 ]
}
bad 'gpus_per_trial = 64;' 2 "^dl: 'resources.gpus_per_trial' = 64: there are no such nodes \(big has 4 nodes with GPUs, at most 8 on one, small has 4 .*\); possible: 32 and less$" "too many"
bad 'gpus_per_trial = 7; partition = "small";' 2 "small has 4 nodes with GPUs, at most 4 on one\); possible: 6, 8$" "a number that nodes cannot share"
bad 'gpus_per_trial = 4; partition = "cpu";' 2 "there are no such nodes" "a partition without GPUs"
bad 'gpus_per_trial = 9; nodes_per_trial = 2;' 2 "^g.conf:4: 'resources.gpus_per_trial' \(9\) is not a multiple of 'nodes_per_trial' \(2\)$" "no multiple"
bad 'gpus_per_trial = 9; nodes_per_trial = 2; gpus_per_node = 4;' 2 "is 9, but 'nodes_per_trial' x 'gpus_per_node' is 2 x 4; leave one of the three out$" "three that do not fit"
bad 'gpus_per_trial = 8; sbatch_args = ["--gres=gpu:2"];' 2 "leave --nodes, --ntasks, --gpus and --gres out of 'resources.sbatch_args'$" "two words for it"
bad 'slots_per_trial = 64;' 2 "^dl: 'resources.slots_per_trial' = 64: there are no such nodes .*; possible: 32 and less$" "too many slots"
bad 'slots_per_trial = 3; nodes_per_trial = 2;' 2 "^g.conf:4: 'resources.slots_per_trial' \(3\) is not a multiple of 'nodes_per_trial' \(2\): it counts the GPUs of a trial on all of its nodes, 'gpus_per_node' those of a node$" "slots that nodes cannot share"
bad 'slots_per_trial = 4; gpus_per_node = 8;' 2 "is not a multiple of 'gpus_per_node' \(8\)" "fewer slots than on a node"
bad 'slots_per_trial = 8; nodes_per_trial = 2; gpus_per_node = 8;' 2 "'resources.slots_per_trial' is 8, but 'nodes_per_trial' x 'gpus_per_node' is 2 x 8" "three that contradict each other"
bad 'gpus_per_trial = 8; slots_per_trial = 4;' 2 "both count the GPUs of a trial on all of its nodes: leave one of them out \('gpus_per_node' counts those of a node\)$" "twice the same"
bad 'gpus_per_trial = 8; trials_per_task = 2;' 2 "cannot be used with 'resources.trials_per_task'" "lanes"
echo '* none' >starts
bad 'gpus_per_trial = 8;' 6 "Slurm accepts none of 5 shapes, first 1 x 8 in partition big: sbatch: allocation failure: Requested node configuration is not available; " "Slurm takes none"
touch silent
bad 'gpus_per_trial = 8;' 6 "^dl: scontrol show node: slurm_load_node error: Unable to contact slurm controller; with nodes_per_trial and gpus_per_node Slurm is not asked; --local needs none$" "Slurm does not answer"
timeout 300 dl run --dry-run g.conf >dir 2>out
is $? 0 "a dry run works without it"

# ---- on this machine
mkdir dev
touch dev/nvidia0 dev/nvidia1 dev/nvidiactl
conf 'gpus_per_trial = 2; workers = 1;'
sed -i 's/"true {x}"/"dl log loss=1; echo $CUDA_VISIBLE_DEVICES"/' g.conf
runs 0 "--local" env "DL_DEVICE_FOLDER=$work/dev" dl run --local g.conf
is "$(cat g-0001/trials/0001/a.1/log)" "0,1" "--local: a trial has them all"
rm dev/nvidia1
for options in --local "--local --dry-run"; do
    DL_DEVICE_FOLDER=$work/dev timeout 300 dl run $options g.conf >out 2>&1
    is "$? $(cat out)" "2 dl: a trial needs 2 GPUs ('resources.gpus_per_trial') and this machine has 1" "$options: too many"
done
done_testing
