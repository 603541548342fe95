#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The value of a trial (searcher.summary), searcher.goal, means of repeats, times of all attempts, running trials.
. "$srcdir/tests/lib.sh"

# curve NAME SEARCHER-KEYS: one trial that logs 5 3 1 2 8 at steps 1 to 5
curve () {
    cat >"$1.conf" <<EOF2
name = "$1";
entrypoint = "step=0; for v in 5 3 1 2 8; do step=\$((step + 1)); dl log --step=\$step loss=\$v score=\$v; done";
max_restarts = 0;
searcher = { name = "single"; metric = "loss"; max_length = 5; $2 };
hyperparameters = { x = 1; };
EOF2
    timeout 300 dl run --local "$1.conf" >"$1.out" 2>&1
}
measured='^a unit of length took [0-9.e-]+ s so far$'
best () { dl show --csv --columns=best "$1" | tail -n 1; }
curve last ''
is "$(best last)" 8 "the last value counts by default"
like "$(dl preview last-0001)" "$measured" "dl preview of an experiment uses its times"
like "$(dl preview last-0001)" '^[0-9.e-]+ trial-hours' "which gives hours"
curve best 'summary = "best";'
is "$(best best)" 1 "the best"
curve larger 'summary = "best"; smaller_is_better = false;'
is "$(best larger)" 8 "the best if larger is better"
curve max 'summary = "max";'
is "$(best max)" 8 "the largest"
curve min 'summary = "min"; smaller_is_better = false;'
is "$(best min)" 1 "the smallest"
curve mean 'mean_of_last = 4;'
is "$(best mean)" 3.5 "the mean of the last 4"
curve all 'mean_of_last = 9;'
is "$(best all)" 3.8 "the mean of fewer"
curve bad 'summary = "beste";'
like "$(cat bad.out)" "^bad.conf:4: 'searcher.summary' must be \"last\", \"best\", \"min\" or \"max\"" "another word"
curve both 'summary = "best"; mean_of_last = 2;'
like "$(cat both.out)" "^both.conf:4: 'searcher.mean_of_last' and 'searcher.summary' cannot be used together" "both"

# ---- metrics as Katib collects them: name=value on standard output or in a file, a filter, JSON, a strategy for each metric
# katib NAME SUMMARY METRICS-GROUP SHELL
katib () {
    cat >"$1.conf" <<EOF2
name = "$1";
entrypoint = "$4";
max_restarts = 0;
searcher = { name = "random"; max_trials = 1; metric = ["loss", "acc", "time"]; summary = $2;
             smaller_is_better = [true, false, true]; };
metrics = { $3 };
hyperparameters = { x = 1; };
EOF2
    timeout 300 dl run --local "$1.conf" >"$1.out" 2>&1
    dl show --csv --columns=metric.loss,metric.acc,metric.time "$1" 2>&1 | tail -n 1
}
lines='for v in 5 1 8; do echo t loss=$v, acc = $v time=$v lr=; done'
is "$(katib text '["min", "max", "last"]' 'format = "text";' "$lines")" "1,8,8" "min, max and latest"
is "$(katib one '"min"' 'format = "text";' "$lines")" "1,1,1" "one strategy for all"
is "$(katib filter '["min", "max", "last"]' 'pattern = "metric ([\\w|-]+) is ([+-]?\\d*(\\.\\d+)?)";' \
    'for v in 5 1 8; do for m in loss acc time; do echo metric $m is $v.5; done; done')" "1.5,8.5,8.5" "a filter"
cat >json.sh <<'EOF2'
for v in 5 1 8; do
    echo loss=0
    echo "{\"loss\": \"$v\", \"acc\": $v, \"time\": $v, \"timestamp\": 3}" >>"$1/metrics.log"
done
EOF2
is "$(katib file '["min", "max", "last"]' 'format = "json"; file = "metrics.log";' 'sh json.sh {attempt_dir}')" "1,8,8" \
    "JSON in a file"
