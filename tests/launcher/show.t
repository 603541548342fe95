#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl show: fitting the window, selecting trials and columns, JSON and CSV with real values.
. "$srcdir/tests/lib.sh"
unset COLUMNS

cat >many.conf <<'EOF2'
name = "many";
entrypoint = "test {batch} != 32 || exit 3; for i in 1 2 3; do dl log --step=$i loss={lr}; done";
max_restarts = 0;
searcher = { name = "random"; metric = "loss"; max_trials = 8; max_length = 3; };
resources = { workers = 1; };
reproducibility = { experiment_seed = 3; };
hyperparameters = {
    lr = { type = "loguniform"; min = 1e-4; max = 1e-1; };
    time = { type = "int"; minval = 1; maxval = 9; };
    batch = { type = "categorical"; vals = [16, 32, 64]; };
    nested = { momentum = { type = "float"; minval = 0; maxval = 1; when = { optimizer = "sgd"; }; }; };
    weight_decay = { type = "loguniform"; min = 1e-6; max = 1e-2; };
    optimizer = { type = "categorical"; vals = ["sgd", "adam"]; };
    flags = { type = "categorical"; vals = [true, false]; };
};
EOF2
timeout 300 dl run --local many.conf >out 2>&1
sed 's/^/# /' out

# ---- the window
dl show many >wide
like "$(cat wide)" '^trial +state +length +best +last +time +attempts +batch +flags +lr +nested.momentum +optimizer +time +weight_decay +why$' "a file has all columns"
COLUMNS=90 dl show many >narrow
is "$(sed -n '/^trial/,$p' narrow | grep -v '^(no room' | awk 'length > 90')" "" "no line is too long"
like "$(cat narrow)" '^trial +best +batch +flags +lr +nested.momentum +optimizer +time +weight_decay$' "the least important columns are left out"
like "$(cat narrow)" '^\(no room for attempts, time, last, length, state, why; ' "and named"
COLUMNS=40 dl show many >narrow
is "$(sed -n '/^trial/,$p' narrow | grep -v '^(no room' | awk 'length > 40')" "" "nor in a narrow window"
lr=$(sed -n '/^trial/,$p' wide | awk 'NR == 2 { print $10 }')
is "$(sed -n '/^trial/,$p' narrow | awk 'NR == 2 { print $5 }')" "$lr" "no digit of a parameter is lost ($lr)"

# on a terminal: colours, unless NO_COLOR is set
on_terminal () {
    TERM=xterm python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' dl show --where 'state==failed' many </dev/null 2>&1
}
if python3 -c 'import pty' 2>/dev/null; then
    like "$(on_terminal | cat -v)" '\^\[\[31mfailed' "failed trials are red"
    is "$(NO_COLOR=1 on_terminal | cat -v | grep -c '\^\[\[')" 0 "NO_COLOR"
fi
is "$(dl show many | cat -v | grep -c '\^\[\[')" 0 "no colour in a file"

# ---- metrics that are logged but not optimised
sed 's/"many"/"also"/; s/dl log --step=$i loss={lr};/dl log --step=$i loss={lr} acc={time}$i b=1 c=nan d=3 e=4;/' many.conf >also.conf
timeout 300 dl run --local also.conf >out 2>&1
like "$(cat out)" '^trial .* attempts +acc +b +c +d +batch' "the first four have columns, also at the end of dl run"
like "$(cat out)" '^\(also logged, and shown by --columns: e\)$' "others are named"
is "$(dl show --csv --columns=acc,hp.time --where='acc > 0' also | awk -F, 'NR > 1 && $1 != $2 "3"')" "" "the newest value"
is "$(dl show --csv --columns=acc,e --sort=-acc --trials=1 also | tail -n1)" "$(dl show --csv --columns=hp.time --where='batch != 32' --sort=-hp.time --trials=1 also | tail -n1)3,4" "--sort by one, --columns of one"
like "$(COLUMNS=90 dl show also)" '^\(no room for attempts, time, d, c, b, acc, last' "in a narrow window they go first"
is "$(dl show --columns=state,c also | awk 'NR > 1 { print $1, $2 }' | sort -u | tr '\n' ' ')" "completed nan failed - " "nan differs from a value that was never logged"
is "$(dl show also | awk 'NR > 1 && $2 == "completed" && /nan/ { n++ } $2 == "completed" { all++ } END { print n - all }')" 0 "also without --columns"
for how in "show --csv" "export"; do
    dl $how also >all.csv
    is "$(head -n1 all.csv | grep -o 'metric\.[a-z]*' | tr '\n' ' ')" "metric.acc metric.b metric.c metric.d metric.e " "dl $how has all of them"
    is "$(python3 -c 'import csv; print({(r["state"], r["metric.acc"] == r["hp.time"] + "3", r["metric.c"], r["metric.e"]) for r in csv.DictReader(open("all.csv"))} ^ {("completed", True, "", "4"), ("failed", False, "", "")})')" "set()" "dl $how: their newest values"
