#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A fault that all trials share pauses the experiment, and dl reports what failed.
. "$srcdir/tests/lib.sh"

# conf NAME ENTRYPOINT [MORE]
conf () {
    cat >"$1.conf" <<END
name = "$1";
entrypoint = "$2";
metrics = { pattern = "epoch {step}: accuracy = {accuracy}"; };
searcher = { name = "random"; metric = "accuracy"; smaller_is_better = false; max_trials = 12; max_length = 3; };
hyperparameters = { lr = { type = "log"; minval = -3; maxval = -1; }; };
resources = { workers = 2; };
worker = { heartbeat = 1; lease = 60; grace = 5; };
reproducibility = { experiment_seed = 5; };
$3
END
}

attempts () {
    find "$1/trials" -name 'a.*' | wc -l
}

# ---- three shared faults, each with one worker and with two
cat >import.sh <<'END'
echo "Traceback (most recent call last):" >&2
echo "  File \"$DL_ATTEMPT_DIR/x.py\", line $DL_TRIAL" >&2
echo "ModuleNotFoundError: No module named 'numpy' at 0x7f${DL_TRIAL}a" >&2
exit 1
END
cat >other.sh <<'END'
for i in 1 2 3; do echo "Epoch $i: acc = 0.$i$DL_TRIAL"; done
END
conf typo 'exec sh nosuch.sh'
conf import 'sh import.sh'
conf pattern 'sh other.sh'
for f in typo import pattern; do
    beside $f dl run --local --workers=1 $f.conf
done
for f in typo import pattern; do
    ended $f
    is $? 11 "$f: exit status"
    is "$(attempts $f-0001)" 3 "$f: attempts spent"
    is "$(count $f-0001 fail) $(count $f-0001 pause)" "3 1" "$f: failures, and one pause"
    like "$(cat $f.out)" "^paused after 3 attempts failed in the same way before any result: " "$f: dl run says so"
    like "$(cat $f.out)" "run 'dl resume $f-0001' to continue" "$f: and what to do"
    beside two_$f dl run --local $f.conf
done
for f in typo import pattern; do
    ended two_$f
    is $? 11 "$f, two workers: exit status"
    [ "$(attempts $f-0002)" -le 4 ]
    ok $? "$f, two workers: attempts spent ($(attempts $f-0002))"
done
timeout 300 dl run --local --workers=8 import.conf >out3 2>&1
is "$? $(count import-0003 fail) $(count import-0003 pause)" "11 3 1" "eight workers: three failures"
[ "$(attempts import-0003)" -le 4 ]
ok $? "and three attempts, or four on a busy machine ($(attempts import-0003))"
is "$(cat import-0003/log/0*/0* | sed -n '/"op":"pause"/,$p' | grep -c '"op":"begin"')" 0 "and no attempt begins after them"
like "$(cat import-0003/log/0*/0* | grep -m 1 '"op":"begin"')" '"by":"local-[0-9]+-[123]"' "by the first workers, for which the others wait"
like "$(cat pattern.out)" 'ended without logging the metric "accuracy"; nothing was logged; metrics.pattern matched 0 of 3 lines; the nearest line: "Epoch 1: acc = 0.13"' \
    "no metric: what the pattern found, and the nearest line"
is "$(count pattern-0001 exit)" 2 "a run without the metric is not retried"
out=$(dl show import-0001)
like "$out" "^paused after 3 attempts.*: exit status 1: ModuleNotFoundError: No module named 'numpy'" "dl show: the cause"
like "$out" "^  \\| ModuleNotFoundError" "and the end of the log"
like "$out" "open .*exit status 1: ModuleNotFoundError" "and the reason in the table"
like "$(dl ls)" "^import-0001 +paused \\(fault\\)" "dl ls"
like "$(dl show import-0001 1)" "last failure: exit status 1: ModuleNotFoundError" "a trial's page"
dl wait import-0001 >out
is $? 11 "dl wait: exit status"
like "$(cat out)" "^paused after 3 attempts" "and the cause"