katib three '["min", "max"]' 'format = "text";' "$lines" >/dev/null
like "$(cat three.out)" "'searcher.summary' has 2 values and 'searcher.metric' 3" "a strategy is missing"
katib xml '"min"' 'format = "xml"; file = "/tmp/x";' "$lines" >/dev/null
like "$(cat xml.out)" "^xml.conf:6: 'metrics.format' must be" "another format"
like "$(cat xml.out)" "^xml.conf:6: 'metrics.file' must be a path in the attempt's folder" "a file elsewhere"

# ---- the checkpoint that belongs to the best value
sed 's/"best";$/"saved";/; s/dl log --step=\$step/mkdir -p $DL_ATTEMPT_DIR\/ckpt; : >$DL_ATTEMPT_DIR\/ckpt\/0000000$step.h5; &/' best.conf >saved.conf
timeout 300 dl run --local saved.conf >out 2>&1
like "$(dl show saved 1)" '^  checkpoint of the best value: .*/trials/0001/a.1/ckpt/00000003.h5$' "the checkpoint of the best value is named"
like "$(cat out)" '^  its checkpoint: .*/a.1/ckpt/00000003.h5$' "also at the end"
sed 's/"saved"/"lastly"/; s/summary = "best";//' saved.conf >lastly.conf
timeout 300 dl run --local lastly.conf >out 2>&1
like "$(cat out)" '^  its checkpoint: .*/a.1/ckpt/00000005.h5$' "or that of the last"

# ---- goal: the search ends when a trial reaches it
cat >goal.conf <<'EOF2'
name = "goal"; entrypoint = "dl log loss={x}";
searcher = { name = "grid"; metric = "loss"; goal = 0.3; smaller_is_better = false; };
resources = { workers = 1; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; step = 0.1; }; };
EOF2
runs 0 "an experiment that reaches its goal is completed" dl run --local goal.conf
like "$(cat out)" '^searcher.goal \(0.3\) is reached$' "which is reported"
is "$(count goal-0001 result) $(count goal-0001 begin)" "4 4" "0, 0.1, 0.2 and 0.3, and no further trial begins"
timeout 300 dl continue --local goal >/dev/null 2>&1
is "$(count goal-0001 result)" 5 "it continues until the goal is reached again"

# ---- 0.1 prints as 0.1 in all JSON
is "$(dl show --json goal | grep -oE '"x": [0-9.]+' | sort | tr '\n' ' ')" '"x": 0.0 "x": 0.1 "x": 0.2 "x": 0.3 "x": 0.4 ' "dl show --json"
for what in "show goal 2" "best --json goal" "export --format=json goal"; do
    is "$(dl $what | grep -cE '"x": ?0\.[0-9]{2}')" 0 "dl $what"
done
is "$(cat goal-0001/trials/0002/a.1/hparams.json)" "$(printf '{\n  "x": 0.1\n}')" "hparams.json"

# ---- repeats: the best point has the best mean, not the luckiest seed
cat >seeds.conf <<'EOF2'
name = "seeds";
entrypoint = "case {x}{repeat} in 10) v=0;; 11) v=9;; 20) v=3;; 21) v=4;; esac; dl log --step=1 loss=$v size={x}";
searcher = { name = "grid"; metric = "loss"; repeats = 2; };
resources = { workers = 1; };
hyperparameters = { x = { type = "int"; minval = 1; maxval = 2; }; };
EOF2
timeout 300 dl run --local seeds.conf >out 2>&1
like "$(cat out)" '^best loss 3.5 \(mean of 2, deviation 0.71\): point 2, trials 3 to 4$' "the best point by its mean"
is "$(dl show --csv --columns=trial,point,repeat seeds | tail -n +2 | tr '\n' ' ')" "3,2,0 4,2,1 1,1,0 2,1,1 " "the table has its trials first"
like "$(dl show seeds)" '^trial +state .* point mean deviation +n +x$' "and the means"
is "$(dl export seeds | head -n 1 | grep -o 'point,repeat')" point,repeat "dl export has both"
is "$(dl show --json seeds | json '[(p["point"], p["mean"]["loss"]) for p in d["points"]]')" "[(1, 4.5), (2, 3.5)]" "--json has the points"
sed 's/"seeds"/"front"/; s/"loss"; repeats/("loss", "size"); repeats/; s/"grid"/"random"; max_trials = 2/' seeds.conf >front.conf
runs 0 "repeats of several metrics" dl run --local front.conf
is "$(count front-0001 result)" 4 "two trials of each point"

