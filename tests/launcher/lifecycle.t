#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Changes of state: pause, resume, stop, kill, continue, retry, fork, wait, logs -f, labels, rm.
. "$srcdir/tests/lib.sh"
unset DL_DIR DL_SOCKET

conf () { # conf NAME SEARCHER-LINES ENTRYPOINT [MORE]
    write_conf "$1" "$3" "$2" 'max_restarts = 0;' 'worker = { heartbeat = 1; lease = 60; grace = 30; };' "$4" \
        'hyperparameters = { lr = { type = "float"; minval = 0.1; maxval = 1; }; k = 0.30000000000000004; };'
}
state () { dl ls --all | sed -n "s/^$1 *\([a-z]*\) .*/\1/p"; } # state NAME

# try STATUS PATTERN COMMAND...: check the exit status and one line of output
try () {
    wanted=$1
    pattern=$2
    shift 2
    out=$(timeout 300 "$@" 2>&1)
    is $? "$wanted" "$*: exit status"
    like "$out" "$pattern" "$*: says so"
}

program slow.sh <<'END'
trap 'exit 0' TERM
echo "trial $DL_TRIAL begins"
while [ ! -f go ]; do sleep 0.1; done
dl log --step "$DL_LENGTH" "loss=$DL_HP_lr"
END
begin () { # begin NAME: start it and wait until workers train two trials
    rm -f go
    timeout 300 dl run --local "$1.conf" >"$1.out" 2>&1 &
    pid=$!
    wait_for 300 sh -c "[ \$(ls -d $1-0001/trials/*/a.1/log | wc -l) -ge 2 ]"
}

# ---- an experiment whose max_hours soon pass
conf hours 'name = "random"; max_trials = 1; max_hours = 0.0003;' '"dl log loss=1"'
timeout 300 dl run --local hours.conf >out 2>&1
ended=$(date +%s)

# ---- running: commands that are refused, dl show, pause, resume
conf slow 'name = "random"; max_trials = 4; max_length = 5;' '"./slow.sh"'
begin slow
try 2 'is running: only an experiment that has ended can be continued' dl continue slow
try 2 'is running: only an experiment that has ended can be archived' dl archive slow
try 9 "is running: 'dl stop' ends it" dl rm slow-0001
try 10 'is still running after 0.2 s' dl wait --timeout 0.2 slow
like "$(dl show slow)" "^worker local-[0-9]+-1 on [^ ]+: trial [1-4] to 5(,|$)" "show: workers and their trials"
like "$(dl show slow)" "^last: created by $(id -un), 20" "show: who did what last"
dl wait slow >wait.out 2>&1 &
waiter=$!
try 2 'resume: --detach cannot be used with --local' dl resume --local --detach slow
try 0 "slow-0001: paused; .*run 'dl resume' to continue" dl pause slow
wait $waiter
is $? 4 "wait ends with a pause"
like "$(cat wait.out)" 'slow-0001: paused, [0-9] trials' "and says so"
wait $pid
is $? 4 "run ends with a pause"
try 0 'is already paused' dl pause slow
is "$(state slow-0001)" paused "state"
try 2 'is paused: only an experiment that has ended can be continued' dl continue slow
like "$(dl show slow)" '^last: paused by ' "show: who paused it"
touch go
try 0 'slow: completed' dl resume --local slow
is "$(count slow-0001 result) $(count slow-0001 fail)" "4 0" "each trial has its result"

# ---- completed
try 2 'has ended \(completed\): there is nothing to pause' dl pause slow
try 0 'has already ended \(completed\)' dl stop slow
try 0 'has already ended \(completed\)' dl kill slow
try 2 "has completed; run 'dl continue --trials N'" dl resume slow
try 0 'slow-0001: completed, 4 trials' dl wait slow
try 2 'nothing is left to do; to continue, give --trials N \(now 4\) or --length L \(now 5\)' dl continue slow
try 2 'trials 3: there are 4 already' dl continue --trials 3 slow
try 2 'length 4: it is 5 already, and can only grow' dl continue --length 4 slow
try 0 'no trial has failed' dl retry slow
try 2 'trial 2 has not failed: it is completed' dl retry slow 2
try 3 "no trial '7'" dl retry slow 7
is "$(state slow-0001)" completed "nothing of that changed it"
try 0 '^slow: completed after .* 6 trials' dl continue --local --trials 6 slow
is "$(count slow-0001 result) $(count slow-0001 continue)" "6 1" "two more trials"
is "$(echo "$out" | awk '$1 ~ /^[0-9.]*s$/ { print $2, $3 }' | sort | tr '\n' ' ')" "trial 5 trial 6 " "one line for the new ones only"
try 0 '^slow: completed' dl continue --local --length 9 slow
is "$(dl show --json slow | grep -c '"length": *"\{0,1\}9')" 6 "all trials train for longer"

