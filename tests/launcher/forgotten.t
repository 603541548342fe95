#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl warns before it starts a search about hyperparameters, lengths and seeds that nothing uses, and about a metric
# that is optimised in the wrong direction.
. "$srcdir/tests/lib.sh"
unset DL_FREEZE

lr='lr = { type = "log"; minval = -3; maxval = -1; };'
conf () { # conf NAME ENTRYPOINT [SEARCHER-KEYS [HYPERPARAMETERS]]
    cat >"$1.conf" <<END2
name = "$1";
entrypoint = "$2";
metrics = { pattern = "loss = {loss}"; };
searcher = { name = "random"; metric = "loss"; max_trials = 4; $3 };
hyperparameters = {
  ${4:-$lr}
};
END2
}
# shellcheck disable=SC2069
said () { dl run --local --dry-run "$@" 2>&1 >/dev/null; }
warns () { # warns NAME PATTERN WHAT
    like "$(said "$1.conf")" "$2" "$3"
    is "$(said "$1.conf" | wc -l)" 1 "... in one line"
}
silent () { is "$(said "$1.conf")" "" "$2"; }

# ---- hyperparameters
printf 'import argparse, torch\np = argparse.ArgumentParser()\np.add_argument("--lr", default=0.1)\nprint("loss = 1")\n' >train.py
unused="^dl: unused.conf:6: nothing uses the hyperparameter 'lr': the entrypoint has no \{lr\}, and train.py reads neither its variable \(DL_HP_\*\) nor slurmdl$"
conf unused 'python3 train.py --epochs 3'
warns unused "$unused" "a script that nobody gives the value"
like "$(dl try unused.conf 2>&1)" "$unused" "dl try"
like "$(dl preview unused.conf 2>&1)" "$unused" "dl preview"
sed 's/^entrypoint.*/entrypoint = ["python3", "-u", "train.py"];/' unused.conf >list.conf
like "$(said list.conf)" "^dl: list.conf:6: nothing uses the hyperparameter 'lr'" "the same in a list"
conf given 'python3 train.py --lr={lr}'
silent given "a value that is given"
conf group 'python3 train.py [--lr {lr}]'
silent group "one in a group"
conf inline 'echo loss = 1'
warns inline "^dl: inline.conf:6: nothing uses the hyperparameter 'lr': the entrypoint has no \{lr\}$" "a command without a script"
# shellcheck disable=SC2016
conf dollar 'python3 train.py --lr=$lr'
# shellcheck disable=SC2016
warns dollar '^dl: dollar.conf:2: .entrypoint.: \$lr is a shell variable; write \{lr\} for the hyperparameter$' 'a name of the shell'
# shellcheck disable=SC2016
conf own 'for lr in 1 2; do echo loss = $lr {lr}; done'
silent own "a variable of its own"
# shellcheck disable=SC2016
conf variable 'python3 train.py --lr=$DL_HP_lr'
silent variable "its variable in the entrypoint"
conf two 'python3 train.py --lr={lr}' '' 'lr = { type = "float"; minval = 0.0; maxval = 1.0; }; wd = { type = "float"; minval = 0.0; maxval = 1.0; };'
warns two "^dl: two.conf:6: nothing uses the hyperparameter 'wd'" "one of two"
conf decides 'python3 train.py [--lr={lr}]' '' 'opt = { type = "categorical"; vals = ["a", "b"]; }; lr = { type = "float"; minval = 0.0; maxval = 1.0; when = { opt = "a"; }; };'
silent decides "one that only decides whether another is active"
conf single 'python3 train.py'
sed -i 's/"random"/"single"/; s/max_trials = 4;//' single.conf
silent single "a single trial"

# scripts that read the hyperparameter in other ways
reads () { # reads WHAT LINES...: expect no warning if train2.py has these lines
    what=$1
    shift
    printf '%s\n' "$@" >train2.py
    conf reads 'python3 train2.py'
    silent reads "$what"
}
reads "its variable" 'import os' 'lr = os.environ["DL_HP_lr"]'
reads "all variables" 'import os' 'h = {k: v for k, v in os.environ.items() if k.startswith("DL_HP_")}'
reads "hparams.json" 'import json, os' 'json.load(open(os.environ["DL_HPARAMS"]))'
reads "slurmdl" 'import slurmdl' 'run = slurmdl.Run()'
reads "a program that is not known" 'from company.training import main' 'main()'
mkdir part
echo 'import slurmdl' >part/run.py
reads "a module of its own" 'from part import run'
reads "the same with the other import" 'import part.run as r'
echo 'from .run import x' >part/__init__.py
reads "through another module" 'import part'
printf '#!/bin/sh\nexec python3 train2.py "$@"\n' >run.sh
chmod +x run.sh
printf 'import os\nos.environ["DL_HP_lr"]\n' >train2.py
conf script './run.sh --x'
silent script "a script that starts it"
echo 'print("loss = 1")' >train2.py
warns script "^dl: script.conf:6: nothing uses the hyperparameter 'lr': the entrypoint has no \{lr\}, and run.sh reads neither" "a script that starts one that does not"
conf module 'python3 -m part.run'
silent module "a module as the program"
echo 'import torch' >part/run.py
echo >part/__init__.py
warns module "^dl: module.conf:6: nothing uses the hyperparameter 'lr'" "one that does not"
conf runner 'torchrun --nproc_per_node=2 train.py'
like "$(said runner.conf)" "^dl: runner.conf:6: nothing uses the hyperparameter 'lr'.*train.py" "behind torchrun"
cp /bin/true binary
conf binary './binary'
silent binary "a program that is no text"
conf unknown 'sh -c \"exec company-train\"'
silent unknown "a program that is somewhere else"