# The best point's seeds get 0.9 to 0.902; the luckiest seed of all gets 0.99.
cat >luck.conf <<'EOF2'
name = "luck";
entrypoint = "case {lr}{repeat} in 0.11) v=0.99;; 0.1*) v=0.5;; 0.2*) v=0.7;; *) v=0.90{repeat};; esac; dl log --step=1 val_acc=$v seed={seed}";
searcher = { name = "grid"; metric = "val_acc"; smaller_is_better = false; repeats = 3; };
max_restarts = 0;
resources = { workers = 1; };
notify = { command = "cat >NOTE"; };
hyperparameters = { lr = { type = "categorical"; vals = [0.1, 0.2, 0.3]; }; };
EOF2
sed -i "s|NOTE|$work/note|" luck.conf
best='val_acc 0\.901 \(mean of 3, deviation 0\.001\): point 3, trials 7 to 9'
timeout 300 dl run --local luck.conf >out 2>&1
like "$(cat out)" "^best $best$" "dl run: the mean, not the luckiest seed"
like "$(dl show luck)" "^best $best$" "dl show"
like "$(dl wait luck)" "^best $best$" "dl wait"
like "$(dl best luck)" "^best val_acc 0\.901 .*: point 3, trials 7 to 9 of luck-0001$" "dl best"
like "$(dl best luck)" "^trial 8 is nearest to the mean: val_acc 0.901$" "and the repeat that represents it"
like "$(cat note)" "9 trials; best $best\"" "notify"
is "$(dl best --json luck | json 'd["point"], d["n"], d["trial"], round(d["metrics"]["val_acc"], 9), d["hyperparameters"]')" \
    "3 3 8 0.901 {'lr': 0.3}" "dl best --json"
is "$(dl show --json luck | json 'd["best_point"], d["best_n"], d["best_trial"], round(d["best"], 9)')" "3 3 8 0.901" "dl show --json"
is "$(dl ls --json | json '[e["best"] for e in d["experiments"] if e["experiment"] == "luck-0001"]')" "['0.901']" "dl ls"
like "$(dl compare luck luck)" "^luck-0001 +0.901 +8 +0.901 " "dl compare"
is "$(dl compare --json luck luck | python3 -c 'import json, sys; e = json.load(sys.stdin)["experiments"][0]; print(e["at_budget"] < 0.902, e["area"] < 0.902)')" "True True" "also over time"
is "$(dl export luck | python3 -c 'import csv, sys; r = list(csv.DictReader(sys.stdin))[1]; print(r["point"], r["best"], round(float(r["mean"]), 4), r["n"])')" "1 0.99 0.6633 3" "dl export has both"
like "$(dl show luck 2)" "point 1, repeat 1: mean 0.663333 of 3, deviation 0.28$" "dl show EXPERIMENT TRIAL"
dl report luck -o luck.html >/dev/null
like "$(cat luck.html)" '<p class="value">0.901</p><p class="dim">mean of 3, deviation 0.001 · point 3, trials 7 to 9 ' "dl report: the headline"
like "$(cat luck.html)" '<code>--lr 0.3 </code>' "and what it offers to copy"
like "$(cat luck.html)" '^.*<tr><td>7–9</td>.*<td>0.901</td><td>0.001</td><td>3</td>' "its table has a row for each point"
is "$(grep -o '<tr><td>[0-9]*–[0-9]*' luck.html | wc -l)" 3 "and no others"