conf grid 'name = "grid"; max_length = 1;' '"dl log loss=1"'
sed -i 's/maxval = 1;/& count = 3;/' grid.conf
timeout 300 dl run --local grid.conf >out 2>&1
try 2 'the searcher grid sets the number of trials itself' dl continue --trials 9 grid
wait_for 300 sh -c "[ \$(date +%s) -gt $((ended + 2)) ]"
try 2 'searcher.max_hours \(0.0003\) have passed' dl continue --trials 9 hours

# ---- stop and continue; kill and continue
conf stop 'name = "random"; max_trials = 4;' '"./slow.sh"'
begin stop
try 0 "stop-0001: stopped; .*run 'dl continue' to continue" dl stop stop
wait $pid
is $? 4 "run ends with a stop"
is "$(count stop-0001 fail)" 0 "a stop does not count as a failure"
try 0 'is already stopped' dl stop stop
try 2 "was stopped; run 'dl continue' to continue" dl resume --local stop
try 0 'killed; running trials end' dl kill stop
try 0 'is already killed' dl kill stop
try 0 'has already ended \(killed\)' dl stop stop
try 2 "was killed; run 'dl continue' to continue" dl resume --local stop
touch go
try 0 '^stop: completed' dl continue --local stop
is "$(count stop-0001 result)" 4 "all trials have a result"

conf kill 'name = "random"; max_trials = 2;' '["sh", "-c", "trap : TERM; while :; do sleep 0.1; done"]'
sed -i 's/grace = 30/grace = 200/' kill.conf
begin kill
start=$(date +%s)
try 0 'killed; running trials end within 2 s' dl kill kill
wait $pid
is $? 4 "run ends with a kill"
[ $(($(date +%s) - start)) -lt 150 ]
ok $? "a kill does not wait for trainers"

# ---- the jobs of an experiment, with a scancel that works and one that fails
mkdir bin
slurm () { # slurm STATUS OUTPUT: make a scancel that prints OUTPUT and exits with STATUS
    printf '#!/bin/sh\necho "$*" >>%s/cancelled\necho "%s"\nexit %s\n' "$work" "$2" "$1" >bin/scancel
    chmod +x bin/scancel
}
jobs_of () { # jobs_of NAME: make an experiment without workers that has two jobs
    conf "$1" 'name = "random"; max_trials = 1;' '"true"'
    PATH=$work/bin:$PATH dl run --dry-run "$1.conf" >/dev/null
    printf '#!/bin/sh\nexit 1\n' >bin/sbatch
    chmod +x bin/sbatch
    PATH=$work/bin:$PATH dl run "$1.conf" >out 2>&1
    "$builddir/tests/launcher/putevent" "$1-0001" '{"op": "submit", "time": 1, "by": "u", "job": "41", "first": 1, "last": 2}'
    "$builddir/tests/launcher/putevent" "$1-0001" '{"op": "submit", "time": 1, "by": "u", "job": "42", "first": 3, "last": 4}'
}
jobs_of jobs
slurm 0 ''
like "$(dl show jobs)" '^job 42: workers 3-4$' "show: jobs"
PATH=$work/bin:$PATH dl pause jobs >out 2>&1
is "$(cat cancelled)" "--state=PENDING -- 42 41" "a pause cancels pending jobs"
slurm 1 'scancel: error: Kill job error on job id 41: Access/permission denied'
out=$(PATH=$work/bin:$PATH dl kill jobs 2>&1)
is $? 0 "kill, although Slurm refuses"
like "$out" 'its jobs were not cancelled: scancel: .*permission denied' "and says so"
is "$(tail -1 cancelled)" "-- 42 41" "it tried both"
jobs_of over
slurm 1 'scancel: error: Kill job error on job id 41: Invalid job id specified'
is "$(PATH=$work/bin:$PATH dl kill over 2>&1 | wc -l)" 1 "a job that has ended is not reported"
jobs_of none
rm bin/scancel
ln -s "$(command -v dl)" bin/dl
like "$(PATH=$work/bin "$work/bin/dl" kill none 2>&1)" 'cannot find scancel' "without Slurm it says so"
is "$(state none-0001)" killed "and it is killed anyway"

