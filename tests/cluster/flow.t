#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl flow on Slurm: dependencies, failed steps, requeue, resume, and a second run that submits no job.
. "$srcdir/tests/lib.sh"
need_slurm
unset DL_DIR DL_FREEZE
cluster_up flow --nodes 2 --cpus 4
mkdir "$work/code" "$work/flows"
cd "$work/code" || exit 1
DL_DIR=$work/flows
export DL_DIR

no_jobs () { [ -z "$(squeue -h -o %i)" ]; }
submitted () { # print the next job ID: submit a held job, and cancel it
    sbatch --parsable --hold --output=/dev/null --wrap=true | tee "$work/job.id"
    xargs scancel <"$work/job.id"
}
state () { # state FLOW STEP: print the step's state
    dl flow show "$1" | awk -v s="$2" '$1 == s { print $2 ($2 == "not" ? " run" : "") }'
}

echo 'print(open(__import__("sys").argv[1]).read().upper())' >upper.py
cat >all.conf <<'END'
name = "all";
resources = { memory = "50M"; };
steps = {
    make = { entrypoint = "while [ ! -e $GO ]; do sleep 0.1; done; echo one >{out.data}; echo 'parts=[1, 2]' >>$DL_VALUES"; outputs = { data = "d"; }; values = ["parts"]; };
    fan = { foreach = "{make.parts}"; entrypoint = "/usr/bin/python3 upper.py {make.data} >{out.up}"; outputs = { up = "up"; }; };
    twin = { foreach = ["a", "b"]; entrypoint = "echo {item} >{out.t}"; outputs = { t = "t"; }; after = "make"; };
    each = { foreach = ["c", "d"]; after_each = "twin"; entrypoint = "cat {twin.t} >{out.e}"; outputs = { e = "e"; }; };
    join = { entrypoint = "cat {fan.up} {each.e} >{out.all}"; outputs = { all = "all"; }; };
    not = { after = "join"; when = "{make.parts} == none"; entrypoint = "false"; };
    end = { on_exit = true; entrypoint = "echo {outcome}"; };
};
END
GO=$work/go
export GO
like "$(dl flow run all.conf)" '/all-0001: [5-9] jobs submitted' "a flow is submitted"
like "$(squeue -h -o %E)" aftercorr "aftercorr for after_each"
touch "$GO"
wait_for 300 no_jobs
is "$(dl flow show all | sed 1q)" "$work/flows/all-0001: completed" "it completes"
is "$(cat "$work"/flows/all-0001/steps/join/0/a.1/all 2>/dev/null | tr -d '\n')" ONEONEab "fan-out over a list that a step reports, fan-in in order"
is "$(state all not)" skipped "a condition"
is "$(cat "$work"/flows/all-0001/steps/end/0/a.1/log)" completed "the exit handler"

before=$(submitted)
like "$(dl flow run all.conf)" '/all-0002: 0 jobs submitted' "a second run submits no job"
is "$(submitted)" $((before + 1)) "and Slurm has seen none"
is "$(dl flow show all | sed 1q)" "$work/flows/all-0002: completed" "it is completed"
echo '#' >>upper.py
rm "$GO"
mkdir "$work/slow"
program "$work/slow/sbatch" <<END
case "\$SLURM_JOB_ID \$*" in " "*all.twin*)
    touch $GO
    while ! grep -q '"op":"start".*"step":"fan","start":2' $DL_DIR/all-0003/log/*/*; do sleep 0.1; done
    sleep 1 ;;
esac
exec $(command -v sbatch) "\$@"
END
like "$(PATH=$work/slow:$PATH timeout 300 dl flow run all.conf)" '/all-0003: [1-9] jobs submitted' "changed code: it runs again"
wait_for 300 no_jobs
is "$(dl flow show all | sed 1q)" "$work/flows/all-0003: completed" "and completes"
is "$(cat "$work"/flows/all-0003/log/*/* | grep -c '"op":"start".*"step":"twin"')" 1 "a job that a slow submitter works on is not submitted twice"