# points with missing repeats
sed 's/"luck"/"lack"/; s/entrypoint = "/&[ {lr}{repeat} = 0.10 ] \&\& exit 1; /' luck.conf >lack.conf
timeout 300 dl run --local lack.conf >out 2>&1
like "$(cat out)" "^best $best$" "a mean of fewer repeats is not the best"
is "$(dl show --csv --columns=trial,n lack | tail -n 3 | tr '\n' ' ')" "1,2 2,2 3,2 " "it is listed last, with its n"
sed 's/"lack"/"none"/; s/{lr}{repeat} = 0.10/{repeat} = 2/' lack.conf >none.conf
timeout 300 dl run --local none.conf >out 2>&1
like "$(cat out)" "^best val_acc 0.9005 \(mean of 2 of 3, deviation 0.00071\): point 3" "unless no point has all"

# a script that ignores the seed
sed 's/"luck"/"same"/; s/{repeat}/0/g' luck.conf >same.conf
timeout 300 dl run --local same.conf >out 2>&1
is "$(grep -c '^the repeats of every point gave the same value: the training does not use the seed' out)" 1 "dl run says that the seed is not used"
like "$(dl show same)" "^best val_acc 0.9 \(mean of 3, deviation 0\)" "their deviation is 0, not a rounding error"
dl report same -o same.html >/dev/null
like "$(cat same.html)" "<p>the repeats of every point gave the same value" "dl report says so"
is "$(dl show luck | grep -c 'repeats of every')" 0 "dl show of others does not"

