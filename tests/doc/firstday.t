#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root in part
# What users meet on their first day: messages that say what to do, a superfluous resume, a fork of a trial with its own files.
. "$srcdir/tests/lib.sh"
export HOME=$work

conf () { # conf NAME ENTRYPOINT [MORE]
    cat >"$1.conf" <<END
name = "$1";
entrypoint = "$2";
metrics = { pattern = "loss = {loss}"; };
searcher = { name = "random"; metric = "loss"; max_trials = 2; };
hyperparameters = { lr = { type = "log"; minval = -3; maxval = -1; }; };
worker = { heartbeat = 1; lease = 60; grace = 5; };
$3
END
}

# ---- dl resume while workers are running
conf busy "until [ -f calm ]; do sleep 0.1; done; echo loss = 1"
timeout 300 dl run --local --workers=1 busy.conf >out 2>&1 &
wait_for 100 sh -c 'ls busy-0001/trials/*/a.1/log'
timeout 100 dl resume --local busy >out2 2>&1
is $? 0 "resume of a running experiment"
like "$(cat out2)" "busy-0001 is running, with 1 worker: nothing to resume; 'dl scale N'" "adds no workers"
touch calm
wait $!
is $? 0 "it completes"

# ---- a paused trial shows its time and attempts
conf parked "echo one; exec sleep 300"
timeout 300 dl run --local --workers=1 parked.conf >out 2>&1 &
wait_for 100 sh -c 'grep one parked-0001/trials/*/a.1/log'
like "$(dl show parked 1; dl show parked 2)" '^trial [12]: open, no result$' "a trial without a result"
timeout 100 dl pause parked
wait $!
is $? 4 "paused"
like "$(cat out)" '^ +[12] open +0 +[0-9.]*[1-9][0-9.]*s +1 ' "dl run prints the time of the parked attempt"
is "$(dl show --csv --columns=attempts parked | tail -n +2 | sort -u | tail -n 1)" 1 "an attempt that has not begun is not counted"

# ---- a fork of a trial that saves its own files
conf own 'echo x >{attempt_dir}/last.pt; echo loss = 1'
timeout 300 dl run --local own.conf >out 2>&1
runs 0 "a fork of a trial with its own files" dl fork --local own-0001 1
like "$(cat out)" "it starts from scratch; with --set searcher.max_length=L it continues from the trial's files" "says how it continues from them"
timeout 300 dl fork --local own >out 2>&1
like "$(dl show own | head -1)" "^$work/own-0001: " "a fork does not reuse the name"
[ -d own-fork-0001 ]
ok $? "it has its own"