# ---- retry: one failed trial, all of them, and those of a failed experiment
conf retry 'name = "random"; max_trials = 4;' '"[ -f good ] || [ $DL_TRIAL -gt 2 ] || exit 3; dl log loss=$DL_TRIAL"'
runs 0 "a sweep with two failed trials" dl run --local retry.conf
try 0 '1 trial is retried' dl retry --local retry 1
is "$(count retry-0001 retry) $(count retry-0001 exit)" "1 3" "one was retried, and failed again"
touch good
try 0 '2 trials are retried' dl retry --local retry
is "$(state retry-0001) $(count retry-0001 result)" "completed 4" "now all have a result"
conf fails 'name = "random"; max_trials = 2;' '"[ -f better ] && dl log loss=1"'
timeout 300 dl run --local fails.conf >out 2>&1
try 1 'fails-0001: failed, 2 trials' dl wait fails
touch better
try 0 '^fails: completed' dl retry --local fails-0001 1 2

# ---- labels, archive, exclude
try 0 'label best$' dl label slow-0001 best
try 0 'already has the label best' dl label slow-0001 best
try 2 'without commas and blanks' dl label slow-0001 a,b
try 2 'without commas and blanks' dl label slow-0001 ''
try 2 'must be 1 to 63 bytes of UTF-8' dl label slow-0001 "$(printf 'caf\351')"
is "$(dl label slow-0001 "$(printf 'a\nb')" 2>&1)" "dl: label: 'a;b' must be 1 to 63 bytes of UTF-8 without commas and blanks" "one line, whatever the label contains"
try 2 '^dl: usage' dl label slow-0001
dl label retry-0001 best paper >/dev/null
like "$(dl ls)" 'retry-0001 .* best,paper$' "ls: labels"
is "$(dl ls --label best | awk 'NR > 1 { print $1 }' | tr '\n' ' ')" "retry-0001 slow-0001 " "ls --label"
like "$(dl ls --label=betst 2>&1)" "^dl: no experiment with the label 'betst' in . \(--all lists archived ones; set the folder" "an unknown label is reported"
try 0 'label best removed' dl label --undo slow-0001 best
try 0 'does not have the label best' dl label --undo slow-0001 best
try 0 "archived; 'dl ls --all' shows it" dl archive slow
try 0 'is already archived' dl archive slow
is "$(dl ls | grep -c '^slow')" 0 "ls hides it"
like "$(dl ls --all)" '^slow-0001 .* yes$' "ls --all prints it"
like "$(dl show slow)" 'completed \(archived\)' "show prints it"
try 0 'shown again' dl archive --undo slow
is "$(dl ls | grep -c '^slow')" 1 "ls prints it again"
try 0 'no further attempt starts on node7' dl exclude slow node7
try 0 'node7 is already excluded: by hand' dl exclude slow node7
like "$(dl show slow)" '^machine node7 is excluded: by hand$' "show: excluded nodes, and why"
try 0 'may start on node7 again' dl exclude --undo slow node7
try 0 'node7 is not excluded' dl exclude --undo slow node7
try 2 'not a machine name' dl exclude slow 'a b'
try 2 'the machine is missing: dl exclude slow HOST' dl exclude slow

