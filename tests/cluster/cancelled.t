#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# With proctrack/cgroup, Slurm sends SIGTERM only to the processes that it started itself: programs that several ranks run
# are told to save all the same, by scancel and by preemption.
. "$srcdir/tests/lib.sh"
need_hosts
need_cluster
try_cluster cancelled --nodes=2 --hosts --conf=KillWait=25 --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no cluster"
export PATH="$builddir/launcher:$PATH" HOME="$work"
unset DL_FREEZE
grep -q '^ProctrackType=proctrack/cgroup' "$SLURM_CONF"
ok $? "Slurm signals only what it started"
# it saves for longer than dl rank would wait for a worker that is gone
program slow.sh <<'END'
trap 'echo "rank $SLURM_PROCID saves"; sleep 8; echo "rank $SLURM_PROCID has saved" >>"$1"; exit 0' TERM
echo "rank $SLURM_PROCID starts"
until [ -e "$1.enough" ]; do sleep 0.2; done
END
starts () { # starts NAME ATTEMPT: wait until both ranks have started
    wait_for 300 sh -c "[ \$(grep -c '^rank [01] starts' $1-0001/trials/0001/a.$2/log 2>/dev/null) -eq 2 ]"
}
saved () { # saved NAME
    sort "$work/$1" | xargs
}
await_end () {
    wait_for 300 sh -c '[ -z "$(squeue -h -o %A)" ]'
}

dl job --detach --nodes=2 --ntasks-per-node=1 --name=job -- ./slow.sh "$work/job" >/dev/null
starts job 1
job=$(squeue -h -o %A)
scancel "$job"
await_end
is "$(saved job)" "rank 0 has saved rank 1 has saved" "scancel of a job: all ranks save"
is "$(grep -c '^rank [01] saves' job-0001/trials/0001/a.1/log)" 2 "each is told once"
like "$(dl show job)" '^  Restarting .* Parked$' "and the worker records it"

# the shell of a batch script dies, and Slurm kills dl job with it
cat >own.sh <<END
#!/bin/sh
dl job --nodes=2 --ntasks-per-node=1 --dir="$work" --name=own -- ./slow.sh "$work/own"
true
END
job=$(sbatch --parsable --nodes=2 --output="$work/own.out" own.sh)
starts own 1
scancel "$job"
await_end
is "$(saved own)" "rank 0 has saved rank 1 has saved" "scancel of a batch script that runs dl job: all ranks save"

dl job --detach --set 'resources.partition="low"' --nodes=2 --ntasks-per-node=1 --name=low -- ./slow.sh "$work/low" >/dev/null
starts low 1
timeout 300 salloc -Q -p high -N2 -n8 true
ok $? "a job of higher priority gets the nodes"
starts low 2
is "$(saved low)" "rank 0 has saved rank 1 has saved" "preemption: all ranks save"
touch low.enough
await_end
like "$(dl show low)" '^  Succeeded ' "and the job continues to its end"
done_testing