# ---- lengths
rungs='max_length = 9; divisor = 3;'
conf length 'python3 train.py --lr={lr}' "$rungs"
sed -i 's/"random"/"asha"/' length.conf
warns length '^dl: length.conf:2: searcher "asha" trains to several lengths, but the entrypoint has no \{length\}, and train.py does not read DL_LENGTH: every segment is a whole training$' "a script that does not know the length"
sed -i 's/--lr/--epochs={length} &/' length.conf
silent length "one that does"
conf reports 'python3 train.py --lr={lr}' "$rungs"
sed -i 's/"random"/"stopping_asha"/' reports.conf
silent reports "a searcher that stops trials while they run"
conf beyond 'for e in 1 2 3 4 5; do echo step $e loss = $e{lr}; done; : {length}' "$rungs"
sed -i 's/"random"/"asha"/; s/"loss = {loss}"/"step {step} loss = {loss}"/' beyond.conf
like "$(dl try beyond.conf 2>&1)" '^length:     it logged steps up to 5, but should train to 1: it does not use \{length\}' "dl try: steps beyond the length"
timeout 300 dl run --local beyond.conf >out 2>&1
like "$(cat out)" '^ +[0-9.]+m?s +trial [0-9]+ +length 3 .* logged steps up to 5, beyond 3$' "dl run: the same"
like "$(cat out)" '^trial [0-9]+ logged steps up to 5, but its segment ends at 3, and others like it: its program does not use \{length\} \(DL_LENGTH\), or' "and at the end"
sed 's/for e in 1 2 3 4 5/for e in $(seq {length})/; s/"beyond"/"within"/' beyond.conf >within.conf
is "$(dl try within.conf 2>&1 | grep -c '^length:')" 0 "dl try: not if it ends there"

# ---- seeds
conf seed 'python3 train.py --lr={lr}' 'repeats = 3;'
warns seed "^dl: seed.conf:2: 'searcher.repeats' is 3, but the entrypoint has no \{seed\}, and train.py does not read DL_SEED: repeats differ only" "repeats without a seed"
sed -i 's/--lr/--seed={seed} &/' seed.conf
silent seed "with one"

# ---- checkpoints of other trials
conf pbt 'python3 train.py --lr={lr} --epochs={length} --out={trial_dir} [--resume {trial_dir}/last.pt]' 'max_length = 8; population = 4;'
sed -i 's/"random"/"pbt"/; s/max_trials = 4;//' pbt.conf
warns pbt "^dl: pbt.conf:2: searcher \"pbt\" gives trials the checkpoints of better ones, but the entrypoint has no \{resume_dir\}, and train.py does not read DL_RESUME_DIR: each trains from scratch$" "pbt without the files of others"
sed -i 's|{trial_dir}/last|{resume_dir}/last|' pbt.conf
silent pbt "with them"

# ---- the direction of the metric
metric () { # metric NAME [KEYS]: print dl's warnings about it
    printf 'name = "m"; entrypoint = "dl log x={x}";\nsearcher = { name = "random"; max_trials = 2; %s\n metric = "%s"; };\nhyperparameters = { x = { type = "int"; minval = 0; maxval = 9; }; };\n' "$2" "$1" >m.conf
    said m.conf
}
like "$(metric val_acc)" "^dl: m.conf:3: 'val_acc' is minimised, and its name suggests that larger is better: 'searcher.smaller_is_better = false' maximises it$" "val_acc"
bad=
for m in accuracy test/acc valAcc Acc@1 auc ROC_AUC auroc f1 macroF1 F1Score eval_f1 'DEV F1' reward episode_reward score iou mIoU mAP mAP50 mAP@0.5 bleu BLEU-4 rouge-L r2 R2_score recall ndcg@10 acc1 top1; do
    metric "$m" | grep -q 'is minimised' || bad="$bad $m"
done
is "$bad" "" "other names that are maximised"
bad=
for m in loss val_loss error err perplexity ppl rmse test/MAE nll wer log_loss valLoss 'cross entropy loss'; do
    metric "$m" 'smaller_is_better = false;' | grep -q "is maximised, .* smaller is better: 'searcher.smaller_is_better = true' minimises it$" || bad="$bad $m"
    metric "$m" >>none
done
is "$bad$(cat none)" "" "names that are minimised"
for m in x y val_metric accuracy_loss error_acc neg_auc 1-acc acc_std time_to_accuracy mapped racc fact bleuer accelerate; do
    metric "$m" >>none
    metric "$m" 'smaller_is_better = false;' >>none
done
is "$(cat none)" "" "names without a direction"
for m in accuracy auc f1 reward score; do
    metric $m 'smaller_is_better = false;' >>none
done
is "$(cat none)" "" "a direction that is right"
like "$(metric accuracy 'smaller_is_better = true;')" "is minimised" "a given direction that is wrong"
is "$(metric score 'smaller_is_better = true;')" "" "a given direction of an ambiguous name"
printf 'name = "two"; entrypoint = "dl log loss={x} acc={x}";\nsearcher = { name = "random"; max_trials = 2;\n metric = ("loss", "acc"); };\nhyperparameters = { x = { type = "int"; minval = 0; maxval = 9; }; };\n' >two.conf
like "$(said two.conf)" "^dl: two.conf:3: 'acc' is minimised" "the second of two metrics"
sed -i 's/metric/smaller_is_better = [true, false]; &/' two.conf
silent two "two directions"
timeout 300 dl run --local two.conf >out 2>&1
like "$(cat out)" '^metrics: loss, smaller is better; acc, larger is better$' "dl run prints them"
like "$(dl show two)" '^metrics: loss, smaller is better; acc, larger is better$' "dl show"
like "$(dl show within 2>&1; dl show beyond)" '^metric: loss, smaller is better$' "and of one"
done_testing