# ---- logs
conf lines 'name = "random"; max_trials = 1;' '"seq 1 3000; printf end; dl log loss=1"'
timeout 300 dl run --local lines.conf >out 2>&1
is "$(dl logs lines 1 | wc -l)" 3000 "logs"
is "$(dl logs --lines 3 lines 1 | tr '\n' ' ')" "2999 3000 end" "logs --lines"
is "$(dl logs -n 2500 lines 1 | head -1)" 502 "logs -n"
is "$(dl logs -n 0 lines 1)" "" "logs -n 0"
is "$(dl logs -n 9999 lines 1 | head -1)" 1 "more lines than exist"
try 3 'lines-0001: trial 1 has no attempt 9 yet' dl logs --attempt 9 lines 1
try 2 'the number of the trial is missing: dl logs lines TRIAL' dl logs lines
program twice.sh <<'END'
echo "attempt $DL_ATTEMPT"
while [ ! -f followed ]; do sleep 0.1; done
echo more
[ "$DL_ATTEMPT" -ge 2 ] || exit 1
dl log loss=1
END
conf twice 'name = "random"; max_trials = 1;' '"./twice.sh"'
sed -i 's/max_restarts = 0/max_restarts = 3/' twice.conf
timeout 300 dl run --local twice.conf >out 2>&1 &
pid=$!
wait_for 300 sh -c 'grep -q attempt twice-0001/trials/0001/a.1/log'
timeout 300 dl logs -f twice 1 >followed.out &
follower=$!
wait_for 300 grep -q 'attempt 1' followed.out
touch followed
wait $follower
is "$(tr '\n' ' ' <followed.out)" "attempt 1 more ==> trial 1, attempt 2 <== attempt 2 more " "logs -f continues with the next attempt, and ends with the trial"
wait $pid
is "$(timeout 300 dl logs --follow --attempt 1 twice 1 | tr '\n' ' ')" "attempt 1 more " "logs -f of one attempt"

# ---- --set and fork
try 0 '^same: searcher sobol, metric loss .* 3 workers' dl preview --set 'name="same"' --set 'searcher.name="sobol"' --set resources.workers=3 slow.conf
out=$(dl run --dry-run --set searcher.max_trails=3 --set 'searcher.metric=7' --set name=x --set nokey slow.conf 2>&1)
is $? 2 "--set of an invalid value"
is "$(echo "$out" | cut -c1-55)" "--set name=x: the text after = is not a value (a string
--set nokey: must be KEY=VALUE
--set searcher.max_trails=3: unknown key 'searcher.max_
--set searcher.metric=7: 'searcher.metric' is an intege" "names the options"
try 2 'not a value' dl run --dry-run --set 'max_restarts=1; name="x"' slow.conf
try 2 'exp.conf:2: ' sh -c 'printf "name = \"e\";\nsercher = 1;\n" >exp.conf; dl run --dry-run --set max_restarts=1 exp.conf'
mkdir elsewhere
(cd elsewhere && DL_DIR=$work timeout 300 dl fork --local --set searcher.max_trials=1 lines-0001 >"$work/out" 2>&1)
is $? 0 "a fork, made from another folder"
like "$(dl show lines | head -1)" "^$work/lines-0001: " "the name alone is still the old one"
like "$(cat lines-fork-0001/experiment.conf)" 'k = 0.30000000000000004;' "its file keeps all digits"
like "$(cat lines-fork-0001/log/000000/00000001)" "\"dir\":\"$work\"" "it runs where the first one did"
like "$(dl show lines-fork-0001)" "^forked from $work/lines-0001$" "show: its origin"
holds "an unchanged file is kept" cmp -s lines-0001/experiment.conf lines.conf
try 0 '^lines: completed' dl fork --local lines-0001
holds "in a fork, too" cmp -s lines-fork-0002/experiment.conf lines.conf
try 2 "'dl run FILE'" dl fork --file lines.conf lines-0001
try 3 "no trial '4'" dl fork lines-0001 4
try 0 'trial 1 has left neither a checkpoint nor files: the fork starts from scratch' dl fork --local lines-0001 1
like "$(dl show lines-fork-0003)" "^forked from $work/lines-0001, the configuration of trial 1$" "show: which one"
cat >script.sh <<'END'
# script.sh LENGTH LR FOLDER [LAST]
s=0
[ -z "${4:-}" ] || s=$(cat "$4/last")
echo "seed $DL_SEED goes on from $s with $(ls "${4:-/none}" 2>/dev/null | tr '\n' ' ')"
mkdir -p "$3/deep"
while [ "$s" -lt "$1" ]; do
    s=$((s + 1))
    echo "epoch $s: loss $2"
    echo $s >"$3/last"
    echo $s >"$3/deep/more"
done
END
conf script 'name = "random"; max_trials = 2; max_length = 3;' '"sh script.sh {length} {lr} {attempt_dir} [{resume_dir}]"' \
    'metrics = { pattern = "epoch {step}: loss {loss}"; };'
