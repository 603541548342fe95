#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the command line: help, versions, mistakes, exit statuses
. "$srcdir/tests/lib.sh"
cd "$work" || exit 1
unset DL_DIR DL_SOCKET

like "$(dl --help)" '^usage: dl COMMAND' "help"
like "$(dl --version)" '^dl [0-9]+\.[0-9]+' "version"
dl >/dev/null 2>&1
is $? 2 "no command"
like "$(dl rum 2>&1)" "unknown command 'rum'; did you mean 'run'\?" "mistyped command"
like "$(dl run --locall x 2>&1)" "unknown option '--locall'; did you mean '--local'\?" "mistyped option"
like "$(dl run --workers 2>&1)" "argument is missing" "option without its argument"
like "$(dl run --workers=x f 2>&1)" "'x' is not a number" "option with a bad number"
dl run >/dev/null 2>&1
is $? 2 "run without a file"
dl show a b c >/dev/null 2>&1
is $? 2 "too many arguments"
like "$(dl show 2>&1)" "no experiment in \." "no experiment"
dl show >/dev/null 2>&1
is $? 3 "no experiment: status"
dl show nope >/dev/null 2>&1
is $? 3 "unknown experiment"
dl ls --dir=/nonexistent >/dev/null 2>&1
is $? 3 "ls of a folder that is not there"
is "$(dl ls --json | tr -d ' \n\t')" '{"experiments":[]}' "ls --json of nothing"
like "$(dl log a=1 2>&1)" "not inside a trial" "dl log outside a trial"
dl log a=1 >/dev/null 2>&1
is $? 2 "dl log outside a trial: status"
like "$(DL_SOCKET=$work/none dl log a=1 2>&1)" "cannot reach the worker" "dl log without its worker"
for bad in a a= =1 a=b 'a b=1' a=1x; do
    DL_SOCKET=$work/none dl log "$bad" >/dev/null 2>&1
    is $? 2 "dl log '$bad'"
done
if [ -w /dev/full ]; then
    dl --help >/dev/full 2>/dev/null
    dl ls --help >/dev/full 2>/dev/null
    is $? 7 "a full disk under stdout is no success"
fi
printf 'name = "n"; entrypoint = "true"; searcher = { name = "random"; metric = "m"; max_trials = 1; };\n' >n.conf
mkdir bin && ln -s "$(command -v dl)" bin/dl
like "$(PATH=$work/bin "$work/bin/dl" run n.conf 2>&1)" 'sbatch: No such file or directory \(without Slurm use --local\)' "run without Slurm"
PATH=$work/bin "$work/bin/dl" run n.conf >/dev/null 2>&1
is $? 6 "run without Slurm: status"
mkdir half-0001 && : >half-0001/experiment.conf
dl show half-0001 >/dev/null 2>&1
is $? 5 "damaged experiment"
like "$(dl ls)" 'half-0001 +damaged' "ls shows it"

cd / && rm -rf "$work"
done_testing
