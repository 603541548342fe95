#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each mistake in an experiment file gives one clear line: the file, the line, what is wrong and what to do.
. "$srcdir/tests/lib.sh"
# libconfig leaks a string that precedes a syntax error.
LSAN_OPTIONS="suppressions=$srcdir/tests/fuzz/leaks:print_suppressions=0"
export LSAN_OPTIONS

printf '#!/bin/sh\n' >train
chmod +x train
good='name = "t";
entrypoint = "./train --lr {lr}";
searcher = {
    name = "asha";
    metric = "loss";
    max_trials = 9;
    max_length = 9;
};
hyperparameters = {
    lr = { type = "log"; minval = -3; maxval = 0; };
    optimizer = { momentum = 0.9; };
};'

# mistake SED-SCRIPT PATTERN NAME: edit the good file and expect this error
mistake () {
    printf '%s\n' "$good" | sed -e "$1" >exp.conf
    refused 2 "$2" "$3" dl run --dry-run exp.conf
    holds "$3: nothing is created" [ -z "$(ls -d t-* 2>/dev/null)" ]
}

printf '%s\n' "$good" >exp.conf
runs 0 "a good file" dl run --dry-run exp.conf
like "$(cat out)" '^t: searcher asha, metric loss \(smaller is better\)' "its plan"
like "$(cat out)" 'nothing was started' "its end"

# accepted SED-SCRIPT PATTERN NAME: edit the good file and expect dl to accept it
accepted () {
    printf '%s\n' "$good" | sed -e "$1" >exp.conf
    runs 0 "$3: exit status" dl run --dry-run exp.conf
    like "$(cat out)" "$2" "$3"
}
# With a seed, the plan shows the points of the first trials.
seed='$a reproducibility = { experiment_seed = 1; };'

mistake 's/^searcher/sercher/' "^exp.conf:3: unknown key 'sercher'; did you mean 'searcher'\?" "unknown group"
mistake 's/max_trials/max_trails/' "^exp.conf:6: unknown key 'searcher.max_trails'; did you mean 'searcher.max_trials'\?" "unknown key"
mistake '2a max_trials = 5;' "^exp.conf:3: unknown key 'max_trials'; did you mean 'searcher.max_trials'\?" "key in the wrong place"
mistake 's/max_trials = 9/max_trials = "9"/' "^exp.conf:6: 'searcher.max_trials' is a string, but must be an integer" "string for an integer"
mistake 's/max_trials = 9/max_trials = 9.5/' "^exp.conf:6: 'searcher.max_trials' is a floating-point number, but must be an integer" "fraction for an integer"
mistake 's/max_trials = 9/max_trials = 0/' "^exp.conf:6: 'searcher.max_trials' is 0, but must be from 1 to" "number out of range"
mistake 's/metric = "loss"/metric = 3/' "^exp.conf:5: 'searcher.metric' is an integer, but must be a string" "number for a string"
mistake 's/"loss";/"loss"; smaller_is_better = 1;/' "^exp.conf:5: 'searcher.smaller_is_better' is an integer, but must be true or false" "number for a boolean"
mistake '3,8d; 2a searcher = 3;' "^exp.conf:3: 'searcher' is an integer, but must be a group" "number for a group"
mistake '/metric/d' "^exp.conf: 'searcher.metric' is missing" "missing key"
mistake '/^name/d' "^exp.conf: 'name' is missing" "missing name"
mistake '/max_trials/d' "^exp.conf:3: searcher \"asha\" needs 'searcher.max_trials'" "what the searcher needs"
mistake 's/^searcher/resources = { mem = "4G"; }; searcher/' "unknown key 'resources.mem'; did you mean 'resources.memory'\?" "sbatch's word for a key"
mistake 's/"asha"/"bayes"/' "^exp.conf:4: unknown searcher \"bayes\"; did you mean \"gp\"\?" "another program's word for a searcher"
mistake 's/"asha"/"ahsa"/' "^exp.conf:4: unknown searcher \"ahsa\"; did you mean \"asha\"\?" "unknown searcher"
mistake 's/"asha";/"asha"; mode = "fast";/' "^exp.conf:4: 'searcher.mode' must be \"aggressive\"" "unknown mode"
mistake 's/"t"/"a\/b"/' "^exp.conf:1: 'name' must be 1 to 100 letters" "bad name"
mistake 's/{lr}/{lrr}/' "^exp.conf:2: 'entrypoint': \{lrr\} is not a hyperparameter; did you mean \{lr\}\?" "unknown placeholder"
mistake 's/"log"/"logg"/' "^exp.conf:10: hyperparameter 'lr': type must be .* did you mean \"log\"\?" "unknown type"
mistake 's/minval = -3;//' "^exp.conf:10: hyperparameter 'lr': type \"log\" needs 'minval'" "missing bound"
mistake 's/minval/minvall/' "^exp.conf:10: hyperparameter 'lr': unknown key 'minvall'; did you mean 'minval'\?" "unknown bound"
mistake 's/minval = -3/minval = 3/' "^exp.conf:10: hyperparameter 'lr': the lower end of the range is above the upper end" "impossible range"
mistake 's/minval = -3/minval = "a"/' "^exp.conf:10: hyperparameter 'lr': 'minval' must be a number" "bound of wrong type"
mistake 's/minval = -3/base = 1.0; minval = -3/' "^exp.conf:10: hyperparameter 'lr': .*base" "impossible base"
mistake 's/lr = .*/lr = { type = "categorical"; vals = (); };/' "^exp.conf:10: hyperparameter 'lr': " "no choices"
mistake 's/lr = .*/lr = { type = "int"; minval = 0.5; maxval = 3; };/' "^exp.conf:10: hyperparameter 'lr': " "integer bounds that are none"
mistake 's/"asha"/"grid"/; /max_trials/d' "^exp.conf:9: hyperparameter 'lr': .*count" "grid without count"
mistake 's/optimizer = .*/a = { b = 1; }; a_b = 2;/' "^exp.conf:11: hyperparameters 'a.b' and 'a_b' would both be DL_HP_a_b" "two names, one variable"
mistake '$a metrics = { pattern = "loss=(" };' "^exp.conf:13: 'metrics.pattern'" "bad expression"
mistake '$a metrics = { pattern = "loss=[0-9]+" };' "^exp.conf:13: .*names no metric" "expression without a name"
mistake '$a worker = { lease = 10; heartbeat = 6; };' "^exp.conf:13: 'worker.lease' must be at least twice" "short lease"
printf '%s\n' "$good" | sed '1d; 5d' >exp.conf
runs 2 "several at once" dl run --dry-run exp.conf
is "$(sort out | sed 's/^exp.conf: //; s/ is missing.*//' | xargs -d '\n')" "'name' 'searcher.metric'" "each has its line"
mistake 's/searcher = {/searcher = /' "^exp.conf:[0-9]+: syntax error" "syntax"
while IFS='|' read -r edit line said; do
    mistake "$edit" "^exp.conf:$line: $said" "$edit"