done
for how in "show --json" "export --format=json"; do
    is "$(dl $how also | python3 -c 'import json, sys
all = json.load(sys.stdin)
print({(t["state"], t["metric.d"]) for t in (all["trials"] if isinstance(all, dict) else all)} ^ {("completed", 3), ("failed", None)})')" "set()" "dl $how"
done
is "$(dl show --json --trials=1 also | grep -c '"metric.e": *4')" 1 "of one trial"
is "$(dl show --json --columns=metric.acc,e also | grep -o '"metric[.][a-z]*"' | sort -u | tr '\n' ' ')" '"metric.acc" "metric.e" ' "with --columns those, by either name"
like "$(dl show --columns=trial,ac also 2>&1)" "did you mean 'acc'" "a misspelled one"
is "$(dl show --csv --where='acc > 0' also | head -n1)" "$(dl show --csv also | head -n1)" "CSV without --columns stays as it is"
is "$(dl show --csv --where='acc < 0' also)" "$(dl show --csv also | head -n1)" "also if no trial is left"

# ---- selecting trials and columns
is "$(dl show --columns=trial,state --where='state==failed' many | awk 'NR > 1 { print $2 }' | sort -u)" failed "--where of a state"
nfailed=$(dl show --columns=trial --where='state == failed' many | tail -n +2 | wc -l)
nothers=$(dl show --columns=trial --where='state != "failed"' many | tail -n +2 | wc -l)
is $((nfailed + nothers)) 8 "and of the others"
is "$(dl show --csv --columns=trial --where='batch == 32' many | tail -n +2 | wc -l)" "$nfailed" "--where of a number"
is "$(dl show --csv --columns=trial --where='loss < 1' many | tail -n +2 | wc -l)" "$nothers" "--where of the metric excludes trials without one"
is "$(dl show --csv --columns=best,hp.time --where='hp.time > 3 && (optimizer == sgd || optimizer == adam) && lr < 0.1' many | tail -n +2 | awk -F, '$2 <= 3')" "" "--where of hyperparameters"
is "$(dl show --csv --columns=hp.lr --sort=-hp.lr many | tail -n +2)" "$(dl show --csv --columns=hp.lr many | tail -n +2 | sort -gr)" "--sort in descending order"
is "$(dl show --csv --columns=trial --sort=trial --trials=3 many | tr '\n' ' ')" "trial 1 2 3 " "--sort and --trials"
is "$(dl show --columns=hp.optimizer,hp.nested.momentum many | awk 'NR > 1 { print $1, $2 == "-" }' | sort -u | tr '\n' ' ')" "adam 1 sgd 0 " "a parameter that is inactive in a trial"
like "$(dl show --columns=why --where='why == "exit status 3"' many)" '^exit status 3$' "--where of a text"
for bad in 'state==faild:column 8: the parameter has no such choice' "lrr<1:there is no column 'lrr'; did you mean 'lr'" "\`lrr\`<1:there is no column 'lrr'; did you mean 'lr'" 'lr<:column 4: expected a value'; do
    like "$(dl show --where="${bad%%:*}" many 2>&1)" "^dl: --where: ${bad#*:}" "--where=${bad%%:*}"
done
like "$(dl show --where='state==faild' many 2>&1)" "no such choice \(states are open, paused, .*\)$" "--where: a misspelt state"
like "$(dl show --where='optimizer < 1' many 2>&1)" "^dl: --where: column 1: a choice of this parameter is not a number$" "--where: a choice of another column"
like "$(dl show --columns=trail many 2>&1)" "^dl: --columns: there is no column 'trail'; did you mean 'trial'\?$" "--columns: a misspelt name"
like "$(dl show --sort=bst many 2>&1)" "^dl: --sort: there is no column 'bst'; did you mean 'best'\?$" "--sort: a misspelt name"
runs 2 "--json or --csv" dl show --json --csv many

