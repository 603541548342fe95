#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whole sweeps with local workers that are paused, killed or frozen.
. "$srcdir/tests/lib.sh"

conf () { # conf NAME SEARCHER-LINES ENTRYPOINT
    write_conf "$1" "$3" "name = \"random\"; $2" 'worker = { heartbeat = 1; lease = 4; grace = 5; };'
}

# ---- a frozen worker; its checks come last
conf freeze 'max_trials = 3; max_length = 1;' '"sleep 1; dl log loss=$DL_TRIAL"'
beside freeze dl run --local --workers=2 freeze.conf
# wait until both workers have started
wait_for 300 sh -c '[ $(ls freeze-0001/trials/*/a.1/log | wc -l) -ge 2 ]'
zombie=$(pgrep -f "worker --slot local-.*-1 -- $work/freeze-0001$" | head -1)
kill -STOP "$zombie"

# ---- pause, resume
program slow.sh <<'END'
trap 'echo stopped >&2; exit 0' TERM
echo begun
while [ ! -f go ]; do sleep 0.1; done
dl log --step "$DL_LENGTH" loss=1
END
conf slow 'max_trials = 4; max_length = 5;' '"./slow.sh"'
timeout 300 dl run --local slow.conf >out &
pid=$!
wait_for 300 sh -c '[ $(cat slow-0001/trials/*/a.1/log | grep -c begun) -eq 2 ]'
like "$(dl pause slow)" 'its workers save what they have' "pause"
wait $pid
is $? 4 "run ends as paused"
like "$(dl ls)" 'slow-0001 +paused' "state paused"
is "$(count slow-0001 park)" 2 "its trials were parked"
like "$(cat slow-0001/trials/*/a.1/log)" '^stopped' "a trainer started by a shell had time to save"
touch go
timeout 300 dl resume --local slow >out
is $? 0 "resume"
is "$(count slow-0001 result)" 4 "each trial has its result"
is "$(count slow-0001 fail)" 0 "a pause does not count as a failure"
rm go

# ---- kill -9 of workers and of dl run in the middle of a sweep
conf kill 'max_trials = 8; max_length = 1;' '"until [ -f calm ]; do sleep 0.1; done; dl log loss=$DL_TRIAL"'
timeout 300 dl run --local kill.conf >out &
pid=$!
for attempts in 2 3 4; do
    # wait until both workers have an attempt
    wait_for 300 sh -c "[ \$(ls kill-0001/trials/*/a.*/log | wc -l) -ge $attempts ]"
    pkill -9 -o -f "worker --slot local-.* -- $work/kill-0001$"
done
touch calm
wait $pid
is $? 0 "workers were killed, the sweep completes"
is "$(count kill-0001 result)" 8 "each trial has one result"
is "$(count kill-0001 fail)" 0 "a dead worker does not make a trial fail"
lost=$(count kill-0001 lost)
holds "lost attempts were taken over ($lost)" [ "$lost" -ge 1 ]

conf orphan 'max_trials = 6; max_length = 1;' '"until [ -f calmer ]; do sleep 0.1; done; dl log loss=1"'
timeout 300 dl run --local orphan.conf >out &
orphan=$!
wait_for 300 sh -c 'ls orphan-0001/trials/*/a.1/log'
pkill -9 -P $orphan
wait $orphan
holds "local workers end with their launcher" wait_for 300 sh -c "! pgrep -f 'worker.* $work/orphan-0001$'"
touch calmer
timeout 300 dl resume --local orphan >out
is $? 0 "resume after the launcher was killed"
is "$(count orphan-0001 result)" 6 "each trial has one result"

# ---- metrics that a dead or hung worker had not read are recovered from the attempt's log: none lost, none twice, nothing retrained
cat >train.sh <<'END'
# train.sh TO FOLDER [LAST]: stop the worker at line HANG_AT (3), and kill it at line KILL_AT
s=$((${FIRST:-1} - 1))
[ "${3:-}" ] && s=$(cat "$3")
echo "goes on from $s"
while [ $s -lt $(($1 + ${FIRST:-1} - 1)) ]; do
    s=$((s + 1))
    [ $s != "${HANG_AT:-3}" ] || [ -e "$DL_TRIAL_DIR/hung" ] || { : >"$DL_TRIAL_DIR/hung"; hangs=1; kill -STOP $PPID; }
    [ $s = "${SILENT_AT:-none}" ] && [ "$hangs" ] || echo "epoch $s: loss 0.$s accuracy 0.9$s"
    echo $s >"$2/.last"
    mv "$2/.last" "$2/last"
    [ $s != "$KILL_AT" ] || [ ! "$hangs" ] || { printf 'epoch 9: loss 0.1'; kill -9 $PPID; sleep 60; }
