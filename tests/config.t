#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# each mistake in an experiment file gives one clear line: file, line, what, what to do
. "$srcdir/tests/lib.sh"
cd "$work" || exit 1

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

# mistake SED-SCRIPT PATTERN NAME: edit the good file, look for the line
mistake () {
    printf '%s\n' "$good" | sed -e "$1" >exp.conf
    out=$(dl run --dry-run exp.conf 2>&1)
    status=$?
    like "$out" "$2" "$3"
    is $status 2 "$3: exit status"
    [ -z "$(ls -d t-* 2>/dev/null)" ]
    ok $? "$3: nothing made"
}

printf '%s\n' "$good" >exp.conf
out=$(dl run --dry-run exp.conf 2>&1)
is $? 0 "a good file"
like "$out" '^t: searcher asha, metric loss \(smaller is better\)' "its plan"
like "$out" 'nothing was started' "its end"

mistake 's/^searcher/sercher/' "^exp.conf:3: unknown key 'sercher'; did you mean 'searcher'\?" "unknown group"
mistake 's/max_trials/max_trails/' "^exp.conf:6: unknown key 'searcher.max_trails'; did you mean 'searcher.max_trials'\?" "unknown key"
mistake '2a max_trials = 5;' "^exp.conf:3: unknown key 'max_trials'; did you mean 'searcher.max_trials'\?" "key in the wrong place"
mistake 's/max_trials = 9/max_trials = "9"/' "^exp.conf:6: 'searcher.max_trials' is a string, but must be an integer" "string for an integer"
mistake 's/max_trials = 9/max_trials = 9.5/' "^exp.conf:6: 'searcher.max_trials' is a floating-point number, but must be an integer" "fraction for an integer"
mistake 's/max_trials = 9/max_trials = 0/' "^exp.conf:6: 'searcher.max_trials' is 0, but must be from 1 to" "number out of range"
mistake 's/metric = "loss"/metric = 3/' "^exp.conf:5: 'searcher.metric' is an integer, but must be a string" "number for a string"
mistake 's/"loss";/"loss"; smaller_is_better = 1;/' "^exp.conf:5: 'searcher.smaller_is_better' is an integer, but must be true or false" "number for a boolean"
mistake 's/^searcher = {/searcher = 3; x = {/' "^exp.conf:3: 'searcher' is an integer, but must be a group" "number for a group"
mistake '/metric/d' "^exp.conf: 'searcher.metric' is missing" "missing key"
mistake '/^name/d' "^exp.conf: 'name' is missing" "missing name"
mistake '/max_trials/d' "^exp.conf:3: searcher \"asha\" needs 'searcher.max_trials'" "what the searcher needs"
mistake 's/"asha"/"ahsa"/' "^exp.conf:4: unknown searcher \"ahsa\"; did you mean \"asha\"\?" "unknown searcher"
mistake 's/"asha";/"asha"; mode = "fast";/' "^exp.conf:4: 'searcher.mode' must be \"aggressive\"" "unknown mode"
mistake 's/"t"/"a\/b"/' "^exp.conf:1: 'name' must be 1 to 100 letters" "bad name"
mistake 's/{lr}/{lrr}/' "^exp.conf:2: 'entrypoint' uses \{lrr\}, which is no hyperparameter; did you mean \{lr\}\?" "unknown placeholder"
mistake 's/"log"/"logg"/' "^exp.conf:10: hyperparameter 'lr': type must be .* did you mean \"log\"\?" "unknown type"
mistake 's/minval = -3;//' "^exp.conf:10: hyperparameter 'lr': type \"log\" needs 'minval'" "missing bound"
mistake 's/minval/minvall/' "^exp.conf:10: hyperparameter 'lr': unknown key 'minvall'; did you mean 'minval'\?" "unknown bound"
mistake 's/minval = -3/minval = 3/' "^exp.conf:10: hyperparameter 'lr': .*min" "impossible range"
mistake 's/minval = -3/minval = "a"/' "^exp.conf:10: hyperparameter 'lr': 'minval' must be a number" "bound of wrong type"
mistake 's/minval = -3/base = 1.0; minval = -3/' "^exp.conf:10: hyperparameter 'lr': .*base" "impossible base"
mistake 's/lr = .*/lr = { type = "categorical"; vals = (); };/' "^exp.conf:10: hyperparameter 'lr': " "no choices"
mistake 's/lr = .*/lr = { type = "int"; minval = 0.5; maxval = 3; };/' "^exp.conf:10: hyperparameter 'lr': " "integer bounds that are none"
mistake 's/"asha"/"grid"/' "^exp.conf:10: hyperparameter 'lr': .*count" "grid without count"
mistake 's/optimizer = .*/a = { b = 1; }; a_b = 2;/' "^exp.conf:11: hyperparameters 'a.b' and 'a_b' would both be DL_HP_a_b" "two names, one variable"
mistake '$a metrics = { pattern = "loss=(" };' "^exp.conf:13: 'metrics.pattern'" "bad expression"
mistake '$a metrics = { pattern = "loss=[0-9]+" };' "^exp.conf:13: .*names no metric" "expression without a name"
mistake '$a worker = { lease = 10; heartbeat = 6; };' "^exp.conf:13: 'worker.lease' must be at least twice" "short lease"
mistake '4d;5d' "^exp.conf: 'searcher.name' is missing" "several at once, first"
mistake '4d;5d' "^exp.conf: 'searcher.metric' is missing" "several at once, second"
mistake 's/searcher = {/searcher = /' "^exp.conf:[0-9]+: syntax error" "syntax"
mistake '1a name = "u";' "^exp.conf:2: duplicate setting name" "key given twice"

mistake '1i @include "other.conf"' "^exp.conf: @include: an experiment is one file" "include"

out=$(dl run --dry-run absent.conf 2>&1)
is $? 3 "absent file: exit status"
like "$out" '^absent.conf: cannot read: No such file' "absent file"
head -c 100 /dev/urandom >exp.conf
dl run --dry-run exp.conf >/dev/null 2>&1
is $? 2 "noise"
: >exp.conf
out=$(dl run --dry-run exp.conf 2>&1)
is $? 2 "empty file"
like "$out" "'name' is missing" "empty file: what"

cd / && rm -rf "$work"
done_testing
