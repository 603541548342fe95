#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line: help, versions, mistakes, exit statuses.
. "$srcdir/tests/lib.sh"
unset DL_DIR DL_SOCKET

like "$(dl --help)" '^usage: dl COMMAND' "help"
is "$(dl ls a 2>&1; echo $?)" "dl: ls: unexpected argument 'a'; usage: dl ls [OPTION...]
2" "one argument too many"
is "$(dl fork --help | grep -A1 -e --set=)" "  --set=KEY=VALUE
                 replace a key of the file, or add it" "help: a long option has its own line"
like "$(dl --version)" '^dl [0-9]+\.[0-9]+' "version"
runs 2 "no command" dl
like "$(dl cancel x 2>&1)" "unknown command 'cancel'; did you mean 'stop' or 'kill'\?" "another program's name for a command"
like "$(dl rum 2>&1)" "unknown command 'rum'; did you mean 'run'\?" "mistyped command"
like "$(dl run --locall x 2>&1)" "unknown option '--locall'; did you mean '--local'\?" "mistyped option"
like "$(dl run --workers 2>&1)" "run: --workers needs an argument" "option without its argument"
like "$(dl run --local=x x 2>&1)" "run: --local takes no argument" "option with an argument too many"
like "$(dl run --workers=x f 2>&1)" "'x' is not a number" "option with a bad number"
is "$(dl wait --timeout=-1 x 2>&1)" "dl: --timeout: '-1' is less than 0" "option with a number below 0"
is "$(dl wait --timeout=nan x 2>&1)" "dl: --timeout: 'nan' is not a number" "option whose value is not a number"
is "$(dl wait --timeout=1e300 x 2>&1)" "dl: --timeout: '1e300' is too large" "option with a number too large"
is "$(dl continue --trials=99999999999999999999 x 2>&1)" "dl: --trials: '99999999999999999999' is too large" "option with a whole number too large"
is "$(dl run --workers=0 f 2>&1)" "dl: --workers: must be 1 or more" "option that cannot be 0"
is "$(dl run --workers=1000001 f 2>&1)" "dl: --workers: at most 1000000" "option above its maximum"
runs 2 "run without a file" dl run
runs 2 "too many arguments" dl show a b c
for c in fork worker watch show best failures plot wait pause resume stop kill continue retry reproduce export gc archive; do
    runs 3 "dl $c without any experiment" dl $c
done
like "$(dl show 2>&1)" "no experiment in \." "no experiment"
runs 3 "unknown experiment" dl show nope
runs 3 "ls of a folder that does not exist" dl ls --dir=/nonexistent
is "$(dl ls --json | tr -d ' \n\t')" '{"experiments":[]}' "ls --json of nothing"
refused 2 "not inside a trial" "dl log outside a trial" dl log a=1
like "$(DL_SOCKET=$work/none dl log a=1 2>&1)" "cannot reach the worker" "dl log without its worker"
for bad in a a= =1 a=b 'a b=1' a=1x; do
    runs 2 "dl log '$bad'" env DL_SOCKET=$work/none dl log "$bad"
done
if [ -w /dev/full ]; then
    for words in --help --version "ls --help"; do
        # shellcheck disable=SC2086
        is "$(dl $words 2>&1 >/dev/full; echo $?)" "dl: cannot write standard output: No space left on device
7" "a full disk for standard output is a failure: dl $words"
    done
fi
printf 'name = "n"; entrypoint = "true"; searcher = { name = "random"; metric = "m"; max_trials = 1; };\n' >n.conf
mkdir bin && ln -s "$(command -v dl)" bin/dl
runs 6 "run without Slurm" env PATH="$work/bin" "$work/bin/dl" run n.conf
like "$(cat out)" 'sbatch: No such file or directory \(without Slurm use --local\)' "the hint"
mkdir half-0001 && : >half-0001/experiment.conf
runs 5 "damaged experiment" dl show half-0001
echo '};' >half-0001/experiment.conf
like "$(dl show half-0001 2>&1 | tr '\n' '|')" '^dl: [^|]*/half-0001/experiment.conf:1: [^|]*the experiment is damaged[^|]*\|$' "one line says so"
like "$(dl ls)" 'half-0001 +damaged' "ls shows it"