like "$(dl failures import-0003)" '; 3 attempts failed or were lost$' "dl failures: does not count attempts that the pause stopped"

# ---- as soon as one trial logs a metric, all others may begin, however long it trains
conf alive 'echo epoch 1: accuracy = 0.1; until [ $(ls -d alive-0001/trials/*/a.1 | wc -l) -eq 8 ]; do sleep 0.1; done; echo epoch 3: accuracy = 1'
sed -i 's/max_trials = 12/max_trials = 8/' alive.conf
timeout 300 dl run --local --workers=8 alive.conf >out4 2>&1
is "$? $(count alive-0001 result)" "0 8" "eight workers that wait for each other"

# ---- resume: three more attempts, and once the fault is fixed all trials
runs 11 "resume without a change: paused again" dl resume --local --workers=1 pattern-0001
is "$(attempts pattern-0001)" 6 "after three attempts more"
sed -i 's/Epoch/epoch/; s/acc/accuracy/' other.sh
runs 0 "fixed and resumed: completed" dl resume --local pattern-0001
is "$(count pattern-0001 result)" 12 "all trials have a result, including those that had failed"
is "$(grep -c '^failed: ' out)" 0 "and none failed"

# ---- different failures are not a shared fault
conf mixed 'exit $((DL_TRIAL + 1))' 'max_restarts = 0;'
sed -i 's/max_trials = 12/max_trials = 5/' mixed.conf
runs 1 "different failures: all trials fail" dl run --local mixed.conf
is "$(count mixed-0001 pause)" 0 "no pause"
like "$(cat out)" '^failed: 5 of 5 trials' "the summary has them"

# ---- dl does not pause an experiment when nothing is left to run
conf last 'exit 1' 'max_restarts = 2;'
sed -i 's/max_trials = 12/max_trials = 1/' last.conf
runs 1 "three failures of the only trial: failed" dl run --local last.conf
is "$(count last-0001 pause)" 0 "no pause"

# ---- slow experiments, which run while the tests continue; their checks come below
conf half '[ $DL_TRIAL -lt 4 ] || { echo no luck >&2; exit 9; }; echo epoch 3: accuracy = 0.5' 'max_restarts = 0;'
sed -i 's/max_trials = 12/max_trials = 8/' half.conf
conf dirty "printf '%0400d \\\\033[31mred\\\\377\\\\n' 7; exit 1"
beside half dl run --local half.conf
beside most dl run --local --set 'name="most"' --set max_failed=5 half.conf
beside dirty dl run --local --workers=1 dirty.conf

# ---- a fault of one node: dl waits for results from the other nodes before it pauses
own_name='unshare -u'
$own_name hostname n1 2>/dev/null || own_name='unshare -U --map-current-user --keep-caps -u'
if $own_name hostname n1 2>/dev/null; then
    worker () { # worker HOST EXPERIMENT: run a worker under this host name
        $own_name sh -c "hostname $1; exec timeout 300 dl worker --slot $1 $2" >>"$1.out" 2>&1
    }
    conf one '[ $(hostname) = n2 ] || { echo broken >&2; exit 1; }; until [ -f go ]; do sleep 0.1; done; echo epoch 3: accuracy = 1'
    sed -i 's/max_trials = 12/max_trials = 4/' one.conf
    dl run --no-workers one.conf >out
    worker n2 one-0001 &
    one=$!
    wait_for 100 sh -c 'ls one-0001/trials/*/a.1/log'
    worker n1 one-0001 &
    one="$one $!"
    holds "three failures on one machine, while another one trains" wait_for 200 sh -c '[ "$(cat one-0001/log/0*/0* | grep -c "\"op\":\"fail\"")" -eq 3 ]'
    conf both 'echo broken >&2; exit 1'
    dl run --no-workers both.conf >out
    worker n2 both-0001 &
    both=$!
    worker n1 both-0001 &
    wait $both $!
    is "$(dl ls | grep -c '^both-0001 *paused (fault)') $(count both-0001 pause)" "1 1" "a fault of both hosts: paused"
    [ "$(attempts both-0001)" -le 5 ]
    ok $? "attempts spent ($(attempts both-0001))"
    # meanwhile
    is "$(count one-0001 fail) $(count one-0001 pause)" "3 0" "a fault of one host: no pause while the other trains, and no further failure"
    touch go
    wait $one
    like "$(dl ls)" '^one-0001 +completed' "the other host gets results, and the experiment completes"