# ---- a step fails: its dependents do not run, the exit handler learns of it, and resume continues there
cat >fail.conf <<END
name = "fail";
steps = {
    first = { entrypoint = "echo 1 >>$work/first"; };
    breaks = { after = "first"; entrypoint = "test -e $work/mended"; };
    rest = { after = "breaks"; entrypoint = "true"; };
    any = { after_any = "breaks"; entrypoint = "true"; };
    end = { on_exit = true; entrypoint = "echo {outcome} {failed_steps} >>$work/ends"; };
};
END
dl flow run fail.conf >/dev/null
wait_for 300 no_jobs
is "$(for s in first breaks rest any end; do state fail $s; done | tr '\n' ,)" "ok,failed,not run,ok,ok," "a step that fails, and its dependents"
is "$(cat "$work/ends")" "failed breaks rest" "the exit handler gets the state"
touch "$work/mended"
dl flow resume fail >/dev/null
wait_for 300 no_jobs
is "$(dl flow show fail | sed 1q)" "$work/flows/fail-0001: completed" "dl flow resume continues"
is "$(wc -l <"$work/first")" 1 "and runs nothing twice"
is "$(tail -1 "$work/ends")" "completed " "the exit handler gets it, too"

# ---- a requeued job, a job whose wrapper is killed, and dl flow stop
cat >long.conf <<END
name = "long";
steps = {
    long = { cache = false; entrypoint = "echo \$SLURM_RESTART_COUNT >>$work/starts; test \$(wc -l <$work/starts) -ge 3 || sleep 600"; };
    after = { after = "long"; entrypoint = "true"; };
};
END
dl flow run long.conf >/dev/null
starts () { [ -s "$work/starts" ] && [ "$(wc -l <"$work/starts")" -ge "$1" ]; }
wait_for 300 starts 1
scontrol requeue "$(squeue -h -o %A --name=long.long)"
wait_for 300 starts 2
ok $? "a step is requeued"
pgrep -f "^[^ ]*dl flow step -- $work/flows/long-0001" | xargs kill -9
wait_for 300 no_jobs
is "$(dl flow show long | sed 1q)" "$work/flows/long-0001: completed" "it completes, although its wrapper was killed, too"
is "$(wc -l <"$work/starts")" 3 "three attempts"

rm -f "$work/starts"
dl flow run long.conf >/dev/null
wait_for 300 starts 1
like "$(dl flow stop long)" 'long-0002: stopped, 2 jobs cancelled' "dl flow stop"
wait_for 300 no_jobs
is "$(dl flow show long | sed 1q)" "$work/flows/long-0002: stopped" "it is stopped"