done <<'EOF2'
s/"t"/t/|1|syntax error: 't': neither a number nor true or false; a string needs double quotes
s/"t"/'t'/|1|syntax error: a string needs double quotes
s/name = "t"/name "t"/|1|syntax error: 'name': a = is missing after it
s/"t"/"t/|1|the string that starts here is not closed: a " is missing
s/searcher = {/searcher {/|3|syntax error: 'searcher': a = is missing after it
s/searcher = {/searcher =/|3|syntax error: a value is missing after =
s/max_trials = 9/max_trials == 9/|6|syntax error: one = sets a value
s/max_trials = 9/max_trials = 1_000/|6|syntax error: '1_000': not a number; a string
s/max_trials = 9/max_trials = 1e-4.5/|6|syntax error: '1e-4.5': no number
s/max_trials = 9/max_trials = /|6|syntax error: a value is missing after =
s/max_trials = 9;/max_trials = 9;;/|6|syntax error: an extra ;
s/^    lr = /    1lr = /|10|syntax error: '1lr': a name starts with a letter
s/^    lr = /    l.r = /|10|syntax error: 'l.r': a name has letters
s/^    lr = /    "lr" = /|10|syntax error: a name has no quotes
s/minval = -3;/vals = ["a", "b",];/|10|syntax error: a list does not end with a comma
s/minval = -3;/vals = {"a", "b"};/|10|syntax error: a list needs \[ \]
s/minval = -3;/vals = ["a" "b"];/|10|a comma is missing between two strings
s/minval = -3;/vals = ["a", 1];/|10|mismatched element type in array: values of different types need \( \)
s/minval = -3;/vals = ["a");/|10|syntax error: this \) closes the \[ of line 10
8d|3|syntax error: the \{ of this line is not closed
s/"log"/"uniform"/|10|hyperparameter 'lr': type must be .*; did you mean "float"
s/type = "log"/typ = "log"/|10|hyperparameter 'lr': 'type' is missing
s/type = "log"; min\(.*\)max/typ = "log"; a\1b/|10|hyperparameter 'lr': 'type' is missing: it is a group of other hyperparameters
s/minval = /low = /|10|hyperparameter 'lr': unknown key 'low'; did you mean 'minval'
s/^hyperparameters/hyperparameter/|9|unknown key 'hyperparameter'; did you mean 'hyperparameters'
s/^hyperparameters/search_space/|9|unknown key 'search_space'; did you mean 'hyperparameters'
s/^entrypoint/command/|2|unknown key 'command'; did you mean 'entrypoint'
s/metric = /monitor = /|5|unknown key 'searcher.monitor'; did you mean 'searcher.metric'
s/metric = /what = /|5|unknown key 'searcher.what'; dl-experiment
s/max_trials/max_concurrent/|6|unknown key 'searcher.max_concurrent'; did you mean 'searcher.max_concurrent_trials'
s/max_trials = 9/pruner = "median"/|6|unknown key 'searcher.pruner'; did you mean 'searcher.name'
s/max_trials = 9/mode = "min"; &/|6|'searcher.mode' must be .*; did you mean 'searcher.smaller_is_better'
s/max_trials/eta/|6|unknown key 'searcher.eta'; did you mean 'searcher.divisor'
$a resources = { time = "30m"; };|13|'resources.time' is '30m', but must be like "4:00:00"
$a resources = { memory = "4 GB"; };|13|'resources.memory' is '4 GB', but must be an amount of memory, such as "16G"
s/"asha"/"ASHA"/|4|unknown searcher "ASHA"; did you mean "asha"
s/"asha"/"xyzzy"/|4|unknown searcher "xyzzy"; there are auto, single, .*, custom$
EOF2
mistake '$a resources = { framework = ""; };' "^exp.conf:13: 'resources.framework' is empty: leave it out" "no framework"
while read -r searcher edit said; do
    printf '%s\n' "$good" | sed -e "s/asha/$searcher/; $edit" >exp.conf
    out=$(dl run --dry-run exp.conf 2>&1)
    is "$? $(printf '%s\n' "$out" | grep -c 'stops no trial early')" "0 $said" "$searcher $edit: reports that it stops no trial early"
done <<'EOF2'
asha 7d 1
asha s/max_length.=.9/max_length=3/ 1
asha s/max_length.=.9/max_length=4/ 0
bohb 7d 1
stopping_asha 7d 1
median s/max_length.=.9/max_length=2/ 0
median 7d 1
pbt 6,7d 1
pbt 6d 0
auto 7d 0
random 7d 0
tpe s/max_trials/divisor=3;max_trials/ 1
asha s/max_trials/divisor=3;max_trials/ 0
EOF2
like "$(printf '%s\n' "$good" | sed 7d >exp.conf; dl run --dry-run exp.conf 2>&1)" "^dl: exp.conf: searcher \"asha\" stops no trial early: 'searcher.max_length', the length of a full training, is 1, but must be at least 4 for that" "a search without rungs"
accepted 's/"t"/"t"\n    "u"/' '^tu: searcher' "a text of two lines"
mistake 's/"\.\/train /"train /' "^exp.conf:2: 'entrypoint': there is no program 'train' in PATH: write ./train for the file in " "a program without its path"
mkdir folder
mistake 's/"\.\/train /".\/folder /' "^exp.conf:2: 'entrypoint': './folder' is a directory$" "a directory for a program"
accepted 's/{lr}/{lr/' "^dl: exp.conf:10: nothing uses the hyperparameter 'lr': the entrypoint has no \{lr\}" "an unclosed placeholder is text"
mistake '1a name = "u";' "^exp.conf:2: duplicate setting name: a name may appear only once in its group, including what @include inserts; --set replaces a value$" "key given twice"

# ---- ranges: as exponents, as values
lr () { echo "s/lr = .*/lr = { $1 };/"; }
accepted "$(lr 'type = "loguniform"; min = 1e-4; max = 1e-1;')" '^  lr: 0.0001 to 0.1, logarithmic$' "loguniform"
like "$(cat out)" '^  sample 3: \{"lr": 0\.0[0-9]+, "optimizer": \{"momentum": 0.9\}\}$' "loguniform: three points"
accepted "$(lr 'type = "loguniform"; minval = 1e-4; maxval = 1e-1; default = 3e-4; mean = 1e-3; deviation = 1;')" '^  lr: 0.0001 to 0.1' "loguniform with the other names"
mistake "$(lr 'type = "loguniform"; min = 0; max = 1e-1;')" "^exp.conf:10: hyperparameter 'lr': 'min' and 'max' of a loguniform must be above 0" "loguniform from 0"
mistake "$(lr 'type = "loguniform"; min = 1e-4;')" "^exp.conf:10: hyperparameter 'lr': type \"loguniform\" needs 'max'" "loguniform to nowhere"
mistake "$(lr 'type = "loguniform"; minval = 1e-4; base = 2; maxval = 1;')" "^exp.conf:10: hyperparameter 'lr': unknown key 'base'" "loguniform: no base"
mistake "$(lr 'type = "log"; minval = 0.001; maxval = 0.1;')" "^exp.conf:10: hyperparameter 'lr': .* are exponents: its values would be from 1.002 to 1.259; for values from 0.001 to 0.1 write type = \"loguniform\"" "log with values"
accepted "$(lr 'type = "log"; base = 2; minval = 1; maxval = 10;')" '^  lr: 2 to 1024, logarithmic$' "log with exponents above 0"
accepted "$(lr 'type = "float"; minval = 0; maxval = 0.5; step = 0.1;')" '^  lr: 0 to 0.5, in steps of 0.1$' "a range with steps"
accepted "$(lr 'type = "categorical"; vals = [1, 2];')" '^  lr: 1, 2$' "a list of values"

# ---- @include: messages name the included file's own lines, and the frozen copy has its text
mistake '1i @include "other.conf"' "^exp.conf:1: @include: cannot read other.conf: No such file" "no such include"
mistake '1i @include other' "^exp.conf:1: @include needs the name of a file in quotes" "an include without a name"
mkdir -p group
printf 'cpus_per_trial = 3;\nworkers = 2; # site\n@include "time.conf"' >group/site.conf
echo 'time = "1:00:00";' >group/time.conf
mistake '$a resources = {\n@include "group/site.conf"\nlanes = 1; };' "^exp.conf:15: unknown key 'resources.lanes'" "the lines after an include are right"
accepted '$a resources = {\n@include "group/site.conf"\n};' 'smaller is better\), 2 workers' "an include in a group, and one in that"
dl run --no-workers exp.conf >/dev/null
rm -r group
like "$(cat t-0001/experiment.conf)" 'time = "1:00:00"' "the frozen file contains what was included"
is "$(grep -c include t-0001/experiment.conf)" 0 "and no include"
dl show t >/dev/null
is $? 0 "so that it does not need them"
rm -r t-0001
mkdir group
printf 'cpus_per_trial = 3;\nworkerss = 2;\n' >group/site.conf
mistake '$a resources = {\n@include "group/site.conf"\n};' "^group/site.conf:2: unknown key 'resources.workerss'; did you mean 'resources.workers'" "a mistake in a template"
printf 'cpus_per_trial = 3;\nworkers 2;\n' >group/site.conf
mistake '$a resources = {\n@include "group/site.conf"\n};' "^group/site.conf:2: syntax error" "syntax in a template"
printf '@include "site.conf"\n' >group/site.conf
mistake '1i @include "group/site.conf"' "^group/site.conf:1: @include: nested too deeply" "a template of itself"
rm -r group

# ---- YAML: the same keys, chosen by the suffix
cat >exp.yaml <<'EOF2'
name: t
entrypoint: ./train --lr {lr}
searcher:
  name: asha
  metric: loss
  max_trials: 9
  max_length: 9
hyperparameters:
  lr: {type: log, minval: -3, maxval: 0}
  wd: {type: loguniform, min: 1e-6, max: 0.01}
  act: {type: categorical, vals: [relu, "1", 2, true]}
  optimizer:
    momentum: 0.1
metrics:
  pattern:
    - 'loss={loss}'
    - "step {step} acc {acc}"
reproducibility: {experiment_seed: 1}
EOF2
yaml=$(dl run --dry-run exp.yaml)
is $? 0 "an experiment file in YAML"
printf '%s\n' "$good" | sed 's/    optimizer/    wd = { type = "loguniform"; min = 1e-6; max = 0.01; }; act = { type = "categorical"; vals = ("relu", "1", 2, true); };\n&/; s/0\.9/0.1/; $a reproducibility = { experiment_seed = 1; };' >exp.conf
is "$yaml" "$(dl run --dry-run exp.conf)" "equals one in libconfig's format"
dl run --no-workers exp.yaml >/dev/null && dl show t >/dev/null
is $? 0 "its frozen copy can be read"
like "$(cat t-0001/experiment.conf)" '"1", 2, true' "with the types of its values"
rm -r t-0001
is "$(dl run --dry-run --set searcher.max_trials=3 exp.yaml | grep -c '^3 trials')" 1 "--set of YAML"
sed 's/vals: \[relu,/vals: [null, relu,/; s/{lr}/{lr} [--momentum {optimizer.momentum}] {act}/; s/momentum: 0.1/momentum: ~/; /max_trials/d; s/max_length: 9/max_length: 1/; s/name: asha/name: single/' exp.yaml >null.yaml
out=$(dl run --dry-run null.yaml)
is $? 0 "YAML: null among the hyperparameters"
sed -i 's|^entrypoint:.*|entrypoint: echo loss=1 [--momentum {optimizer.momentum}] {act} $DL_HP_act; cat $DL_HPARAMS; echo|; s/- .step.*//' null.yaml
dl run --local null.yaml >/dev/null 2>&1
is "$(sed -n 1p t-0001/trials/0001/a.1/log)" "loss=1 null null" "null in the command, in a variable, and left out with its group"
like "$(tr -d '\n ' <t-0001/trials/0001/a.1/hparams.json)" '"act":null.*"momentum":null' "null in the file of hyperparameters"
like "$(cat t-0001/experiment.conf)" 'type = "null"' "and in the frozen copy"
like "$(dl show t; dl export --format=csv t)" 'null' "dl show and dl export have it"
rm -r t-0001
in_yaml () { # in_yaml SED-SCRIPT PATTERN NAME: like mistake, for the YAML file
    sed "$1" exp.yaml >bad.yml
    refused 2 "$2" "$3" dl run --dry-run bad.yml
}
in_yaml 's/max_trials/max_trails/' "^bad.yml:6: unknown key 'searcher.max_trails'; did you mean 'searcher.max_trials'" "YAML: unknown key"
in_yaml 's/max_trials: 9/max_trials: "9"/' "^bad.yml:6: 'searcher.max_trials' is a string, but must be an integer" "YAML: quoted number"
in_yaml 's/minval: -3, //' "^bad.yml:9: hyperparameter 'lr': type \"log\" needs 'minval'" "YAML: missing bound"
in_yaml '6a\\ bad' "^bad.yml:[67]: " "YAML: syntax"
in_yaml 's/^  lr/\tlr/' "^bad.yml:9: .*(do not indent with tabs; quote a string with such a character)" "YAML: a tab"
in_yaml 's/max_trials: 9/max_trials:9/' "^bad.yml:6: .*(a key is followed by a colon and a space)" "YAML: no blank behind a colon"
in_yaml 's/metric: loss/metric: a: b/' "^bad.yml:5: .*(quote a string that has a colon and a space; .*)" "YAML: a colon in a text"
in_yaml 's/^entrypoint: .*/entrypoint: {lr} train/' "^bad.yml:2: .*(quote a string that starts with . or .; .*)" "YAML: a text that begins with a brace"
in_yaml 's/^  lr: \(.*\)}/  lr: \1/' "^bad.yml:9: .*(the . or . of this line is not closed)" "YAML: a brace that is not closed"
in_yaml 's/name: asha/- &/' "^bad.yml:5: .*(a list cannot have keys beside its items)" "YAML: a list or a group"
in_yaml 's/name: asha/&\n  name: gp/' "^bad.yml:5: duplicate setting name 'name'" "YAML: key given twice"
in_yaml 's/momentum: 0.1/mo.mentum: 0.1/' "^bad.yml:13: 'mo.mentum' cannot be the name of a key" "YAML: a name that cannot be"
in_yaml 's/momentum: 0.1/mo mentum: 0.1/' "^bad.yml:13: 'mo mentum' cannot be the name of a key: letters, digits" "YAML: a name with a space"
in_yaml 's/max_trials: 9/max_trials: null/' "^bad.yml:6: a value is missing here" "YAML: null elsewhere"
in_yaml 's/metric: loss/metric:/' "^bad.yml:5: a value is missing here" "YAML: no value"
in_yaml 's/momentum: 0.1/momentum: !ENV X/' "^bad.yml:13: unsupported tag !ENV: only plain values are read" "YAML: a tag of another program"
in_yaml 's/momentum: 0.1/momentum: !!python\/tuple [1, 2]/' "^bad.yml:13: unsupported tag tag:yaml.org,2002:python/tuple:" "YAML: a tag of Python"
in_yaml 's/momentum: 0.1/momentum: !!str 5/' "^bad.yml:13: a tag: quote a string" "YAML: a tag for a text"
in_yaml 's/momentum: 0.1/momentum: !!int x/' "^bad.yml:13: the value does not match its tag" "YAML: a tag that is wrong"
in_yaml '$a ---\na: 1' "^bad.yml:20: a second document starts here" "YAML: two documents"
in_yaml '1i - a' "^bad.yml:" "YAML: a list"

# ---- one mistake gives one error, not several
mistake 's/minval = -3/min = -3/' "^exp.conf:10: hyperparameter 'lr': unknown key 'min'; did you mean 'minval'" "a misspelt bound is not missing, too"
mistake 's/type = "log"/typ = "log"/' "^exp.conf:10: hyperparameter 'lr': 'type' is missing" "a parameter without a type is no group of constants"
mistake '4a warm_start = "nowhere";' "^exp.conf:5: 'searcher.warm_start': .*/nowhere/experiment.conf: cannot read: No such file" "warm start from nowhere"
mistake '$a environment = { A = 3; };' "^exp.conf:13: 'environment.A' is an integer" "a variable that is no text"
out=$(dl run --dry-run --set a.b=3 exp.conf 2>&1)
like "$out" "^--set a.b=3: unknown key 'a'" "an unknown group of --set"
: >empty.conf
out=$(dl run --dry-run empty.conf 2>&1)
like "$out" "^empty.conf: searcher \"auto\" needs 'searcher.max_trials'" "a file without lines has no line 0"

# ---- mistakes that libconfig would not report, or would misread
mistake 's/max_trials = 9/max_trials = 99999999999/' "^exp.conf:6: 'searcher.max_trials' is 99999999999, but must be from 1 to" "an integer of 64 bits"
mistake 's/max_trials = 9/max_trials = 0x1000000009/' "^exp.conf:6: 'searcher.max_trials' is 68719476745, but" "in hexadecimal"
mistake 's/max_trials = 9/max_trials = 99999999999999999999/' "^exp.conf:6: 99999999999999999999 does not fit into 64 bits" "an integer of more"
accepted 's/lr = .*/lr = { type = "int"; minval = 0; maxval = 4294967296; };/' '^space: 1 dimension, 4294967297 points' "a range above 32 bits"
accepted 's/lr = .*/lr = { type = "int"; minval = 0; maxval = 4294967296L; }; # 99999999999999999999 "/' '^space: 1 dimension, 4294967297 points' "with an L, too, and a comment"
mistake '$a /* resources' "^exp.conf:13: the comment that starts here is not closed" "comment without an end"
mistake '$a description = "a' "^exp.conf:13: the string that starts here is not closed" "text without an end"
mistake "s/lr = .*/lr = { type = \"categorical\"; vals = [\"a\", \"\\xe9\"]; };/" "^exp.conf:10: this text is not UTF-8" "a choice in Latin-1"
mistake "s/lr = .*/lr = { type = \"categorical\"; vals = [\"a\", \"\\\\xe9\"]; };/" "^exp.conf:10: this text is not UTF-8" "in escapes"
printf '\357\273\277%s\n' "$good" >exp.conf
runs 0 "a byte order mark" dl run --dry-run exp.conf
printf 'name = "t";\n\000' >exp.conf
like "$(dl run --dry-run exp.conf 2>&1)" '^exp.conf:2: a NUL byte' "not text"
like "$(dl run --dry-run . 2>&1)" '^.: cannot read: Is a directory' "a folder"
like "$(timeout 300 dl run --dry-run /dev/zero 2>&1)" '^/dev/zero: cannot read: File too large' "an endless file"
{ printf '%s\n#' "$good"; head -c 10000000 /dev/zero | tr '\0' a; } >exp.conf
runs 0 "a comment of 10 MB" dl run --dry-run exp.conf
awk 'BEGIN { for (i = 0; i < 700000; i++) print "k" i " = " i ";" }' >exp.conf
like "$(timeout 300 dl run --dry-run exp.conf 2>&1)" '^exp.conf:[0-9]+: more than 20000 settings' "settings without number"

# ---- hyperparameters
accepted '4d' '^t: searcher auto' "no searcher.name: auto"
accepted 's/lr = .*/lr = { type = "float"; minval = 0; maxval = 1; step = 0.25; };/' '^space: 1 dimension, 5 points$' "step of a float"
accepted 's/lr = .*/lr = { type = "int"; minval = 1; maxval = 8; step = 3; };/' '^space: 1 dimension, 3 points$' "step of an int"
mistake 's/minval = -3/step = 0.5; minval = -3/' "^exp.conf:10: hyperparameter 'lr': unknown key 'step'" "step of a log"
mistake 's/lr = .*/lr = { type = "int"; minval = 1; maxval = 8; step = 1.5; };/' "^exp.conf:10: hyperparameter 'lr': step is not an integer" "broken step of an int"
mistake 's/lr = .*/lr = { type = "int"; minval = 1; maxval = 8; step = 0; };/' "^exp.conf:10: hyperparameter 'lr': 'step' must be above 0" "no step"
mistake 's/minval = -3/mean = -1; minval = -3/' "^exp.conf:10: hyperparameter 'lr': 'mean' needs 'deviation'" "mean alone"
mistake 's/minval = -3/mean = 1; deviation = 1; minval = -3/' "^exp.conf:10: hyperparameter 'lr': mean is not between" "mean out of range"
mistake 's/minval = -3/deviation = 0; minval = -3/' "^exp.conf:10: hyperparameter 'lr': 'deviation' must be above 0" "no deviation"
accepted "s/minval = -3/deviation = 1e-9; minval = -3/; s/\"asha\"/\"random\"/; $seed" 'trial 3: \{"lr": 0.031622' "a deviation is around the middle"
accepted "s/minval = -3/mean = -1; deviation = 1e-9; minval = -3/; s/\"asha\"/\"random\"/; $seed" 'trial 3: \{"lr": (0.1|0.1000000[0-9]*|0.0999999[0-9]*),' "a deviation around a mean"
accepted "s/minval = -3/default = 0.5; minval = -3/; $seed" 'trial 1: \{"lr": 0.5,' "a default is trial 1"
like "$(cat out)" '^tried first: 1 given point$' "and reported"
mistake 's/minval = -3/default = -1; minval = -3/' "^exp.conf:10: hyperparameter 'lr': 'default': -1 is not a value of 'lr': it has numbers from 0.001 to 1" "a default is no exponent"
mistake 's/lr = .*/lr = { type = "int"; minval = 1; maxval = 8; step = 3; default = 5; };/' "^exp.conf:10: hyperparameter 'lr': 'default': 5 is not a value of 'lr': it has numbers from 1 to 8 in steps of 3" "default between two steps"
mistake 's/lr = .*/lr = { type = "categorical"; vals = ("sgd", "adam"); default = "adan"; };/' "^exp.conf:10: hyperparameter 'lr': 'default': \"adan\" is not a value of 'lr'; did you mean \"adam\"\?" "default that is no choice"
mistake 's/lr = .*/lr = { type = "categorical"; vals = (1, "1"); };/' "^exp.conf:10: hyperparameter 'lr': 'vals' has the text \"1\" twice" "a choice twice"
mistake 's/lr = .*/lr = { type = "const"; val = 1; default = 1; };/' "^exp.conf:10: hyperparameter 'lr': unknown key 'default'" "default of a constant"

# ---- log_policies (on line 13)
policy () { # policy LIST: print a sed script that appends it to the good file
    echo "\$a log_policies = $1;"
}
bad="^exp.conf:13: 'log_policies'"
accepted "$(policy '( { name = "a"; pattern = "b+"; action = "exclude_node"; }, { name = "c"; pattern = "d"; } )')" 'nothing was started' "policies"
accepted "$(policy '( { name = "CUDA OOM"; pattern = ""; } )')" 'nothing was started' "a built-in policy switched off"
mistake "$(policy '{ name = "a"; pattern = "b"; }')" "$bad must be a list of policies" "policies: no list"
mistake "$(policy '( "a" )')" "$bad must be a list of policies" "policies: no groups"
mistake "$(policy '( { name = "a"; patern = "b"; } )')" "$bad: unknown key 'patern'; did you mean 'pattern'\?" "policies: unknown key"
mistake "$(policy '( { name = "a"; pattern = "b"; action = "exclude_nodes"; } )')" "$bad: unknown action 'exclude_nodes'; did you mean 'exclude_node'\?" "policies: unknown action"
mistake "$(policy '( { name = "a"; pattern = "b"; action = "stop"; } )')" "$bad: unknown action 'stop'; dl-experiment\(5\) lists them" "policies: no such action"
mistake "$(policy '( { name = "a"; } )')" "$bad: a policy without 'pattern'" "policies: no pattern"
mistake "$(policy '( { pattern = "a"; } )')" "$bad: a policy without 'name'" "policies: no name"
mistake "$(policy '( { name = ""; pattern = "a"; } )')" "$bad: 'name' must have 1 to 64 bytes" "policies: empty name"
mistake "$(policy '( { name = "a"; pattern = 3; } )')" "$bad: 'pattern' must be a string" "policies: a number"
mistake "$(policy '( { name = "a"; pattern = "(b"; } )')" "$bad: 'pattern' \"\(b\": " "policies: no regular expression"
mistake "$(policy '( { name = "a"; pattern = "b"; }, { name = "a"; pattern = "c"; } )')" "$bad: two policies have the name \"a\"" "policies: one name twice"
mistake "s/^name = \"t\";/&\nlog_policie = ();/" "^exp.conf:2: unknown key 'log_policie'; did you mean 'log_policies'\?" "log_policies misspelt"

# ---- when: the good file, with a choice and a parameter that depends on it
good=$(printf '%s\n' "$good" | sed 's/optimizer = .*/optimizer = { name = { type = "categorical"; vals = ("adam", "sgd"); };\
    momentum = { type = "float"; minval = 0; maxval = 1; WHEN }; }; fixed = 3;/')
w () { # w TEXT: print a sed script that inserts it
    printf 's/WHEN/%s/' "$1"
}
is_active='when = { optimizer = { name = "sgd"; }; };'
accepted "$(w "$is_active"); s/\"asha\"/\"single\"/; /max_trials/d; $seed" 'trial 1: .*"optimizer": \{"name": "adam"\}' "what waits is not there"
accepted "$(w 'when = { optimizer = { name = ["adam", "sgd"]; }; };'); $seed" 'trial 1: .*"momentum"' "one of a list is enough"
accepted "$(w 'when = { lr = [0.1, 0.2]; };')" '^space: 3 dim' "a number to wait for"
bad="^exp.conf:12: hyperparameter 'optimizer.momentum': 'when'"
mistake "$(w 'when = "sgd";')" "$bad must be \{ name = value; \}" "when: no group"
mistake "$(w 'when = { lr = 1; fixed = 3; };')" "$bad must be \{ name = value; \}: one other" "when: two names"
mistake "$(w 'when = { optimiser = { name = "sgd"; }; };')" "$bad: 'optimiser.name' is not a hyperparameter; did you mean 'optimizer.name'\?" "when: unknown name"
mistake "$(w 'when = { fixed = 3; };')" "$bad: 'fixed' is a constant" "when: a constant"
mistake "$(w 'when = { optimizer = { name = ("sgd", "adan"); }; };')" "$bad: \"adan\" is not a value of 'optimizer.name'; did you mean \"adam\"\?" "when: no such choice"
mistake "$(w 'when = { lr = 7; };')" "$bad: 7 is not a value of 'lr'" "when: no such number"
mistake "$(w 'when = { optimizer = { momentum = 0.5; }; };')" "^exp.conf:12: hyperparameter 'optimizer.momentum': when: the parameters wait for each other" "when: itself"
mistake "$(w 'when = { lr = []; };')" "^exp.conf:12: hyperparameter 'optimizer.momentum': when: no values" "when: no values"

# ---- the group searcher
good=$(printf '%s\n' "$good" | sed "s/WHEN/$is_active/; s/max_trials = 9;/& MORE/")
more () { # more TEXT: print a sed script that inserts it into line 6
    printf 's/MORE/%s/' "$1"
}
accepted "$(more 'constraint = "lr < 0.5";')" '^space: 3 dimensions, constrained$' "a constraint"
accepted "$(more 'constraint = ("lr < 0.5 || lr > 0.7", "optimizer.momentum > 0.5");'); $seed" 'trial 1:' "a list of constraints"
mistake "$(more 'constraint = "lr < ";')" '^exp.conf:6: searcher.constraint: column 6: expected a value' "constraint: syntax"
mistake "$(more 'constraint = (\n"lr < 1", "lr < 1)");')" '^exp.conf:7: searcher.constraint: column 7: ' "constraint: line of a list"
mistake "$(more "constraint = \"optimizer.name == 'adan'\";")" '^exp.conf:6: searcher.constraint: column 19: ' "constraint: no such choice"
mistake "$(more 'constraint = "lr < 1 \&\& optimizer.momentun > 0";')" "^exp.conf:6: searcher.constraint: column 11: no parameter has this name .*: 'optimizer.momentun'; did you mean 'optimizer.momentum'\?" "constraint: a near name"
mistake "$(more 'constraint = "`layers` > 2 * lr";')" "^exp.conf:6: .* column 1: no parameter .*: 'layers'$" "constraint: no such name"
mistake "$(more 'constraint = "fixed > lr";')" "^exp.conf:6: .*: 'fixed', which is a constant$" "constraint: a constant"
mistake "$(more 'constraint = "lr > 2";')" '^exp.conf:6: searcher.constraint: .*fewer than 10 of 20000' "constraint: impossible"
mistake "$(more 'constraint = ("lr > 0.1", "lr < 0.05");')" '^exp.conf:6: searcher.constraint: .*fewer than 10 of 20000' "constraints: impossible together"
mistake "$(more 'constraint = 3;')" "^exp.conf:6: 'searcher.constraint' is an integer" "constraint: no text"
accepted "$(more 'try_first = ({ optimizer = { name = "sgd"; momentum = 0.25; }; }, { lr = 0.125; });'); $seed" 'trial 1: .*"momentum": 0.25, "name": "sgd"' "try_first: first"
like "$(cat out)" 'trial 2: .*"lr": 0.125, "optimizer": \{"name": "adam"\}' "try_first: second, with first choices"
accepted "$(more 'try_first = ({ lr = 0.125; });'); s/minval = -3/default = 0.5; minval = -3/; $seed" 'trial 1: .*"lr": 0.5' "the defaults go before try_first"
like "$(cat out)" 'trial 2: .*"lr": 0.125' "which is next"
bad="^exp.conf:6: 'searcher.try_first'"
mistake "$(more 'try_first = { lr = 0.1; };')" "$bad must be a list of points" "try_first: no list"
mistake "$(more 'try_first = (0.1);')" "$bad must be a list of points" "try_first: no groups"
mistake "$(more 'try_first = ({ lrr = 0.1; });')" "$bad: 'lrr' is not a hyperparameter; did you mean 'lr'\?" "try_first: unknown name"
mistake "$(more 'try_first = ({ fixed = 3; });')" "$bad: 'fixed' is a constant" "try_first: a constant"
mistake "$(more 'try_first = ({ lr = 7; });')" "$bad: 7 is not a value of 'lr'" "try_first: no such value"
mistake "$(more 'try_first = ({ lr = "a"; });')" "$bad: \"a\" is not a value of 'lr'" "try_first: a text for a number"
mistake "$(more 'try_first = ({ optimizer = { momentum = 0.5; }; });')" "$bad: 'optimizer.momentum' is not active at this point: it depends on 'optimizer.name'" "try_first: not active"
mistake "$(more 'constraint = "lr < 0.5"; try_first = ({ lr = 0.1; },\n{ lr = 0.6; });')" "^exp.conf:7: 'searcher.try_first': 'searcher.constraint' forbids this point" "try_first: forbidden"
mistake "$(more 'constraint = "lr < 0.5";'); s/minval = -3/default = 0.6; minval = -3/" "^exp.conf:9: the hyperparameters' defaults, which are trial 1: 'searcher.constraint' forbids" "defaults: forbidden"
mistake "s/max_trials = 9; MORE/max_trials = 1; try_first = ({}, {});/" "$bad: 2 points, the defaults included, are more than the 1 trial" "try_first: too many"
mistake "s/\"asha\"/\"grid\"/; s/max_trials = 9; MORE/try_first = ({});/; s/minval = -3/count = 2; minval = -3/; s/maxval = 1;/& count = 2;/" "^exp.conf:6: searcher \"grid\" tries only its own points" "try_first: grid"
accepted "$(more 'sampler = "sobol"; repeats = 2;')" '^ +all +18' "sampler and repeats"
mistake "$(more 'sampler = "sobel";')" "^exp.conf:6: unknown sampler \"sobel\"; did you mean \"sobol\"\?" "unknown sampler"
mistake "$(more 'sampler = "asha";')" "^exp.conf:6: searcher: the sampler must be" "a sampler that is none"
mistake "$(more 'repeats = 65;')" "^exp.conf:6: 'searcher.repeats' is 65" "too many repeats"
mistake "$(more 'repeats = 2;'); s/\"asha\"/\"median\"/" "^exp.conf:3: searcher: this searcher cannot repeat" "repeats of median"
for key in 'population = 5;' 'min_length = 2;' 'cost_aware = true;' 'command = "x";'; do
    mistake "$(more "$key")" "^exp.conf:6: searcher \"asha\" does not use 'searcher.${key%% *}' " "asha has no ${key%% *}"
done
accepted "$(more 'cost_aware = false;')" 'nothing was started' "asha is not cost-aware"
accepted "$(more 'cost_aware = true; sampler = "gp";')" 'nothing was started' "its sampler can be"
accepted "s/\"asha\"/\"pbt\"/; s/max_trials = 9; MORE/population = 5; min_length = 4;/" '^5 trials, .* at most 15 segments' "pbt"
mistake "$(more ''); s/\"asha\"/\"pbt\"/" "^exp.conf:6: searcher \"pbt\" sets the number of trials itself" "max_trials of pbt"
mistake "$(more ''); s/\"asha\"/\"custom\"/" "^exp.conf:3: searcher \"custom\" needs 'searcher.command'" "custom without its command"
accepted "$(more 'command = "x";'); s/\"asha\"/\"custom\"/" 'searcher custom' "custom"
accepted "$(more 'max_gpu_hours = 0.5; max_hours = 2;')" 'nothing was started' "limits"
mistake "$(more 'max_gpu_hours = 0;')" "^exp.conf:6: 'searcher.max_gpu_hours' is 0" "no GPU-hours"
mistake "$(more 'max_hours = "2h";')" "^exp.conf:6: 'searcher.max_hours' is a string" "hours as a text"

# ---- several metrics
both='s/"loss"/("loss", "size")/; s/"asha"/"random"/; s/max_length = 9/max_length = 1/'
accepted "$both; $(more 'smaller_is_better = [true, false];')" 'metric loss \(smaller is better\), size \(larger is better\)' "two metrics"
accepted "$both; $(more 'smaller_is_better = false;')" 'metric loss \(larger is better\), size \(larger is better\)' "one answer for both"
mistake "$both; $(more 'smaller_is_better = [true, true, true];')" "^exp.conf:6: 'searcher.smaller_is_better' has 3 values, but 'searcher.metric' has 2" "three answers for both"
mistake "$both; $(more 'smaller_is_better = [1, 2];')" "^exp.conf:6: 'searcher.smaller_is_better' is an integer" "numbers for booleans"
mistake "$both; $(more ''); s/random/cmaes/" "^exp.conf:5: searcher: this searcher takes one metric only" "two metrics for cmaes"
mistake "$both; $(more ''); s/random/auto/; s/max_length = 1/max_length = 2/" "^exp.conf:7: searcher: several metrics need full trainings" "two metrics and rungs"
mistake "$(more ''); s/\"loss\"/(\"a\", \"a\")/" "^exp.conf:5: 'searcher.metric' has \"a\" twice" "a metric twice"
mistake "$(more ''); s/\"loss\"/()/" "^exp.conf:5: 'searcher.metric' must be 1 to 8 metrics" "no metrics"
mistake "$(more ''); s/\"loss\"/(\"a\", 3)/" "^exp.conf:5: 'searcher.metric' is an integer" "a number among metrics"
mistake "$(more ''); s/\"loss\"/(\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\")/" "^exp.conf:5: 'searcher.metric' must be 1 to 8 metrics" "nine metrics"

refused 3 '^absent.conf: cannot read: No such file' "absent file" dl run --dry-run absent.conf
head -c 100 /dev/urandom >exp.conf
runs 2 "noise" dl run --dry-run exp.conf
: >exp.conf
out=$(dl run --dry-run exp.conf 2>&1)
is $? 2 "empty file"
like "$out" "'name' is missing" "empty file: what"

cd / && rm -rf "$work"
done_testing
