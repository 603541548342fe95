#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sweep results beyond a single value: inactive parameters, several metrics, budgets, repeats, reports, exit statuses, log_policies.
. "$srcdir/tests/lib.sh"
export DL_HP_left_over=1

conf () { # conf NAME SEARCHER-LINES ENTRYPOINT [MORE]
    write_conf "$1" "$3" "$2" 'hyperparameters = { lr = { type = "log"; minval = -3; maxval = 0; }; };' 'worker = { heartbeat = 1; lease = 60; grace = 3; };' "$4"
}

log () { cat "$1"/log/0*/0*; }

events () { # events NAME EXPRESSION: evaluate Python over the experiment's events e
    log "$1" | python3 -c '
import json, sys
e = [json.loads(x) for x in sys.stdin]
print(eval(sys.argv[1]))' "$2"
}

# ---- inactive parameters
cat >when.conf <<'END'
name = "when"; reproducibility = { experiment_seed = 5; };
entrypoint = "./when.sh {opt.name} [-m {opt.momentum}] [x{opt.momentum}x]";
searcher = { name = "random"; max_trials = 12; metric = "loss"; };
hyperparameters = {
    opt = { name = { type = "categorical"; vals = ["sgd", "adam"]; };
            momentum = { type = "float"; minval = 0.5; maxval = 0.9;
                         when = { opt = { name = "sgd"; }; }; }; };
};
resources = { workers = 2; };
END
program when.sh <<'END'
set -e
[ "${DL_HP_left_over-none}" = none ]
if [ "$1" = adam ]; then
    [ $# -eq 1 ]
    [ "${DL_HP_opt_momentum-none}" = none ]
    ! grep -q momentum "$DL_HPARAMS"
else
    [ $# -eq 4 ] && [ "$2 $3 $4" = "-m $DL_HP_opt_momentum x${DL_HP_opt_momentum}x" ]
    grep -q momentum "$DL_HPARAMS"
fi
dl log loss=1
END
runs 0 "a sweep with a conditional parameter" dl run --local when.conf
is "$(count when-0001 fail)" 0 "an inactive one is left out of variables, hparams.json and command"
events when-0001 'all(("nan" in x["x"]) == ("momentum" not in x["hparams"]["opt"]) for x in e if x.get("op") == "begin")' >out
is "$(cat out)" True "the log has nan for it"
like "$(dl show when)" '^ *[0-9]+ completed .* - +adam$' "the table has a dash"
like "$(dl show when)" '^ *[0-9]+ completed .* 0\.[5-9][0-9]* +sgd$' "and the value of an active one"
dl show --json when | python3 -c 'import json,sys; t=json.load(sys.stdin)["trials"]; assert {x["hyperparameters"]["opt.momentum"] is None for x in t} == {True, False}'
ok $? "null in JSON"

# ---- rejected points
program reject.sh <<'END'
[ "$DL_TRIAL" != 2 ] || exit 65
[ "$DL_TRIAL" != 3 ] || exit 1
dl log loss="$DL_TRIAL"
END
conf reject 'name = "random"; max_trials = 4;' '"./reject.sh"' 'max_restarts = 1;'
runs 0 "a sweep with a rejected point" dl run --local reject.conf
is "$(count reject-0001 reject) $(count reject-0001 result) $(count reject-0001 exit)" "1 3 1" \
    "is rejected once, and replaced by another"
like "$(dl show reject)" '^ *2 rejected +0 ' "its state"
like "$(cat out)" 'trial 2 +rejected' "is reported"
like "$(dl show reject 2)" 'exit status 65: the training script rejects the point' "and why"
conf rejectall 'name = "random"; max_trials = 2;' '"exit 65"'
runs 1 "no trial gave a result: the experiment failed" dl run --local rejectall.conf

# ---- results that are not numbers
conf nan 'name = "random"; max_trials = 3;' '"dl log loss=nan"'
runs 1 "a metric that is never a number: the experiment failed" dl run --local nan.conf
for out in "$(cat out)" "$(dl show nan)" "$(dl wait nan)"; do
    like "$out" '^loss was never a finite number in 3 results: there is no best trial$' "which run, show and wait say"
done

# ---- several metrics
program two.sh <<'END'
echo "loss=$DL_TRIAL"
dl log --step 1 "loss=$DL_TRIAL" "size=$((10 - DL_TRIAL))"
[ "$DL_TRIAL" != 3 ] || dl log --step 1 loss=20
dl log --step 2 size=0
[ "$DL_TRIAL" != 4 ] || dl log --step 2 loss=nan
END
conf two 'name = "random"; max_trials = 4;' '"./two.sh"'
sed -i 's/metric = "loss"/metric = ["loss", "size"]; smaller_is_better = [true, false]/' two.conf
runs 0 "two metrics" dl run --local two.conf
events two-0001 'sorted((x["trial"], x["metric"], x["metrics"]) for x in e if x.get("op") == "result")' >got
is "$(cat got)" "[(1, 1.0, [1.0, 9.0]), (2, 2.0, [2.0, 8.0]), (3, 20.0, [20.0, 7.0]), (4, 'nan', ['nan', 0.0])]" \
    "values of the last step that has both, the newest of a step"
like "$(dl show two)" '^ *1\* +completed .* 1 +9 ' "the front has stars, the second metric has a column"
like "$(dl show two)" '^ *2 +completed' "a dominated trial has none"
like "$(dl show two)" '^best loss 1:' "best uses the first metric"
like "$(dl show two 3)" '^  size: 7' "all metrics of one trial"
dl show --json two | python3 -c 'import json,sys; t=json.load(sys.stdin)["trials"]; assert [x["trial"] for x in t if x["pareto"]] == [1], t'
ok $? "the front in JSON"
conf oneof 'name = "random"; max_trials = 1;' '"dl log --step 1 loss=1; dl log --step 2 size=1"' 'max_restarts = 0;'
sed -i 's/metric = "loss"/metric = ["loss", "size"]/' oneof.conf
timeout 300 dl run --local oneof.conf >out 2>&1
like "$(dl show oneof 1)" 'all 2 metrics \("loss", "size"\) at one step' "a missing metric is reported"

# ---- slow experiments, which run while the tests continue; their checks come below
# hold: an open attempt without a live worker must not keep an expired experiment open
conf hold 'name = "random"; max_trials = 9; max_hours = 0.0005;' '"sleep 300"'
timeout 300 dl run --local hold.conf >out 2>&1 &
pid=$!
wait_for 300 sh -c 'ls hold-0001/trials/*/a.1/log'
kill -INT $pid
wait $pid
program slow.sh <<'END'
trap 'echo asked; exit 0' TERM
bad=$([ "$DL_TRIAL" -le 3 ] && echo 1 || echo 9)
for step in $(seq 1 "$DL_LENGTH"); do
    dl log --step "$step" loss=$bad
    [ "$DL_TRIAL" -le 3 ] && sleep 0.1 || sleep 0.4
done
END
conf median 'name = "median"; max_trials = 5; max_length = 20; min_length = 2; max_concurrent_trials = 2;' '"./slow.sh"'
beside median dl run --local median.conf
program deaf.sh <<'END'
trap 'touch asked' TERM
for step in $(seq 1 10); do dl log --step "$step" loss="$DL_TRIAL"; sleep 0.2; done
[ "$DL_TRIAL" -gt 3 ] || exit 0
# its worker gets killed; the loop ends when this file is removed
while [ -e deaf.sh ]; do sleep 0.2; done
END
conf deaf 'name = "median"; max_trials = 4; max_length = 20; min_length = 2; max_concurrent_trials = 1;' '"./deaf.sh"'
sed -i 's/workers = 2/workers = 1/; s/lease = 60/lease = 4/; s/grace = 3/grace = 200/' deaf.conf
beside deaf dl run --local deaf.conf

# ---- budgets
conf budget 'name = "random"; max_trials = 500; max_gpu_hours = 0.0006;' '"sleep 0.5; dl log loss=1"'
runs 0 "max_gpu_hours ends the experiment" dl run --local budget.conf
like "$(dl ls)" 'budget-0001 +completed' "as completed"
begun=$(count budget-0001 begin)
[ "$begun" -ge 1 ] && [ "$begun" -le 7 ]
ok $? "after 2.2 s of training ($begun trials)"
for option in '' --trials=600; do # shellcheck disable=SC2086
    is "$(dl continue --local $option budget 2>&1; echo $?)" "dl: $work/budget-0001: searcher.max_gpu_hours (0.0006) is used up: run 'dl continue --set searcher.max_gpu_hours=HOURS budget-0001' to continue with more
2" "which 'dl continue $option' says, too"
done
out=$(timeout 300 dl continue --local --set searcher.max_gpu_hours=0.0012 budget 2>&1)
is "$? $([ "$(count budget-0001 begin)" -gt "$begun" ]; echo $?) $(count budget-0001 end)" "0 0 2" "and continues with a higher one"
like "$(dl show budget)" 'max_gpu_hours \(0.0012\) is used up' "until that is used up"
conf rungs 'name = "asha"; max_trials = 100; max_length = 9; divisor = 3; max_gpu_hours = 0.0006;' '"sleep 0.4; dl log loss=1"'
runs 0 "also with paused or due trials" dl run --local rungs.conf
like "$(dl show rungs)" 'stopped early' "which then have stopped early"
is "$(dl show rungs --json | grep -c 'ended early')" 0 "it has one name"

conf hours 'name = "random"; max_trials = 500; max_hours = 0.0005;' '"sleep 0.7; dl log loss=1"'
runs 0 "max_hours ends the experiment" dl run --local hours.conf
is "$(count hours-0001 expire) $(count hours-0001 end)" "1 1" "one expire, one end"
is "$(count hours-0001 park) $(count hours-0001 fail)" "0 0" "running trials got results"
is "$(events hours-0001 '[x["op"] for x in e if "op" in x and x["op"] in ("expire", "begin")][-1]')" expire \
    "nothing begins after it"
like "$(dl show hours)" 'max_hours \(0.0005\) is over' "show says so"
conf late 'name = "random"; max_trials = 3; max_hours = 0.0005;' '"sleep 2.5; dl log loss=1"'
timeout 300 dl run --local late.conf >out 2>&1
like "$(dl continue --local late 2>&1)" "max_hours \(0.0005\) have passed: run 'dl continue --set searcher.max_hours=HOURS late-0001' to continue with more" "dl continue names the option for more"
holds "before all trials had run" [ "$(count late-0001 result)" -lt 3 ]
timeout 300 dl continue --local --set searcher.max_hours=100 late >out 2>&1
is "$? $(count late-0001 result) $(count late-0001 end) $(dl show late | grep -c 'is over')" "0 3 2 0" "with a higher limit they have"
# attempts that began before the limit get no more time either
runs 0 "a resumed worker ends an expired experiment" dl resume --local hold
is "$(count hold-0001 expire) $(count hold-0001 end)" "1 1" "with one expire and one end"

# ---- repeats
conf repeat 'name = "random"; max_trials = 2; repeats = 2;' '"[ {repeat} = $DL_REPEAT ]; dl log loss=$DL_REPEAT"'
runs 0 "repeats" dl run --local repeat.conf
is "$(events repeat-0001 'sorted((x["trial"], x["metric"]) for x in e if x.get("op") == "result")')" \
    "[(1, 0.0), (2, 1.0), (3, 0.0), (4, 1.0)]" "DL_REPEAT and {repeat}"
is "$(events repeat-0001 'len({str(x["x"]) for x in e if x.get("op") == "begin"})')" 2 "one point per pair"

# ---- reports: the searcher stops trials while they run
ended median
is $? 0 "median"
[ "$(count median-0001 report)" -ge 5 ]
ok $? "reports are in the log ($(count median-0001 report))"
is "$(events median-0001 'sorted((x["trial"], x["length"] < 20) for x in e if x.get("stopped"))')" \
    "[(4, True), (5, True)]" "the bad trials were stopped"
is "$(count median-0001 result) $(count median-0001 fail) $(count median-0001 park)" "5 0 0" "each trial has its result"
like "$(dl show median)" '^ *5 stopped early +[0-9]+ +9 ' "their state"
like "$(dl logs median 5)" asked "the trainer was asked"
is "$(events median-0001 'all(x["length"] < y["length"] for t in range(1, 6) for r in [[z for z in e if z.get("op") == "report" and z["trial"] == t]] for x, y in zip(r, r[1:]))')" \
    True "lengths grow"
# deaf: its worker dies between the last report and the result
wait_for 300 test -e asked
pkill -9 -f "worker --slot local-.* -- $work/deaf-0001$"
ended deaf
is $? 0 "a stopped trial whose worker died is not trained again"
rm deaf.sh
is "$(events deaf-0001 '[(x["op"], x.get("stopped", False)) for x in e if x.get("trial") == 4 and x["op"] not in ("begin", "report")]')" \
    "[('lost', False), ('result', True)]" "its result is that of its last report"
is "$(count hours-0001 report)" 0 "other searchers get no reports"

# ---- exit statuses of a trainer
conf again 'name = "random"; max_trials = 1;' '"[ $DL_ATTEMPT -gt 2 ] || exit 75; dl log loss=1"' 'max_restarts = 0;'
runs 0 "status 75 twice, then success" dl run --local again.conf
is "$(events again-0001 '[(x["op"], x.get("free")) for x in e if x.get("op") in ("fail", "result", "exit")]')" \
    "[('fail', True), ('fail', True), ('result', None)]" "does not count as a failure"
is "$(grep -c failed out)" 0 "and is not reported"
conf ever 'name = "random"; max_trials = 1;' '"exit 75"'
runs 1 "status 75 for ever" dl run --local ever.conf
is "$(count ever-0001 fail) $(count ever-0001 exit)" "21 1" "is retried 20 times"
conf never 'name = "random"; max_trials = 2;' '"[ $DL_TRIAL = 2 ] || exit 78; dl log loss=1"'
runs 0 "status 78" dl run --local never.conf
is "$(count never-0001 fail) $(count never-0001 exit)" "1 1" "dl gives up at once"
like "$(dl show never 1)" 'exit status 78: the program reports that a retry cannot help' "and says why"

# ---- log_policies
conf cancel 'name = "random"; max_trials = 2;' '"[ $DL_TRIAL = 2 ] || { echo bad shape; exit 1; }; dl log loss=1"' \
    'log_policies = ( { name = "shape"; pattern = "bad s.ape"; action = "cancel_retries"; } );'
runs 0 "policy cancel_retries" dl run --local cancel.conf
is "$(count cancel-0001 fail) $(count cancel-0001 exit)" "1 1" "dl gives up at once"
like "$(dl show cancel 1)" 'last failure: policy shape: bad shape; exit status 1$' "and says why"
conf label 'name = "random"; max_trials = 1;' '"echo RuntimeError: CUDA out of memory. Tried 2 GiB; exit 1"' 'max_restarts = 2;'
timeout 300 dl run --local label.conf >out 2>&1
is "$(count label-0001 fail) $(count label-0001 exclude)" "3 0" "a label changes nothing"
like "$(dl show label 1)" 'last failure: CUDA OOM: RuntimeError: CUDA out of memory. Tried 2 GiB; exit status 1$' "but is shown"
conf nolabel 'name = "random"; max_trials = 1;' '"echo RuntimeError: CUDA out of memory. Tried 2 GiB; exit 1"' \
    'max_restarts = 0; log_policies = ( { name = "CUDA OOM"; pattern = ""; } );'
timeout 300 dl run --local nolabel.conf >out 2>&1
like "$(dl show nolabel 1)" 'last failure: exit status 1: RuntimeError: CUDA out of memory. Tried 2 GiB$' "it can be switched off"
conf bus 'name = "random"; max_trials = 3;' '"echo GPU fell off the bus; exit 1"' \
    'log_policies = ( { name = "bus"; pattern = "off the bus"; action = "exclude_node"; } );'
runs 8 "policy exclude_node on the only node" dl run --local bus.conf
why="machine $(hostname) is excluded: policy bus: GPU fell off the bus; exit status 1"
like "$(cat out)" "^$why\$" "says which node was excluded, and why"
like "$(cat out)" "no worker is left: this machine is excluded from the experiment" "and how it ended"
like "$(dl show bus)" "^$why\$" "so does show"
is "$(count bus-0001 exclude)" 1 "it is excluded once"
is "$(events bus-0001 '[x["op"] for x in e if "op" in x and x["op"] in ("exclude", "begin")][-1]')" exclude \
    "nothing starts there any more"
like "$(cat out)" 'trial [0-9]+ +failed \(1\): policy bus' "the failure counts"
is "$(count bus-0001 exit)" 0 "the trial stays open"
runs 76 "a worker there ends with status 76" dl worker --slot x bus-0001

# ---- a worker that Slurm killed: its successor asks sacct why
mkdir bin
printf '#!/bin/sh\necho "7"\n' >bin/sbatch
printf '#!/bin/sh\necho "$*" >>"%s/asked"\ncase " $* " in *" -X "*) printf "PREEMPTED\\nRUNNING\\n" ;; *) echo OUT_OF_MEMORY ;; esac\n' "$work" >bin/sacct
chmod +x bin/sbatch bin/sacct
conf gone 'name = "random"; max_trials = 1;' '"[ $DL_ATTEMPT -gt 2 ] || sleep 300; dl log loss=1"' 'max_restarts = 2;'
runs 0 "an experiment without workers" env "PATH=$work/bin:$PATH" dl run --detach gone.conf
# worker VARIABLE=VALUE...: a worker of the same array task
worker () {
    exec env PATH="$work/bin:$PATH" SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=1 SLURM_JOB_ID=8 "$@" dl worker gone-0001
}
worker SLURM_STEP_ID=0 >out1 2>&1 &
pid=$!
wait_for 300 test -d gone-0001/trials/0001/a.1
kill -9 $pid
worker SLURM_STEP_ID=1 DL_LAST_STATUS=137 >out2 2>&1 &
pid=$!
wait_for 300 test -d gone-0001/trials/0001/a.2
kill -9 $pid
(worker SLURM_STEP_ID=0 SLURM_RESTART_COUNT=1) >out3 2>&1 &
pid=$!
wait_for 300 sh -c "! kill -0 $pid"
kill -9 $pid 2>/dev/null
wait $pid
is $? 0 "the third failed worker of a slot ends the experiment"
is "$(events gone-0001 '[(x["op"], x["attempt"], x.get("why")) for x in e if x.get("op") in ("fail", "lost", "result")]')" \
    "[('fail', 1, 'out of memory'), ('lost', 2, 'PREEMPTED: Slurm preempted its job'), ('result', 3, None)]" \
    "running out of memory is a failure, preemption is not"
like "$(cat gone-0001/trials/0001/asked.2)" '^7_1$' "the one that asks says so"
is "$(cat asked)" "-j 8.0 -o State -n -P
-j 7_1 -X -D -n -P -o State" "sacct was called once after each end: for the step before, and the run before"

# ---- a job whose worker Slurm has cancelled: the next one, on another host, does not wait for the lease
program bin/squeue <<END
echo "\$*" >>"$work/asked.squeue"
END
printf 'name = "moved"; entrypoint = "exec sleep 1000"; job = { };\nworker = { heartbeat = 1; };\n' >moved.conf
runs 0 "a job without a worker" env "PATH=$work/bin:$PATH" dl run --detach moved.conf
moved () { # moved JOB: a worker in this job
    exec env PATH="$work/bin:$PATH" SLURM_ARRAY_JOB_ID="$1" SLURM_ARRAY_TASK_ID=1 SLURM_JOB_ID="$1" dl worker moved-0001
}
moved 7 >out1 2>&1 &
wait_for 300 test -d moved-0001/trials/0001/a.1
kill -9 $!
sed -i '1s/"host": *"[^"]*"/"host":"elsewhere"/' moved-0001/workers/[0-9a-f]*[0-9a-f]
moved 9 >out2 2>&1 &
pid=$!
wait_for 150 test -d moved-0001/trials/0001/a.2
ok $? "another host takes over as soon as squeue has no such job"
like "$(cat asked.squeue)" '7_1' "which it has asked"
dl kill moved >out 2>&1
wait_for 300 sh -c "! kill -0 $pid 2>/dev/null"

# ---- dl show reports that workers wait for disk space
conf full 'name = "random"; max_trials = 1;' '["true"]'
dl run --no-workers full.conf >/dev/null
is "$(dl show full | grep -c 'is full')" 0 "there is space"
rm full-0001/reserve # workers remove it when the disk is full
like "$(dl show full)" '^the disk or the quota is full: workers wait for space$' "there is none"
done_testing