# ---- a submitter that dies after sbatch: dl finds the job by its token, and submits no second one
rm -f "$work/starts"
mkdir "$work/dies"
printf '#!/bin/sh\n%s "$@"\nkill -9 $PPID\n' "$(command -v sbatch)" >"$work/dies/sbatch"
chmod +x "$work/dies/sbatch"
(PATH=$work/dies:$PATH dl flow run long.conf) >/dev/null 2>&1
wait_for 300 starts 1
like "$(dl flow resume long)" 'long-0003: 1 job submitted' "a job whose number was lost is found; one that was not submitted is submitted"
is "$(cat "$work"/flows/long-0003/log/*/* | grep '"op":"s' | grep -o '"op":"[^"]*"\|"step":"[^"]*"\|"start":[0-9]*' | xargs -n 3 | sort)" \
    "op:start step:after start:1
op:start step:long start:1
op:submit step:after start:1
op:submit step:long start:1" "and recorded, without a second start"
dl flow stop long >/dev/null
wait_for 300 no_jobs

# ---- Slurm signals the deepest process first, so the command may end before its wrapper gets the signal
cat >late.conf <<'END'
name = "late";
steps = { late = { entrypoint = "setsid sh -c \"touch ready; while kill -0 $$; do :; done 2>/dev/null; kill -15 $PPID\" & while [ ! -e ready ]; do sleep 0.1; done; kill -15 $$"; }; };
END
dl flow run late.conf >/dev/null
wait_for 300 no_jobs
like "$(cat "$work"/flows/late-0001/log/*/*)" '"op":"park".*"step":"late"' "a command that is stopped before its wrapper has not failed"

# ---- a folder name with characters that Slurm expands in paths
cat >odd.conf <<'END'
name = "odd";
steps = { one = { cache = false; entrypoint = "echo 1"; }; all = { cache = false; foreach = ["a", "b"]; entrypoint = "echo {item}"; }; };
END
mkdir "$work/b\\100%j"
(DL_DIR="$work/b\\100%j" && timeout 300 dl flow run odd.conf >/dev/null)
wait_for 300 no_jobs
is "$(DL_DIR="$work/b\\100%j" dl flow show odd | sed -n '1s/.*: //p')" completed "a flow in a folder with a backslash"
is "$(cd "$work/b\\100%j/odd-0001/steps" && ls | sed -n 's/[0-9][0-9]*\(_*[0-9]*\.log\)$/N\1/p' | xargs)" "all.N_0.log all.N_1.log one.N.log" "the output of each job"

# ---- a recurring flow
cat >again.conf <<END
name = "again";
steps = { a = { entrypoint = "echo {outcome}"; on_exit = true; }; b = { cache = false; entrypoint = "echo b >>$work/bs"; }; };
END
dl flow run --every=1m again.conf >/dev/null
next=$(squeue -h -o %A --name=again.next+)
scontrol update jobid="$next" starttime=now
wait_for 300 test -e "$work/flows/again-0002/flow.json"
ok $? "a flow recurs"
ran () { [ "$(wc -l <"$work/bs")" -eq 2 ]; }
wait_for 300 ran
ok $? "and runs again"
one_job () { [ "$(squeue -h -o %j)" = again.next+ ]; }
wait_for 300 one_job
ok $? "with one job for the next time"
dl flow stop again >/dev/null
wait_for 300 no_jobs
ok $? "until dl flow stop"
# ---- preemption, a bad node and a time limit are handled as for trials
cat >moved.conf <<END
name = "moved";
resources = { cpus_per_trial = 4; partition = "low"; };
steps = {
    held = { cache = false; entrypoint = "echo \$SLURM_RESTART_COUNT >>$work/held; test \$(wc -l <$work/held) -ge 2 || sleep 600"; };
    after = { cache = false; after = "held"; entrypoint = "true"; };
};
END
dl flow run moved.conf >/dev/null
wait_for 300 test -s "$work/held"
timeout 300 srun -Q -p high --nodes=2 --exclusive true
ok $? "a job of higher priority got the nodes"
wait_for 300 no_jobs
is "$(dl flow show moved | sed 1q)" "$work/flows/moved-0001: completed" "a preempted step restarts, and its dependents run"
cat >bad.conf <<END
name = "bad";
steps = { bad = { cache = false; entrypoint = "echo \$SLURMD_NODENAME >>$work/nodes; test \$(wc -l <$work/nodes) -ge 2 || exit 79"; }; };
END
dl flow run bad.conf >/dev/null
wait_for 300 no_jobs
is "$(dl flow show bad | sed 1q) $(sort -u "$work/nodes" | wc -l)" "$work/flows/bad-0001: completed 2" "a step on a bad node restarts on another one"
cat >short.conf <<'END'
name = "short";
resources = { time = "1"; };
steps = {
    saves = { cache = false; retries = 1; entrypoint = "trap 'echo x >>saved; exit 0' TERM; if [ -e saved ]; then exit 0; fi; sleep 600 & wait"; };
    no = { cache = false; entrypoint = "exec sleep 600"; };
};
END
dl flow run short.conf >/dev/null
wait_for 300 no_jobs
is "$(state short saves),$(state short no)" ok,failed "a step at its time limit saves, and continues in a new job if retries are left"
like "$(dl flow show short no)" "TIMEOUT: stopped after [0-9]* s, before the time limit" "and says why it failed"
done_testing