runs 0 "a script with its own files" dl run --local script.conf
try 0 'trial 2 was trained to length 3, and the fork trains to 3: it starts from scratch; with --set searcher.max_length=L' dl fork --local script-0001 2
try 0 'script: completed' dl fork --local --set searcher.max_length=5 script-0001 2
like "$(cat script-fork-0002/trials/0001/a.1/log)" '^seed [0-9]* goes on from 3 with deep last $' "a fork continues from the files of the trial"
is "$(cat script-fork-0002/source/a.1/deep/more) $(dl show --values script-fork-0002 1 | awk '$1 == "loss" { print $2 }' | xargs)" "3 4 5" "of which it has copies"
echo spoilt >script-0001/trials/0002/a.1/last
is "$(cat script-fork-0002/source/a.1/last)" 3 "that are its own"
cp script-fork-0002/source/a.1/last script-0001/trials/0002/a.1/last
try 0 'reproduced' dl reproduce script-fork-0002 1
try 0 'script: completed' dl fork --local --seeds 3 script-0001 2
is "$(cat script-fork-0003/trials/*/a.1/log | grep -c 'goes on from 0 ') $(cat script-fork-0003/trials/*/a.1/log | grep '^seed' | sort -u | wc -l)" "3 3" "a configuration with three seeds, from the beginning"
is "$(python3 -c '
import glob, json
print(len({open(p).read() for p in glob.glob("script-fork-0003/trials/*/a.1/hparams.json") + ["script-0001/trials/0002/a.1/hparams.json"]}))')" 1 "at the same point"
like "$(dl show script-fork-0003)" 'mean of 3' "whose mean counts"
try 0 'script: completed' dl fork --local --seeds 2 script-0001
try 2 "^dl: fork: --seeds is for the trial's own configuration" dl fork --seeds 2 --file script.conf script-0001 1
dl report --output=page.html script-0001 >/dev/null
grep -o '<code>dl fork [^<]*' page.html | sed 's/<code>dl fork //' >forks
is "$(wc -l <forks)" 2 "the report offers two forks"
while read -r words; do
    # shellcheck disable=SC2086
    try 0 'script: completed' dl fork --local $words
done <forks

cat >folder.sh <<'END'
# folder.sh LENGTH LR FOLDER [LAST]
s=0
[ -z "${4:-}" ] || s=$(cat "$4")
echo "goes on from $s, attempt $DL_ATTEMPT"
[ "$DL_EXPERIMENT_DIR" != "$FAIL" ] || [ "$DL_ATTEMPT" != 1 ] || exit 75
while [ "$s" -lt "$1" ]; do
    s=$((s + 1))
    echo "epoch $s: loss $2"
    mkdir -p "$3/deep"
    echo $s >"$3/last"
    echo $s >"$3/deep/more"
done
echo $s >"$DL_ATTEMPT_DIR/beside"
END
conf folder 'name = "random"; max_trials = 2; max_length = 3;' '"sh folder.sh {length} {lr} {trial_dir} [{trial_dir}/last]"' \
    'metrics = { pattern = "epoch {step}: loss {loss}"; };'
runs 0 "a script whose files are in {trial_dir}" dl run --local folder.conf
export FAIL="$work/folder-fork-0001"
try 0 'folder: completed' dl fork --local --set searcher.max_length=5 folder-0001 2
unset FAIL
is "$(head -qn1 folder-fork-0001/trials/0001/a.?/log | xargs)" "goes on from 3, attempt 1 goes on from 3, attempt 2" "a fork of it continues, too"
is "$(cat folder-fork-0001/source/deep/more folder-fork-0001/trials/0001/deep/more folder-0001/trials/0002/deep/more | xargs) $(dl show --values folder-fork-0001 1 | awk '$1 == "loss" { print $2 }' | xargs)" "3 5 3 4 5" "with its own copies"
try 0 'reproduced' dl reproduce folder-fork-0001 1
try 0 'trial 2 was trained to length 3, and the fork trains to 3' dl fork --local folder-0001 2
is "$(head -qn1 folder-fork-0002/trials/0001/a.1/log)" "goes on from 0, attempt 1" "a fork to the same length starts over, and says so"

