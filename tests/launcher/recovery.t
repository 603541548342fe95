#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# whole sweeps in local processes that are paused, killed or frozen
. "$srcdir/tests/lib.sh"

conf () { # conf NAME SEARCHER-LINES ENTRYPOINT
    cat >"$1.conf" <<END
name = "$1";
entrypoint = $3;
searcher = { name = "random"; metric = "loss"; $2 };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 2; };
worker = { heartbeat = 1; lease = 4; grace = 5; };
END
}

# ---- a worker is frozen; its cases come last
conf freeze 'max_trials = 3; max_length = 1;' '"sleep 1; dl log loss=$DL_TRIAL"'
beside freeze dl run --local --workers=2 freeze.conf
# each of the two workers has begun
wait_for 300 sh -c '[ $(ls freeze-0001/trials/*/a.1/log | wc -l) -ge 2 ]'
zombie=$(pgrep -f "worker --slot local-.*-1 -- $work/freeze-0001$" | head -1)
kill -STOP "$zombie"

# ---- pause, resume
cat >slow.sh <<'END'
#!/bin/sh
trap 'echo stopped >&2; exit 0' TERM
echo begun
while [ ! -f go ]; do sleep 0.1; done
dl log --step "$DL_LENGTH" loss=1
END
chmod +x slow.sh
conf slow 'max_trials = 4; max_length = 5;' '"./slow.sh"'
timeout 300 dl run --local slow.conf >out &
pid=$!
wait_for 300 sh -c '[ $(cat slow-0001/trials/*/a.1/log | grep -c begun) -eq 2 ]'
like "$(dl pause slow)" 'its workers save what they have' "pause"
wait $pid
is $? 4 "run ends as paused"
like "$(dl ls)" 'slow-0001 +paused' "state paused"
is "$(count slow-0001 park)" 2 "its trials were parked"
like "$(cat slow-0001/trials/*/a.1/log)" '^stopped' "a trainer that a shell started had its time to save"
touch go
timeout 300 dl resume --local slow >out
is $? 0 "resume"
is "$(count slow-0001 result)" 4 "each trial has its result"
is "$(count slow-0001 fail)" 0 "a pause is no failure"
rm go

# ---- kill -9 of workers and of the launcher in mid-sweep
conf kill 'max_trials = 8; max_length = 1;' '"until [ -f calm ]; do sleep 0.1; done; dl log loss=$DL_TRIAL"'
timeout 300 dl run --local kill.conf >out &
pid=$!
for attempts in 2 3 4; do
    # each of the two workers has one
    wait_for 300 sh -c "[ \$(ls kill-0001/trials/*/a.*/log | wc -l) -ge $attempts ]"
    pkill -9 -o -f "worker --slot local-.* -- $work/kill-0001$"
done
touch calm
wait $pid
is $? 0 "workers were killed, the sweep completes"
is "$(count kill-0001 result)" 8 "each trial has one result"
is "$(count kill-0001 fail)" 0 "a dead worker is no failed trial"
lost=$(count kill-0001 lost)
[ "$lost" -ge 1 ]
ok $? "lost attempts were taken over ($lost)"

conf orphan 'max_trials = 6; max_length = 1;' '"until [ -f calmer ]; do sleep 0.1; done; dl log loss=1"'
timeout 300 dl run --local orphan.conf >out &
orphan=$!
wait_for 300 sh -c 'ls orphan-0001/trials/*/a.1/log'
pkill -9 -P $orphan
wait $orphan
wait_for 300 sh -c "! pgrep -f 'worker.* $work/orphan-0001$'"
ok $? "local workers end with their launcher"
touch calmer
timeout 300 dl resume --local orphan >out
is $? 0 "resume after the launcher was killed"
is "$(count orphan-0001 result)" 6 "each trial has one result"

# ---- what a worker had not taken in when it died or hung stands in the log: no holes, no doubles, and no training twice
cat >train.sh <<'END'
# train.sh TO FOLDER [LAST]: the worker hangs from line 3 on, or from line HANG_AT on, and is killed at line KILL_AT
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
taken () { # taken NAME KILL_AT VARIABLES WANTED: the values of loss of a trial whose worker hangs, and is killed or is not
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
# the checkpoint is that of the last epoch, but its value was never printed
taken unsaid 6 'SILENT_AT = "6";' "0 1 2 3 4 5 6 1 2 3 4 5 6 " "a value that was not printed is not invented: it is trained again"
like "$(dl show unsaid 1)" 'went on from the files in a.1, and trained nothing' "and the failure says so"

# ---- pause, and three times resume at once, before the workers have read any of it: as many workers as before
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
wait_for 300 old_are_gone
ok $? "two workers, as before"
is "$(grep -l 'another command has just started\|nothing to resume' thrice.[123] | wc -l)" 2 "the others say so"
: >calmest
ended thrice
wait $resumed_1 $resumed_2 $resumed_3
is "$(count thrice-0001 result)" 6 "and the sweep completes"

# ---- a frozen worker that wakes up is fenced
wait_for 300 sh -c '[ $(cat freeze-0001/log/0*/0* | grep -c "\"op\":\"result\"") -eq 3 ]'
ok $? "another worker took over after the lease"
kill -CONT "$zombie"
ended freeze
is $? 0 "the sweep completes"
is "$(count freeze-0001 result)" 3 "three results, none twice"

done_testing