# ---- rungs: compare trials at the longest length that enough of them reached
cat >rungs.conf <<'EOF2'
name = "rungs";
entrypoint = "echo >>FILE.{trial}; for e in $(seq {length}); do v=0.$(printf %02d $((20 + {x} * 5 + e))); [ $e{x} = 14 ] && v=0.99; dl log --step=$e acc=$v; done; [ {length} -lt 9 ] || dl log --step=9 acc=$v$(wc -l <FILE.{trial})";
searcher = { name = "asha"; metric = "acc"; smaller_is_better = false; max_trials = 10; max_length = 9; divisor = 3; };
resources = { workers = 1; };
hyperparameters = { x = { type = "int"; minval = 1; maxval = 12; }; };
EOF2
sed -i "s|FILE|$work/starts|g" rungs.conf
timeout 300 dl run --local rungs.conf >out 2>&1
best=$(sed -n 's/^best //p' out)
like "$best" "^acc 0\.[0-8][0-9]+: trial [0-9]+ at length 9$" "dl run: at the full length ($best)"
trial=$(dl show --json rungs | json 'd["best_trial"], d["best_length"]')
is "$trial" "$(echo "$best" | sed -E 's/.*trial ([0-9]+) at length (.*)/\1 \2/')" "dl show --json"
like "$(dl show rungs)" "^best $best$" "dl show"
like "$(dl best rungs)" "DL_LENGTH=9 " "dl best trains to that length"
is "$(dl best --json rungs | json 'd["trial"], d["length"]')" "$trial" "dl best --json"
value=${best#acc }; value=${value%%:*}
is "$(dl compare --json rungs rungs | python3 -c 'import json, sys; e = json.load(sys.stdin)["experiments"][0]; print(e["best"], e["at_budget"])')" "$value $value" "dl compare"
is "$(dl show --csv --columns=trial,best,best_length rungs | sed -n 2p)" "${trial% 9},$value,9" "the table has it first"
dl report rungs -o rungs.html >/dev/null
like "$(cat rungs.html)" "<p class=\"value\">$value</p><p class=\"dim\">trial ${trial% 9} at length 9 " "dl report"
runs 1 "dl reproduce" dl reproduce rungs
like "$(cat out)" "^trial ${trial% 9} of .*rungs-0001, length 9 \(3 segments, 3 attempts\)$" "it says in how many segments the trial was trained"
like "$(cat out)" "^not reproduced: acc is .* at length 9, and was $value$" "it compares at that length"
like "$(cat out)" "in pieces \(3 segments, 3 attempts\), this one at once: .* seeds itself at each start cannot match$" "and says why it cannot match"

# ---- times add up over attempts; a running trial shows its progress
cat >slow.conf <<'EOF2'
name = "slow";
entrypoint = "if [ -e FILE ]; then exit 3; fi; touch FILE; dl log --step=1 loss=4; sleep 1.2; dl log --step=7 loss=2; while [ ! -e GO ]; do sleep 0.1; done; exit 1";
max_restarts = 1;
searcher = { name = "single"; metric = "loss"; max_length = 27; };
hyperparameters = { x = 1; };
EOF2
sed -i "s|FILE|$work/file|g; s|GO|$work/go|" slow.conf
timeout 300 dl run --local slow.conf >out 2>&1 &
holds "a running trial has its step and its segment's length" wait_for 100 sh -c 'dl show slow 2>/dev/null | grep -q " 7/27 "'
like "$(dl show slow 1)" '^  now at 7 of 27: loss 2, [0-9.]+s ago, [0-9.]+ a second$' "its newest value, age and rate"
like "$(dl show slow)" '^worker .*: trial 1 to 27, at 7: loss 2, [0-9.]+s ago' "so does its worker"
dl show --json slow | python3 -c 'import json, sys; t = json.load(sys.stdin)["trials"][0]; assert t["step"] == 7 and t["value"] == 2 and t["target"] == 27 and t["age"] >= 0 and 1 < t["rate"] < 6, t'
ok $? "and --json"
is "$(dl show slow 1 | grep -c 'no progress')" 0 "it makes progress"
age () { # age FOLDER: make its files 10 minutes old
    find "$1" -type f -exec touch -d '10 minutes ago' {} +
}
age slow-0001/trials/0001/a.1
like "$(dl show slow 1)" '^  no progress since [-0-9]+ [0-9:]+, for 1[0-9]m[0-9]+s: attempt 1 has printed, logged and saved nothing$' "a silent trial: since when"
dl show --json slow 1 | python3 -c 'import json, sys, time; p = json.load(sys.stdin)["no_progress"]; assert 600 <= time.time() - p["since"] < 1200 and p["why"] == "attempt 1 has printed, logged and saved nothing", p'
ok $? "and --json"
touch go
wait

# ---- workers that are gone
sed "s/\"slow\"/\"idle\"/; s|$work/file|$work/none|; s|$work/go|$work/never|; s/max_restarts = 1/max_restarts = 9/" slow.conf | sed "s|touch [^;]*;||" >idle.conf
dl run --local idle.conf >out 2>&1 &
holds "a worker is running" wait_for 100 sh -c 'dl show idle | grep -q "^worker "'
like "$(dl show idle | head -n 1)" ': running, searcher' "the experiment runs"
kill -9 $!
holds "the worker is gone, and no longer shown as running" wait_for 100 sh -c 'dl show idle | grep -q ": running, but no worker is left: the last one ended .* ago, searcher"'
like "$(dl show idle)" "^'dl resume idle-0001' starts workers$" "and what to do"
sed "s/\"slow\"/\"rest\"/; s|$work/go|$work/never|; s|touch [^;]*;||" slow.conf | sed "s|$work/file|$work/none|" >rest.conf
timeout 300 dl run --local rest.conf >out 2>&1 &
wait_for 100 sh -c 'dl show rest 2>/dev/null | grep -q " 7/27 "'
dl pause rest >out 2>&1
wait $!
age rest-0001/trials/0001/a.1
like "$(dl show rest 1)" '^  no progress since [-0-9]+ [0-9:]+, for 1[0-9]m[0-9]+s: ExperimentPaused[^;]*; attempt 2 has not started$' "a waiting trial: since when, and why"
is "$(dl show --csv --columns=state,seconds slow | awk -F, 'NR == 2 { print $1, ($2 > 1.2) }')" "failed 1" "a failed trial has the time of its attempts"
done_testing
