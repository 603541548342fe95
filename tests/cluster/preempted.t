#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Batch jobs that follow slurmdl(3), without a worker: preempted, near their time limit, cancelled, and complete.
. "$srcdir/tests/lib.sh"
need_slurm
cluster_up preempted --nodes 1 --cpus 2
cp "$srcdir"/contrib/examples/digits/digits.csv.gz .
digits="$builddir/contrib/examples/digits/digits $work/digits.csv.gz"

sed -n '/^#!\/bin\/bash$/,/^```$/p' "$srcdir/doc/cookbook.md" | sed "/^\`\`\`\$/d; s|python3 train.py|$digits|" >job.sh
submit () { # submit OUT OPTION...: sets $job and $out
    out=$work/$1
    shift
    job=$(sbatch --parsable -n1 --exclusive --chdir="$work" -o "$out" "$@" job.sh)
}
trains () { # trains [AFTER]: wait for an epoch in the output, after the line AFTER if given
    wait_for 300 sh -c "sed '1,/${1:-^}/d' '$out' | grep -q '^epoch'"
}
state () {
    scontrol show job "$job" | grep -o "$1=[A-Z0-9]*"
}
ended () { # wait for a final state
    wait_for 300 sh -c "scontrol show job $job | grep -qE 'JobState=(COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL) '"
}
export DL_LENGTH=1000000000

submit out1
trains
ok $? "it trains"
timeout 300 srun -Q -p high --exclusive -n1 true
ok $? "a job of higher priority got the node"
wait_for 300 grep -q '^restored' "$out"
ok $? "the preempted job was requeued, and continues from its checkpoint"
like "$(cat "$out")" "^slurmdl: job $job: stopped by SIGTERM; waiting for Slurm to kill and requeue it, 300 s at most" "and says why it waits"
is "$(state Restarts)" "Restarts=1" "it was one restart"
trains restored
scancel --batch --signal=USR2 "$job"
wait_for 300 sh -c "grep -c '^restored' $out | grep -qx 2"
ok $? "before the time limit its script requeues it"
like "$(cat "$out")" "^slurmdl: job $job: stopped by SIGUSR2 .*scontrol requeue $job" "and says that this is needed"
scancel "$job"
ended
is "$(state JobState)" "JobState=CANCELLED" "it can be cancelled"

DL_STOP_WAIT=0 submit out2
trains
scancel --signal=TERM "$job"
ended
is "$(state JobState)" "JobState=COMPLETED" "DL_STOP_WAIT=0: it ends"
is "$(grep '^slurmdl' "$out")" "slurmdl: job $job: stopped by SIGTERM before its end, which Slurm takes as complete unless the job's script requeues it: scontrol requeue $job" "and says so"
DL_STOP_WAIT=1 submit out3
trains
scancel --signal=TERM "$job"
ended
is "$(state JobState) $(grep -c '^slurmdl' "$out")" "JobState=COMPLETED 2" "it waits for a limited time"

DL_LENGTH=2 submit out4
ended
is "$(state JobState) $(grep -c '^slurmdl' "$out")" "JobState=COMPLETED 0" "a completed one does not wait"

srun -Q -n1 -o "$work/out5" $digits >said 2>&1 &
pid=$!
out=$work/out5
trains
scancel --signal=TERM "$(squeue -h -t R -o %A)"
wait $pid
is "$? $(grep -c '^slurmdl' "$out")" "0 0" "nor does one that is not a batch job"
done_testing