# ---- messages
conf key 'echo loss = 1'
sed -i 's/max_trials = 2;/& goal = "minimize";/' key.conf
like "$(dl run --local key.conf 2>&1)" "^key.conf:4: 'searcher.goal' is a string, but must be a number" "goal"
conf warn 'echo loss = 1' 'max_restarts = 0;'
out=$(dl run --local --dry-run --set 'searcher.metric="accuracy"' warn.conf 2>&1)
is $? 0 "a metric in no pattern"
like "$out" "^dl: warn.conf: no metrics.pattern has \{accuracy\}, the metric of the search: a trial has a result only if" "gives a warning"
like "$(dl run --local --dry-run --set 'searcher.metric="los"' warn.conf 2>&1)" "has \{los\}, the metric of the search; did you mean 'loss'\?: a trial" "the nearest name"
is "$(dl run --local --dry-run warn.conf 2>&1 | grep -c 'no metrics.pattern')" 0 "but none if a pattern has it"
sed -i 's/^hyperparameters.*/hyperparameters = { lr = [0.1, 0.2]; };/' warn.conf
line=$(grep -n '^hyperparameters' warn.conf | cut -d: -f1)
like "$(dl run --local --dry-run warn.conf 2>&1)" "^dl: warn.conf:$line: nothing is searched: each trial gets the whole list 'lr'; to choose from it" "a list is not a choice"
sed 's/^hyperparameters.*/hyperparameters = { lr = [0.1, 0.2]; wd = { type = "float"; minval = 0.0; maxval = 1.0; }; };/' warn.conf >list.conf
like "$(dl run --local --dry-run --set 'entrypoint="echo loss = {lr} {wd}"' list.conf 2>&1)" "^dl: list.conf:$line: each trial gets the whole list 'lr'; to choose from it" "also beside searched parameters"
is "$(dl run --local --dry-run --set 'entrypoint="echo loss = {wd}"' list.conf 2>&1 | grep -c 'whole list')" 0 "but not if the program may want a list"
like "$(dl run --local --dry-run --set 'entrypoint="echo loss = {wd:.3f}"' list.conf 2>&1)" "^dl: list.conf:[0-9]+: 'entrypoint': \{wd:...\} is left as it is; write \{wd\} for the hyperparameter$" "a Python format string"
# shellcheck disable=SC2016
like "$(dl run --local --dry-run --set 'entrypoint="echo loss = ${wd}"' list.conf 2>&1)" "^dl: list.conf:[0-9]+: 'entrypoint': .\{wd\} is a shell variable; write \{wd\} for the hyperparameter$" "a shell variable"
sed 's/^hyperparameters.*/hyperparameters = { lr = { type = "float"; minval = 0.0; maxval = 1.0; }; wd = { type = "float"; minval = 0.0; maxval = 1.0; when = { lr = 0.5; }; }; };/' warn.conf >when.conf
like "$(dl run --local --dry-run when.conf 2>&1)" "^dl: when.conf: hyperparameter 'wd' is hardly ever active: its 'when' requires a single value from the range of 'lr'$" "a condition that no point fulfils"
is "$(dl run --local --dry-run --set 'hyperparameters.lr.step=0.5' when.conf 2>&1 | grep -c 'hardly ever')" 0 "but not if the range has steps"
echo 'import sys, os' >train.py
is "$(dl run --local train.py 2>&1; echo $?)" "train.py: this is a program: name it in 'entrypoint' of an experiment file, see dl-experiment(5)
2" "a program is not an experiment file"
mkdir made
sed 's/"warn"/"cnn"/' warn.conf >made/cnn.conf
dl run --local --no-workers --dir=made made/cnn.conf >out 2>&1
for name in cnn cnn-0001 made/cnn-0001; do
    is "$(dl run --local --dir=made $name 2>&1; echo $?)" "dl: $name is an experiment, not a file: 'dl continue $name' continues it ('dl resume $name' if it is paused or has no workers), 'dl fork $name' creates another one from its file
2" "dl run $name, which exists"
done
like "$(cd made && dl try cnn-0001 2>&1)" "'dl fork cnn-0001' creates another one" "dl try, too"
rm -r made
like "$(dl run --local warn 2>&1)" "^warn: cannot read: .*; did you mean 'warn.conf'\?" "a file without its .conf"
like "$(dl run --local --dir=none warn.conf 2>&1)" "none: cannot create an experiment folder: .*; create it first" "a folder that does not exist"
mkdir bin
program bin/sbatch <<'END'
echo "$SAY" >&2
exit 1
END
PATH=$work/bin:$PATH
SAY='sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host
sbatch: error: fetch_config: DNS SRV lookup failed
sbatch: fatal: Could not establish a configuration source' timeout 100 dl run warn.conf >out 2>err
is $? 6 "outside Slurm"
like "$(cat err)" '^dl: sbatch finds no Slurm here: use --local to work on this machine' "says what to do"
SAY="sbatch: unrecognized option '--dl=torch'" timeout 100 dl run --set 'resources.framework="torch"' warn.conf >out 2>err
like "$(cat err)" "^dl: sbatch: .*'--dl=torch': the slurm-dl plugin is not loaded here" "without the plugin"
conf spent 'sleep 0.1; exit $DL_TRIAL' 'max_restarts = 0;'
sed -i 's/max_trials = 2;/max_trials = 20; max_gpu_hours = 0.0001;/' spent.conf
timeout 300 dl run --local --workers=1 spent.conf >out 2>&1
like "$(cat out)" '^searcher.max_gpu_hours \(0.0001\) is used up: no more segments start' "a spent budget"
like "$(dl show spent)" '^searcher.max_gpu_hours \(0.0001\) is used up' "in dl show, too"

# ---- another user's experiment
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$work"
    chmod -R go+rX "$work"
    mkdir theirs
    conf theirs 'echo loss = 1'
    dl run --no-workers --dir theirs theirs.conf >out
    runs 7 "dl kill of another user's experiment" setpriv --reuid=65534 --regid=65534 --clear-groups "$(command -v dl)" kill --dir theirs theirs-0001
    like "$(cat out)" 'theirs-0001: the experiment belongs to root, who alone may change it: ' "names the owner"
else
    skip "dl kill of another user's experiment" "not root"
fi

done_testing
