#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whole sweeps with local workers and trainers of every kind.
. "$srcdir/tests/lib.sh"

conf () { # conf NAME SEARCHER-LINES ENTRYPOINT [MORE]
    write_conf "$1" "$3" "$2" 'worker = { heartbeat = 1; lease = 4; grace = 5; };' "$4" \
        'hyperparameters = { lr = { type = "log"; minval = -3; maxval = 0; count = 3; }; opt = { name = { type = "categorical"; vals = ["a b", "c'"'"'d"]; }; k = 7; }; };'
}

# ---- a shell script that calls dl log; hyperparameters as arguments, as variables and in a file
program shell.sh <<'END'
set -e
grep -q '"k": 7' "$DL_HPARAMS"
[ "$DL_HP_opt_name" = "$1" ]
[ "$DL_HP_lr" = "$2" ]
for step in $(seq 1 "$DL_LENGTH"); do
    dl log --step "$step" "loss=$DL_HP_lr" other=1
done
dl log loss=$(awk "BEGIN{print $DL_HP_lr * 2}")
END
conf grid 'name = "grid"; max_length = 2;' '"./shell.sh {opt.name} {lr}"'
out=$(timeout 300 dl run --local grid.conf)
is $? 0 "grid of a shell script"
like "$out" 'grid: completed' "it completed"
is "$(count grid-0001 result)" 6 "3 x 2 points gave 6 results"
is "$(count grid-0001 fail)" 0 "none failed"
like "$(dl show grid-0001)" '^ +[0-9]+ completed +2 +0.002 +0.002 .* 0.001 +(a b|c.d)$' "the best trial has the value logged last"
holds "metrics.h5" [ -f grid-0001/trials/0001/a.1/metrics.h5 ]
like "$(dl show grid 1)" 'loss +3 +' "a call without --step counts one further"
like "$(dl ls)" 'grid-0001 +completed +grid +100% +6' "ls"
dl show --json grid | python3 -c 'import json,sys; assert len(json.load(sys.stdin)["trials"]) == 6'
ok $? "show --json"

# ---- dl waits for a missing log entry, which a network file system may deliver late; the tests continue meanwhile
mkdir gap
cp -r grid-0001 gap/gap-0001
touch gap/gap-0001/log/000000/99999999 gap/gap-0001/log/000000/note.txt
dl show gap/gap-0001 >/dev/null 2>err
is $? 0 "names that are not entries are ignored"
rm gap/gap-0001/log/000000/00000002
{ timeout 300 dl show gap/gap-0001 >/dev/null 2>gap.err; echo $? >gap.status; } &
gap=$!

# ---- metrics from printed lines; an entrypoint without a shell
conf print 'name = "random"; max_trials = 5;' '["printf", "noise\nstep 3: loss=%s\n", "{lr}"]' \
    'metrics = { pattern = "step {step}: loss={loss}"; };'
timeout 300 dl run --local print.conf >out
is $? 0 "metrics by pattern"
is "$(count print-0001 result)" 5 "5 results"
like "$(dl logs print 1)" '^step 3: loss=0\.' "logs"
like "$(dl show --values print 1)" ' loss +3 ' "the step is read from the line"
like "$(cat out)" 'trial 1 +length 1 +loss 0\.' "progress lines without a terminal"

# ---- the same seed gives the same trials
timeout 300 dl run --local print.conf >/dev/null
is "$(cat print-0001/log/0*/0* | grep -o '"trial":[0-9]*,"length.*"hparams":{.*' | sed 's/"owner":"[^"]*",//' | sort)" \
    "$(cat print-0002/log/0*/0* | grep -o '"trial":[0-9]*,"length.*"hparams":{.*' | sed 's/"owner":"[^"]*",//' | sort)" "same seed, same trials"

# ---- asha: promotions, NaN, failing trials, restarts counted
program asha.sh <<'END'
case $DL_TRIAL in
2) echo loss nan; exit 0 ;;
3) exit 3 ;;
4) [ "$DL_ATTEMPT" -ge 3 ] || kill -9 $$ ;;
5) [ "$DL_ATTEMPT" -ge 2 ] || exit 0 ;;
esac
echo "loss 0.$DL_TRIAL"
END
conf asha 'name = "asha"; max_trials = 9; max_length = 9; divisor = 3;' '"./asha.sh"' \
    'metrics = { pattern = "loss {loss}"; }; max_restarts = 2;'
timeout 300 dl run --local asha.conf >out
is $? 0 "asha with bad trials"
is "$(count asha-0001 end)" 1 "ended once"
is "$(cat asha-0001/log/0*/0* | grep '"op":"begin"' | grep -c '"x"')" 9 "9 trials"
is "$(cat asha-0001/log/0*/0* | grep '"op":"fail"' | grep -c '"trial":3,')" 3 "trial 3 ran 1 + 2 times"
is "$(count asha-0001 exit)" 2 "then dl gave it up; one without the metric at once"
like "$(dl show asha 3)" 'exit status 3' "show says why"
like "$(dl show asha 4)" 'exit status 137 \(Killed\)' "a killed trainer was retried"
is "$(cat asha-0001/log/0*/0* | grep '"op":"fail"' | grep -c 'ended without logging')" 1 "a missing metric is a failure"
like "$(dl show asha)" '^ +2 .* nan' "NaN is a bad trial"
is "$(cat asha-0001/log/0*/0* | grep '"op":"result"' | grep -o '"trial":[0-9]*,"attempt":[0-9]*,.*"length":[0-9]*' | sed 's/"attempt":[0-9]*,.*"length"/"length"/' | sort | uniq -d)" "" \
    "no segment has two results"

# ---- every trial fails: the experiment failed
conf fail 'name = "random"; max_trials = 3;' '"exit 1"' 'max_restarts = 0;'
runs 1 "all trials failed: exit status" dl run --local fail.conf
like "$(dl ls)" 'fail-0001 +failed' "and state"
runs 2 "a failed experiment is not resumed" dl resume --local fail

# ---- prepared metrics files: removed if no metric came, and not required
conf spare 'name = "grid"; max_length = 1;' '"./spare.sh {trial_dir}"' 'metrics = { pattern = "loss={loss}"; }; max_restarts = 0;'
sed -i 's/workers = 2/workers = 1/' spare.conf
program spare.sh <<'END'
case $DL_TRIAL in
2) exit 1 ;;
3) find "${1%/trials/*}" -name '.[0-9a-f]*' -delete ;;
esac
echo "loss=$DL_TRIAL"
END
timeout 300 dl run --local spare.conf >out 2>&1
is "$(count spare-0001 result)" 5 "a worker continues if its spare files for metrics are removed"
is "$(cd spare-0001/trials && find . -name metrics.h5 | sort | tr -d '\n')" \
    ./0001/a.1/metrics.h5./0003/a.1/metrics.h5./0004/a.1/metrics.h5./0005/a.1/metrics.h5./0006/a.1/metrics.h5 \
    "one file of metrics for each attempt with metrics, and for no other"
is "$(find spare-0001 -name '.[0-9a-f]*')" "" "no spare file is left"

# ---- damage is reported
entry=$(ls print-0001/log/0*/0* | tail -1)
sed -i 's/time/tame/' "$entry"
dl show print-0001 >/dev/null 2>err
is $? 5 "a damaged log entry: exit status"
like "$(cat err)" "$entry: damaged" "and which file"

wait $gap
is "$(cat gap.status)" 5 "a missing log entry: exit status"
like "$(cat gap.err)" "/gap-0001/log/000000/00000002: missing, but later entries exist" "and which one"

done_testing