cp "$srcdir"/contrib/examples/digits/digits.csv.gz .
ln -s "$builddir/contrib/examples/digits/digits" digits
sed 's/"asha"/"random"/; s/max_trials = 64/max_trials = 2/; s/max_length = 27/max_length = 3/; /divisor\|max_rungs/d
     s/workers = 4/workers = 2/' "$srcdir/contrib/examples/digits/asha.conf" >digits.conf
runs 0 "a sweep with checkpoints" dl run --local digits.conf
try 2 'is of length 3, and trials would be trained to length 3 first' dl fork --local digits-0001 2
try 0 'digits: completed' dl fork --local --set searcher.max_length=5 digits-0001 2
like "$(cat digits-fork-0001/trials/0001/a.1/log)" '^restored epoch 3' "its trial begins with the checkpoint"
is "$(dl show --json digits-fork-0001 | grep -c '"trial"')" 1 "it is one trial"
python3 - <<'END'
import json
old, new = (json.load(open(f"digits-{n}/trials/000{t}/a.1/hparams.json")) for n, t in (("0001", 2), ("fork-0001", 1)))
assert old == new, (old, new)
END
ok $? "at the same point"
like "$(dl show digits-fork-0001)" "^forked from $work/digits-0001, trial 2 at length 3$" "show: which trial"
sed 's/max_length = 3/max_length = 6/; s/minval = 8; maxval = 192/minval = 5; maxval = 5/' digits.conf >tune.conf
hidden=$(python3 -c 'import json; print(json.load(open("digits-0001/trials/0001/a.1/hparams.json"))["hidden"])')
sed -i "s/minval = 5; maxval = 5/minval = $hidden; maxval = $hidden/" tune.conf
try 0 'digits: completed' dl fork --local --file tune.conf digits-0001 1
is "$(cat digits-fork-0002/trials/*/a.1/log | grep -c '^restored epoch 3')" 2 "with --file each trial begins with it"
timeout 300 dl rm digits-0001 >/dev/null
holds "which is kept when its experiment is removed" [ -f digits-fork-0002/source/a.1/ckpt/00000003.h5 ]

# ---- rm
mkdir precious
echo data >precious/file
ln -s "$work/precious" stop-0001/trials/link
ln -s "$work/precious/file" stop-0001/file
mkdir -p stop-0001/deep/er/and/.hidden
try 3 "'slow.conf' is a file: " dl show slow.conf
mkdir steps-0001
: >steps-0001/flow.conf
try 3 "'steps' is a flow, not an experiment: 'dl flow show steps'" dl show steps
rm -r steps-0001
mkdir elastic.7
: >elastic.7/target
try 3 "'elastic.7' is a run of dl elastic, not an experiment: .*'dl scale N elastic.7'" dl stop elastic.7
rm -r elastic.7
try 3 'its full name is needed: the newest is ./stop-0001' dl rm stop
try 3 'is not an experiment' dl rm precious
ln -s stop-0001 linked-0001
try 2 'is a link' dl rm linked-0001
try 3 'stop-0001: removed' dl rm nope-0001 stop-0001/
[ ! -e stop-0001 ] && [ -f precious/file ]
ok $? "links in it were not followed"
is "$(find . -maxdepth 1 -name '.?*')" "" "nothing hidden is left"
mkdir half-0001
: >half-0001/experiment.conf
try 5 '.*force removes it' dl rm half-0001
try 0 removed dl rm --force half-0001
conf busy 'name = "random"; max_trials = 4;' '"./slow.sh"'
begin busy
kill -STOP "$(pgrep -f "worker --slot local-.*-1 -- $work/busy-0001$" | head -1)"
dl stop busy >/dev/null
wait_for 300 sh -c 'dl rm busy-0001 2>&1 | grep -q "1 worker is"'
try 9 "1 worker is running on it" dl rm busy-0001
try 0 'busy-0001: removed' dl rm --force busy-0001
pkill -CONT -f "worker --slot local-.*-1 -- $work/busy-0001$"
wait $pid
holds "a worker that wakes up recreates nothing of it" [ ! -e busy-0001 ]

# ---- shell completion of names
like "$(dl --complete show)" '^slow-0001$' "completion of names"
is "$(dl --complete run | grep -c slow-0001)" 0 "where one is expected"
is "$(cd / && dl --complete show --dir "$work" | grep -c '^slow-0001$')" 1 "under --dir"
done_testing