# ---- values keep their types in JSON
dl show --json many >all.json
python3 - <<'EOF2'
import json
d = json.load(open("all.json"))
assert d["state"] == "completed" and d["experiment"] == "many" and d["best_trial"] == d["trials"][0]["trial"], d
assert d["metrics"] == [{"name": "loss", "smaller_is_better": True}]
space = {p.pop("name"): p for p in d["space"]}
assert space["lr"] == {"type": "float", "low": 1e-4, "high": 0.1, "log": True}, space
assert space["flags"] == {"type": "categorical", "choices": [True, False]} and len(space) == 7, space
for t in d["trials"]:
    h = t["hyperparameters"]
    assert isinstance(t["trial"], int) and isinstance(t["seconds"], float), t
    assert isinstance(h["time"], int) and isinstance(h["lr"], float) and isinstance(h["flags"], bool), h
    assert t["best"] is None if t["state"] == "failed" else t["best"] == h["lr"] == t["metric"], t
EOF2
ok $? "--json: numbers as numbers, hyperparameters in their own object"
best=$(python3 -c 'import json; print(json.load(open("all.json"))["best_trial"])')
dl show --json many "$best" | python3 -c '
import json, sys
t = json.load(sys.stdin)
m = t["metrics"]["loss"]
assert m["rows"] == 3 and m["last_step"] == 3 and m["min"] == m["max"] == t["best"] == t["hyperparameters"]["lr"], t'
ok $? "--json of a trial"
is "$(dl show --csv many | wc -l)" 9 "--csv"
is "$(dl show --csv many | head -n 1)" "$(dl export many | head -n 1)" "--csv has the columns of dl export"

# ---- one trial
dl show many "$best" >one
like "$(cat one)" '^ +loss +3 +1-3 ' "a summary of each metric"
like "$(cat one)" '^  time: .* in 1 attempt' "and its time"
is "$(dl show --values many "$best" | grep -c '^    loss ')" 3 "--values: each of them"

# ---- conditions: a failed attempt is restarted, a trial may be given up, a completed one has succeeded
cat >life.conf <<'EOF2'
name = "life";
entrypoint = "test -e $DL_TRIAL_DIR/again || { mkdir -p $DL_TRIAL_DIR; touch $DL_TRIAL_DIR/again; exit 3; }; test $DL_TRIAL = 1 || exit 78; dl log loss=1";
searcher = { name = "grid"; metric = "loss"; };
resources = { workers = 1; };
hyperparameters = { x = { type = "int"; minval = 1; maxval = 2; count = 2; }; };
EOF2
timeout 300 dl run --local life.conf >out 2>&1
cat >conditions.py <<'EOF2'
import json, sys
for trial in sorted(json.load(sys.stdin)["trials"], key=lambda t: t["trial"]):
    print(*(f"{c['type']}:{str(c['status'])[0]}:{c['reason']}" for c in trial["conditions"]))
    times = [c["time"] for c in trial["conditions"]]
    print(times == sorted(times) and times[0] > 1e9)
EOF2
is "$(dl show --json life | python3 conditions.py)" "Created:T:Created Restarting:F:AttemptFailed Running:F:AttemptStarted Succeeded:T:TrainingCompleted
True
Created:T:Created Restarting:F:AttemptFailed Running:F:AttemptStarted Failed:T:GivenUp
True" "conditions, as JSON"
dl show life 2 >two
like "$(cat two)" '^  Failed      since [-0-9: ]+  GivenUp: exit status 78: ' "and as text"
like "$(cat two)" '^  Restarting  until [-0-9: ]+  AttemptFailed: exit status 3' "with the earlier ones"
cat >wait.conf <<'EOF2'
name = "wait";
entrypoint = ": >>$DL_EXPERIMENT_DIR/begun; sleep 600";
searcher = { name = "single"; metric = "loss"; };
resources = { workers = 1; };
EOF2
beside wait dl run --local wait.conf
wait_for 60 test -e wait-0001/begun
last () { dl show --json wait | json '*(c["type"] for c in d["trials"][0]["conditions"] if c["status"])'; }
is "$(last)" "Created Running" "one that trains"
dl pause wait >out 2>&1
ended wait
is "$(last)" "Created Suspended" "paused: suspended"
rm wait-0001/begun
beside wait dl resume --local wait
wait_for 60 test -e wait-0001/begun
is "$(last)" "Created Running" "resumed: running, by its claim"
dl kill wait >out 2>&1
ended wait
is "$(last)" "Created Suspended" "killed: it may be continued"
done_testing