done
END
taken () { # taken NAME KILL_AT VARIABLES WANTED TEXT: compare the recovered values of a trial whose worker hangs and may be killed
    cat >"$1.conf" <<END
name = "$1"; entrypoint = "exec sh train.sh {length} {attempt_dir} [{resume_dir}/last]";
searcher = { name = "single"; metric = "loss"; max_length = 6; };
metrics = { pattern = "epoch {step}: loss {loss} accuracy {accuracy}"; };
hyperparameters = { x = 1; };
environment = { variables = { KILL_AT = "$2"; $3 }; };
resources = { workers = 2; };
worker = { heartbeat = 1; lease = 4; grace = 2; };
END
    beside taken dl run --local "$1.conf"
    wait_for 300 sh -c "grep -q '\"op\":\"\(end\|pause\)\"' $1-0001/log/0*/0*"
    pkill -CONT -f "worker --slot local-.* -- $work/$1-0001\$"
    ended taken
    status=$?
    for metric in loss accuracy; do
        dl show --values "$1" 1 | awk -v m=$metric '$1 == m { print $2 }' | sort -n | tr '\n' ' '
    done >"$1.steps"
    dl show "$1" 1 | grep -o '^  *metric.*\|^[^ ]*: trial 1.*' >>"$1.out"
    is "$status $(cat "$1.steps")" "$4" "$5"
}
taken mid 5 "" "0 1 2 3 4 5 6 1 2 3 4 5 6 " "the lines of a worker that was killed in the middle"
taken last 6 "" "0 1 2 3 4 5 6 1 2 3 4 5 6 " "and those at the end: nothing is left to train"
is "$(cat last-0001/trials/0001/a.2/log)" "goes on from 6" "and nothing is trained"
taken hung none "" "0 1 2 3 4 5 6 1 2 3 4 5 6 " "those of a worker that hangs while the training goes on to its end"
taken zero 5 'FIRST = "0"; HANG_AT = "2";' "0 0 1 2 3 4 5 0 1 2 3 4 5 " "steps that begin with 0"
# The checkpoint is from the last epoch, but the script never printed its value.
taken unsaid 6 'SILENT_AT = "6";' "0 1 2 3 4 5 6 1 2 3 4 5 6 " "a value that was not printed is not invented: it is trained again"
like "$(dl show unsaid 1)" 'continued from the files in a.1, and trained nothing' "and the failure says so"

# ---- killed workers leave no temporary files, and each metrics.h5 names its trial and attempt
is "$(find mid-0001 last-0001 hung-0001 zero-0001 -name '.[0-9a-f]*' -type f)" "" "no spare file of a killed worker is left"
if python3 -c 'import h5py' 2>/dev/null; then
    python3 - <<'END' >out 2>&1
import glob, h5py, re
for path in glob.glob("*-0001/trials/*/a.*/metrics.h5"):
    name, trial, attempt = re.match(r"([a-z]+)-0001/trials/0*([0-9]+)/a.([0-9]+)/", path).groups()
    with h5py.File(path) as f:
        a = f.attrs
        if (a["experiment"], a["trial"], a["attempt"]) != (name.encode(), int(trial), int(attempt)) or not a["host"]:
            print(path, dict(a))
END
    is "$(cat out)" "" "experiment, trial, attempt and host are in metrics.h5 of scripts"
else
    skip "attributes of metrics.h5" "no Python with h5py (python3-h5py)"
fi

# ---- a worker dies after the searcher stopped its trial: another worker records the result without training
cat >stopped.sh <<'END'
trap 'kill -9 $PPID; exit 0' TERM
for s in 1 2 3 4 5 6 7 8 9; do
    echo "epoch $s: loss $DL_TRIAL.$s"
    case $s in 1 | 3) until grep -q "\"op\":\"report\".*\"trial\":$DL_TRIAL,.*\"length\":$s," "$DL_EXPERIMENT_DIR"/log/0*/0*; do sleep 0.1; done ;; esac
    while [ "$s$DL_TRIAL" = 32 ]; do sleep 0.1; done