# ---- preview: with asha's rungs, 2 of 9 trials continue from 2 to 9 epochs
cat >plan.conf <<'EOF'
name = "plan"; entrypoint = "true";
searcher = { name = "asha"; metric = "loss"; max_trials = 9; max_length = 9; };
hyperparameters = {
    layers = { type = "int"; minval = 1; maxval = 3; };
    kind = { type = "categorical"; vals = ("a", "b"); };
    size = { type = "int"; minval = 1; maxval = 4; when = { kind = "b"; }; };
};
resources = { workers = 2; slots_per_trial = 4; };
EOF
out=$(dl preview plan.conf)
is $? 0 "preview"
like "$out" '^plan: searcher asha, metric loss \(smaller is better\), 2 workers$' "its first lines"
like "$out" '^space: 3 dimensions, 15 points$' "the size of a space with a condition"
like "$out" '^ +2 +7 +14$' "its first rung"
like "$out" '^ +9 +2 +18$' "its last rung"
like "$out" '^ +all +9 +32$' "their sum"
like "$out" '^9 trials, as much as 3.6 full trainings, at most 11 segments$' "its totals"
like "$out" '^on the disk: about 84 files and folders, 0.397 MB, besides checkpoints and output$' "the files: 9 trials, 11 segments"
like "$out" '^if each attempt saves a file, there are at most 11 of them; checkpoint_policy.files removes superseded ones' "the files that a script saves"
like "$(dl preview --set 'checkpoint_policy={files=("last.pt","best.pt");save_trial_best=0;}' plan.conf)" \
    '^checkpoint_policy.files: at most 22 files, one of each pattern in each segment; at most 18 stay at the end; the MB above do not include them: .dl try. prints what one attempt saves$' "and with the key"
like "$out" '--seconds=S' "what else the script could print"
out=$(dl preview --seconds=900 plan.conf)
like "$out" '^8 trial-hours, 32 GPU-hours, about 4 hours with 2 workers$' "preview --seconds"
out=$(sed 's/max_length = 9;/& max_gpu_hours = 31; max_hours = 5;/' plan.conf >limit.conf && dl preview --seconds=900 limit.conf)
like "$out" "^'searcher.max_gpu_hours' = 31 will end it early" "a limit that ends it"
is "$(echo "$out" | grep -c 'searcher.max_hours')" 0 "and one that does not end it"
out=$(sed 's/workers = 2/workers = 64/' plan.conf >many.conf && dl preview --seconds=900 many.conf)
like "$out" 'about 2.25 hours with 64 workers' "no faster than one full training"
like "$(sed 's/"asha"/"median"/' plan.conf >median.conf && dl preview median.conf)" 'stopped early, which costs less' "a searcher that stops trials"
is "$(dl preview --json --seconds=900 plan.conf | tr -d ' \n' | grep -o '"points":15.0\|"rungs":[^]]*\|"max_segments":11\|"gpu_hours":32.0' | tr '\n' ' ')" \
    '"points":15.0 "rungs":[{"length":2,"trials":7,"sum":14.0},{"length":9,"trials":2,"sum":18.0} "max_segments":11 "gpu_hours":32.0 ' "preview --json"
refused 2 "'x' is not a number" "preview: not a number" dl preview --seconds=x plan.conf
runs 3 "preview: no file" dl preview nope.conf
holds "preview creates nothing" [ -z "$(ls -d plan-* 2>/dev/null)" ]

