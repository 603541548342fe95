#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl try: run one short trial here and report what it did.
. "$srcdir/tests/lib.sh"
mkdir tmp
TMPDIR=$work/tmp
export TMPDIR

cat >train.sh <<'END'
[ -n "$DL_LENGTH" ] && [ "$DL_TRIAL" = 1 ] || exit 9
echo "epoch $1: loss = 0.5 at $*"
echo "not a metric" >&2
[ -n "$NO_SAVE" ] || echo x >"$DL_ATTEMPT_DIR/last.pt"
[ -z "$END" ] || exit "$END"
END
conf () { # conf SEARCHER ENTRYPOINT
    cat >exp.conf <<END
name = "t";
entrypoint = $2;
metrics = { pattern = "epoch {step}: loss = {loss}"; };
searcher = { metric = "loss"; max_length = 9; $1 };
hyperparameters = {
    lr = { type = "log"; minval = -3; maxval = -1; count = 2; };
    opt = { name = { type = "categorical"; vals = ["sgd", "adam"]; };
            momentum = { type = "float"; minval = 0.5; maxval = 0.9; count = 2; when = { opt = { name = "sgd"; }; }; }; };
};
END
}

conf 'name = "asha"; max_trials = 4;' '"sh train.sh {length} {lr} [-m {opt.momentum}]"'
timeout 100 dl try exp.conf lr=0.02 opt.name=adam >out 2>err
is $? 0 "a trial with a result"
is "$(cat err)" "" "no warning"
like "$(cat out)" '^command: sh train.sh 1 0.02 $' "the command"
like "$(cat out)" "^ +in: $work$" "and where"
like "$(cat out)" '^epoch 1: loss = 0.5 at 1 0.02$' "its output"
like "$(cat out)" '^ended: +with status 0 after ' "exit status"
like "$(cat out)" '^metrics: +loss: 1 value, steps 1 to 1, the last is 0.5$' "metrics and steps"
like "$(cat out)" '^pattern: +matched 1 of 2 lines$' "matched lines"
like "$(cat out)" '^checkpoint: last.pt$' "checkpoint"
like "$(cat out)" '^result: +loss 0.5 at step 1$' "result"
is "$(ls tmp) $(ls)" " err
exp.conf
out
tmp
train.sh" "no experiment, nothing left behind"
for searcher in 'name = "grid";' 'name = "single";' 'name = "pbt"; population = 4;' 'name = "custom"; command = "false"; max_trials = 3;'; do
    conf "$searcher" '[ "sh", "train.sh", "{length}", "{opt.name}", "[-m {opt.momentum}]" ]'
    runs 0 "$searcher: a random point" dl try exp.conf
    runs 0 "$searcher: a given point" dl try exp.conf opt.name=sgd opt.momentum=0.75
    like "$(cat out)" 'at 1 sgd -m 0.75$' "$searcher: is the one that is tried"
done
runs 1 "a trial that fails" env END=3 NO_SAVE=1 dl try exp.conf
like "$(cat out)" '^no result: +exit status 3: not a metric$' "says why"
like "$(cat out)" '^checkpoint: none: an interrupted trial starts from scratch' "and that there is no checkpoint"
printf '%s\n' 'printf "1/2 loss = 9\b\b\b\b\b\b\b\b\b\b\b\b2/2 loss = 0.5\n"' >bar.sh
like "$(timeout 100 dl try --set 'entrypoint="sh bar.sh {lr}"' --set 'metrics.pattern="loss = {loss}"' exp.conf 2>&1)" '^result: +loss 0.5 at step 2$' "a progress bar of backspaces"
echo '[ "$1" -lt 5 ] || echo "epoch $1: loss = 0.5"' >steps.sh
like "$(timeout 100 dl try --set 'entrypoint="sh steps.sh {length} {lr}"' exp.conf 2>&1)" '^ +the length of this trial was 1 of 9: --length=L tries a longer one$' "a length of 1 is too short for a metric"
like "$(timeout 100 dl try --length=5 --set 'entrypoint="sh steps.sh {length} {lr}"' exp.conf 2>&1)" '^result: +loss 0.5 at step 5$' "a longer one"
runs 1 "a pattern that matches nothing" dl try --set 'metrics.pattern="Epoch {step}: loss {loss}"' exp.conf
like "$(cat out)" '^no result: .*metrics.pattern matched 0 of 2 lines; the nearest line: "epoch 1: loss = 0.5' "says what nearly matched"
timeout 100 dl try --set 'entrypoint="echo epoch 1: loss = 0,5"' exp.conf >out 2>&1
is "$? $(sed -n 's/.*matched 0 of 1 line; //p' out)" '1 the nearest line: "epoch 1: loss = 0,5": a number has no comma' "a decimal comma is not a result of 0"
timeout 100 dl try --set 'entrypoint="echo epoch 1: loss = nan"' exp.conf >out 2>&1
like "$(cat out)" '^result: +loss nan at step 1: not a finite number, so the trial is a bad one$' "a result that is not a number"
runs 2 "a value out of its range" dl try exp.conf lr=5
like "$(cat out)" "^lr=5: the point: 5 is not a value of 'lr'" "names what was typed"
like "$(dl try exp.conf lr= 2>&1)" "^lr=: the text after = is not a value" "also of what cannot be read"
runs 2 "no value" dl try exp.conf lr
conf 'name = "asha"; max_trials = 4;' '"sleep 300"'
timeout -s INT 2 dl try exp.conf >out 2>&1
is "$(grep -c '^ended: *by signal 15' out) $(ls tmp)" "1 " "Ctrl-C stops it, and nothing is left behind"
sed -i 's/^searcher.*/searcher = { metric = "loss"; name = "asha"; max_trials = 4; }; resources = { nodes_per_trial = 2; framework = "torch"; };/; s/^entrypoint.*/entrypoint = "dl log loss=4";/' exp.conf
runs 0 "of a trial of several ranks one, without Slurm; dl log works" dl try exp.conf
like "$(cat out)" '^ranks: one, not 2$' "and says so"

done_testing