done
END
cat >stopped.conf <<'END'
name = "stopped"; entrypoint = "exec sh stopped.sh {x}";
searcher = { name = "stopping_asha"; metric = "loss"; max_trials = 3; max_length = 9; divisor = 3; };
metrics = { pattern = "epoch {step}: loss {loss}"; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; };
worker = { heartbeat = 1; lease = 4; grace = 5; };
END
runs 0 "a sweep that stops trials, whose workers are then killed" dl run --local stopped.conf
is "$(count stopped-0001 lost) $(cat stopped-0001/log/0*/0* | grep '"op":"result"' | grep -c '"seconds":0')" "2 2" "others publish two results without training"
is "$(cat out; dl show stopped)" "$(cat out; dl show stopped | grep -v damaged)" "nothing is damaged"
is "$(dl show stopped 2 >/dev/null 2>&1; echo $?) $(dl export --format=h5 --output=x.h5 stopped 2>&1; echo $?)" "0 0" "dl show TRIAL and dl export find all"

# ---- the folder of a running trial is removed, or the experiment is moved
cat >removed.sh <<'END'
until [ -e "go.$DL_ATTEMPT" ] || [ "$DL_ATTEMPT" -gt 1 ]; do sleep 0.1; done
eval "$1"
END
removed () { # removed NAME COMMAND: remove the trial's folder while it runs
    cat >"$1.conf" <<END
name = "$1"; entrypoint = "exec sh removed.sh '$2'"; searcher = { name = "single"; metric = "loss"; };
metrics = { pattern = "loss {loss}"; }; hyperparameters = { x = 1; }; max_restarts = 0;
resources = { workers = 1; }; worker = { heartbeat = 1; lease = 4; grace = 2; };
END
    rm -f go.1
    beside removed dl run --local "$1.conf"
    wait_for 300 test -e "$1-0001/trials/0001/a.1/log"
    rm -r "$1-0001/trials/0001"
    : >go.1
    ended removed
    is "$? $(count "$1-0001" result)" "0 1" "$1: the trial is retried"
    like "$(cat "$1"-0001/log/0*/0* | grep '"op":"fail"')" "\"free\":true.*its folder was removed while it trained: $work/$1-0001/trials/0001/a.1" "and the failure says why"
}
removed pattern 'echo loss 0.5'
removed socket 'dl log loss=0.5'
conf moved 'max_trials = 4; max_length = 1;' '"while [ ! -e goal ]; do sleep 0.1; done; dl log loss={x}"'
beside moved dl run --local moved.conf
wait_for 300 sh -c '[ $(ls moved-0001/trials/*/a.1/log | wc -l) -ge 2 ]'
mv moved-0001 there
ended moved
is "$?" 3 "a moved experiment: exit status"
is "$(grep -c "^dl: $work/moved-0001: the experiment's folder was moved or removed; run 'dl resume' to continue in its new location$" moved.out) $(grep -c '^dl:' moved.out)" "1 1" "one line says so"
# shellcheck disable=SC2317
workers_have_ended () { ! pgrep -f "worker --slot local-.* -- $work/moved-0001\$"; }
wait_for 300 workers_have_ended
like "$(cat there/workers/local-*.log)" "the experiment's folder was moved or removed" "and its workers end with it"
: >goal
timeout 300 dl resume --local there >out 2>&1
is "$? $(count there result)" "0 4" "it continues there"

# ---- pause and then three resumes at once, before the workers react: the number of workers stays the same
conf thrice 'max_trials = 6; max_length = 1;' "\"until [ -f calmest ]; do sleep 0.1; done; dl log loss={x}\""
beside thrice dl run --local thrice.conf
wait_for 300 sh -c '[ $(ls thrice-0001/trials/*/a.1/log | wc -l) -ge 2 ]'
dl pause thrice >out
for i in 1 2 3; do
    timeout 300 dl resume --local thrice >thrice.$i 2>&1 &
    eval "resumed_$i=$!"
done
# shellcheck disable=SC2010
begun () { [ "$(ls thrice-0001/workers | grep -c '^local.*log')" -ge 4 ]; }
wait_for 300 begun
old_are_gone () { [ "$(pgrep -fc "worker --slot local-.* -- $work/thrice-0001\$")" -eq 2 ]; }
holds "two workers, as before" wait_for 300 old_are_gone
is "$(grep -l 'another command has just started\|nothing to resume' thrice.[123] | wc -l)" 2 "the others say so"
: >calmest
ended thrice
wait $resumed_1 $resumed_2 $resumed_3
is "$(count thrice-0001 result)" 6 "and the sweep completes"

# ---- a frozen worker that wakes up is fenced off
holds "another worker took over after the lease" wait_for 300 sh -c '[ $(cat freeze-0001/log/0*/0* | grep -c "\"op\":\"result\"") -eq 3 ]'
kill -CONT "$zombie"
ended freeze
is $? 0 "the sweep completes"
is "$(count freeze-0001 result)" 3 "three results, none twice"

done_testing