else
    skip "a fault of one machine" "no name of one's own for a host"
fi

# ---- max_failed
ended half
is $? 12 "more than half of the trials failed: exit status"
like "$(cat half.out)" '^half: partial after ' "and state"
like "$(cat half.out)" '^failed: 5 of 8 trials, more than max_failed \(4\): exit status 9: no luck' "and the summary says why"
like "$(dl ls)" '^half-0001 +partial' "dl ls"
dl wait half >out
is $? 12 "dl wait"
runs 12 "a partial experiment can continue" dl continue --local --trials=9 half-0001
ended most
is $? 0 "max_failed: completed"
like "$(cat most.out)" '^failed: 5 of 8 trials: exit status 9: no luck' "failed trials are reported anyway"

# ---- a last line of output is cleaned and shortened
ended dirty
is $? 11 "a last line of arbitrary bytes"
dl show dirty >out 2>&1
like "$(cat out)" "^paused .*: exit status 1: 0{150}" "is reported"
is "$(LC_ALL=C tr -d '\n\t -~' <out | wc -c)" 0 "without control characters"

# ---- progress: repeated failures of the same kind are no fault while each attempt gets further
cat >long.sh <<'END'
# long.sh LENGTH FOLDER STEPS [FROM]: train STEPS more epochs, print them unless SILENT, then die
s=0
[ -e "${4:-}/last" ] && s=$(cat "$4/last")
echo "goes on from $s"
to=$((s + $3))
echo constant >"$2/config"
while [ $s -lt "$1" ]; do
    [ $s -lt $to ] || { echo "Connection closed by peer"; kill -9 $$; }
    s=$((s + 1))
    [ "$SILENT" ] && [ $s -lt "$1" ] || echo "epoch $s: accuracy = 0.$s"
    [ "$NO_FILES" ] || echo $s >"$2/last"
done
END
dies () { # dies NAME STEPS VARIABLES: run one trial of 12 epochs that dies every STEPS epochs
    conf "$1" "exec sh long.sh {length} {attempt_dir} $2 [{resume_dir}]" "environment = { variables = { $3 }; }; max_restarts = 3;"
    sed -i 's/"random"/"single"/; s/max_trials = 12; max_length = 3/max_length = 12/' "$1.conf"
    timeout 300 dl run --local --workers=1 "$1.conf" >"$1.out" 2>&1
    status=$?
}
dies steps 2 ''
is "$status $(count steps-0001 fail) $(count steps-0001 result)" "0 5 1" "attempts that log new steps count neither as equal failures nor as restarts"
dies files 2 'SILENT = "1";'
is "$status $(count files-0001 fail) $(count files-0001 result)" "0 5 1" "nor do those that leave newer files"
dies still 2 'NO_FILES = "1";'
is "$status $(count still-0001 fail)" "11 4" "without progress three more are a fault"
like "$(cat still.out)" 'Connection closed by peer' "that is reported"
dies same 0 'SILENT = "1"; NO_FILES = "1";'
is "$status $(count same-0001 fail)" "11 4" "files that never change are not progress"
like "$(cat same-0001/workers/*.log)" "same-0001 is paused: killed by signal 9" "and the log of the worker says why it ends"

done_testing