# ---- warm_start: the searcher knows an earlier experiment's trials, even after that experiment is gone
cat >old.conf <<'EOF'
name = "old"; entrypoint = "dl log loss={lr}";
searcher = { name = "random"; metric = "loss"; max_trials = 4; };
reproducibility = { experiment_seed = 3; };
hyperparameters = { lr = { type = "float"; minval = 0; maxval = 1; }; k = 3; };
EOF
runs 0 "an experiment to learn from" dl run --local old.conf
below=$(sed -n 's/.*"lr": *\([0-9.]*\).*/\1/p' old-0001/trials/*/a.1/hparams.json | awk '$1 <= 0.6' | wc -l)
[ "$below" -gt 0 ] && [ "$below" -lt 4 ]
ok $? "some of its trials lie below 0.6 ($below)"
warm () { # warm SED-SCRIPT: write an experiment that learns from it
    sed "s/\"old\"/\"new\"/; s/\"random\";/\"tpe\"; warm_start = \"old-0001\";/; s/maxval = 1/maxval = 0.6/; $1" old.conf >new.conf
}
warm ''
like "$(dl preview new.conf)" "^known before: $below points? of old-0001$" "warm_start: trials inside the space"
runs 0 "warm_start: run" dl run --local new.conf
is "$(grep -o '"x":\[[0-9.]*\],"metric":[0-9.]*' new-0001/log/000000/00000001 | wc -l)" "$below" "warm_start: in the log"
is "$(grep -o '"x":\[[0-9.]*\],"metric":[0-9.]*' new-0001/log/000000/00000001 | sed 's/.*\[\(.*\)\].*:\(.*\)/\1 \2/' | awk '$1 != $2')" "" "warm_start: each with its value"
mkdir away && mv old-0001 away/
dl show new-0001 >/dev/null
is $? 0 "warm_start: readable without the other folder"
like "$(dl run --local new.conf 2>&1)" "^new.conf:2: 'searcher.warm_start': .*old-0001" "warm_start: no such folder"
holds "warm_start: nothing is created" [ ! -e new-0002 ]
mv away/old-0001 .
warm 's/k = 3/k = 4/'
like "$(dl preview new.conf 2>&1)" "^new.conf:2: 'searcher.warm_start': none of the 4 finished trials of .*old-0001 lies in this space" "warm_start: another constant"
warm 's/"loss"/"error"/'
like "$(dl preview new.conf 2>&1)" "^new.conf:2: 'searcher.warm_start': .*old-0001 has no metric 'error'; its metric is 'loss'" "warm_start: another metric"
new='new = { type = "int"; minval = 1; maxval = 3; default = 2; };'
warm "s/k = 3;/$new/"
like "$(dl preview new.conf 2>&1)" "^known before: $below" "warm_start: a new hyperparameter has its default"
warm 's/max_trials = 4;/& max_length = 9;/'
like "$(dl preview new.conf 2>&1)" "^new.conf:2: warning: 'searcher.warm_start': the trials of .*old-0001 have the length 1, those of this experiment 9" "warm_start: trials of another length are reported"
warm "s/k = 3;/$new/; s/default = 2;//"
runs 2 "warm_start: a new one without default" dl preview new.conf
cat >known.json <<'EOF'
[{"params": {"lr": 0.25, "k": 3}, "value": 0.5}, {"params": {"lr": 0.5, "other": 1}, "value": 2},
 {"params": {"lr": 0.7, "k": 3}, "value": 0.1}, {"params": {"lr": 0.1, "k": 3}, "value": null}, {"params": {"lr": 0.1, "k": 4}, "value": 1}]
EOF
warm 's/old-0001/known.json/'
like "$(dl preview new.conf)" "^known before: 2 points of known.json$" "warm_start: results of another program"
dl run --local new.conf >/dev/null 2>&1
is "$(sed -n 's/.*"known":\(\[[^]]*\][^]]*\][^]]*\]\).*/\1/p' new-0002/log/000000/00000001)" '[{"x":[0.25],"metric":0.5},{"x":[0.5],"metric":2.0}]' \
    "warm_start: the log has those inside the space with a value"
sed -i 's/"lr"/"rate"/g' known.json
like "$(dl preview new.conf 2>&1)" "^new.conf:2: 'searcher.warm_start': none of the 4 trials with a value of .*known.json lies in this space" "warm_start: other names"
echo '{"trials": []}' >known.json
like "$(dl preview new.conf 2>&1)" "^new.conf:2: 'searcher.warm_start': .*known.json: line 1: is not a list of " "warm_start: another file"
echo '[{"params": ' >known.json
like "$(dl preview new.conf 2>&1)" "^new.conf:2: 'searcher.warm_start': .*known.json: line [12]: is not a list of .* near" "warm_start: not JSON"

# ---- an error shows its cause even if the path is very long
long=$work/long
while [ ${#long} -lt 2400 ]; do long=$long/gpfs-project-group-deep-learning-round-3-after-reviewer-2; done
mkdir -p "$long"
(cd "$long" && echo x >bad.h5)
like "$(dl ckpt verify "$long/bad.h5" 2>&1)" "^dl: $work/long/.*\.\.\..*after-reviewer-2/bad.h5: is not a checkpoint" "a path of 2,400 bytes: its end and the cause"
like "$(dl ckpt verify "$long/none.h5" 2>&1)" "/none.h5: cannot read: No such file or directory$" "a path that does not exist"
holds "in one line of limited length" [ "$(dl ckpt verify "$long/none.h5" 2>&1 | wc -c)" -le 1100 ]
middle=$work/$(printf '%0200d' 0)/$(printf '%0100d' 0)
mkdir -p "$middle"
echo x >"$middle/bad.h5"
is "$(dl ckpt verify "$middle/bad.h5" 2>&1 | cut -d: -f2)" " $middle/bad.h5" "one of 300 bytes is whole"
is "$(dl run -h)" "$(dl run --help)" "dl COMMAND -h"
is "$(dl -h)" "$(dl --help)" "dl -h"

# ---- numbers that YAML 1.1 reads as numbers, JSON fields with one type, metrics.format
cat >yaml.conf <<'END'
name = "yaml";
entrypoint = "echo {lr} $DL_HP_lr; case {trial} in 1) l=nan;; 2) l=inf;; *) l=2;; esac; echo loss=$l";
metrics = { format = "text"; };
searcher = { name = "grid"; metric = "loss"; };
hyperparameters = { lr = { type = "categorical"; vals = [1e-5, 3e22, 1.5e-7, 1e5]; }; };
END
timeout 300 dl run --local --workers=1 yaml.conf >out 2>&1
is "$(cat yaml-0001/trials/*/a.1/log | grep -v loss | sort -u | tr '\n' ';')" "1.0e-05 1.0e-05;1.5e-07 1.5e-07;100000 100000;3.0e+22 3.0e+22;" "numbers in arguments and the environment"
like "$(cat yaml-0001/trials/0001/a.1/hparams.json)" '"lr": 1.0e-05$' "in hparams.json"
is "$(dl show --json yaml | python3 -c 'import json, sys; print({str(type(t["metric"])) for t in json.load(sys.stdin, parse_constant=None)["trials"] if t["trial"] in (1, 2)})')" "{\"<class 'NoneType'>\"}" "--json: nan and inf are both null"
sed 's/"yaml"/"none"/; s/format = "text"/format = "json"/; s/^name/max_restarts = 0; name/' yaml.conf >none.conf
timeout 300 dl run --local --workers=1 none.conf >out 2>&1
like "$(dl show none)" 'metrics.format = "json" matched 0 of 2 lines' "metrics.format that finds nothing"
is "$(dl show none | grep -c metrics.pattern)" 0 "and does not mention a pattern"
if command -v gnuplot >/dev/null; then
    is "$(dl plot yaml 2>/dev/null | head -c 4 | grep -c 'x0c')" 0 "dl plot begins with no form feed"
else
    skip "dl plot begins with no form feed" "no gnuplot"
fi
done_testing
