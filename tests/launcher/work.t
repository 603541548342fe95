#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Working directories: who gets the files that a script writes to relative paths.
. "$srcdir/tests/lib.sh"
unset DL_DIR DL_FREEZE
HOME=$work/home
export HOME
mkdir -p home up/proj
cd up/proj || exit 1
proj=$(pwd -P)

# A training script that saves to a fixed name and loads it at the end, like word_language_model of PyTorch's examples.
cat >train.py <<'PY'
import json, os, sys, time
import util
lr, epochs, save = float(sys.argv[1]), 3, "model.pt"
os.makedirs("results", exist_ok=True)
best = None
for epoch in range(1, epochs + 1):
    time.sleep(0.05)
    val = util.loss(lr, epoch)
    if best is None or val < best:
        best = val
        with open(save, "w") as f:
            json.dump({"lr": lr, "val": val}, f)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "results", "sample.png"), "w") as f:
    f.write(str(lr))
time.sleep(0.1)
with open(save) as f:
    model = json.load(f)
assert open("results/sample.png").read() == str(lr), "a sample of another trial"
print("the model of lr", model["lr"], "mine is", lr)
print("loss = %r" % model["val"])
PY
echo 'def loss(lr, epoch): return abs(lr - 0.5) + 0.1 / epoch' >util.py
conf () { # conf NAME ENTRYPOINT [MORE]
    write_conf "$1" "\"$2\"" 'name = "random"; max_trials = 8;' 'metrics = { pattern = "loss = {loss}"; };' 'resources = { workers = 4; };' "$3" \
        'hyperparameters = { lr = { type = "float"; minval = 0; maxval = 1; }; };'
}
values () { # values NAME: print the results of an experiment, by trial
    dl show --json "$1" | json '*(t["metric"] for t in d["trials"])'
}
python=$(command -v python3)

# ---- each attempt has its own folder
conf own "$python train.py {lr}"
timeout 300 dl run --local own.conf >"$work/out" 2>&1
is $? 0 "four concurrent trials save under the same name"
timeout 300 dl run --local --set resources.workers=1 own.conf >"$work/out" 2>&1
is "$(values own-0001)" "$(values own-0002)" "and give the same results as alone"
is "$(ls)" "own-0001
own-0002
own.conf
train.py
util.py" "nothing is left in the user's folder"
is "$(cd own-0001/trials/0003/a.1/work && find . -type f | sort | xargs)" "./model.pt ./results/sample.png" "what a script wrote is in its attempt's folder, without the code"
is "$(ls -A own-0001/code/*/up)" "proj" "no working folder is left"
timeout 300 dl run --local --set 'entrypoint="echo loss = {lr} # train.py"' own.conf >"$work/out" 2>&1
is "$(ls -A own-0003/code/*/up) $(ls -d own-0003/trials/*/a.1/work 2>/dev/null)" "proj " "nor of trials that write nothing"
timeout 300 dl run --local --set "entrypoint=\"$python $proj/train.py {lr}\"" own.conf >"$work/out" 2>&1
is "$(values own-0004)" "$(values own-0002)" "a script of the folder by its whole path"
rm -r own-000?

# ---- dl try lists where files would go; dl reproduce runs in its own folder
like "$(dl try own.conf lr=0.25 2>&1)" '^written: +model.pt \([0-9]+ bytes\), results/sample.png \(4 bytes\): in a sweep each attempt has its own, in trials/NNNN/a.K/work; a later attempt finds them through \{resume_dir\}$' "dl try lists the files that a script wrote"
like "$(dl try --set 'working_folder="shared"' own.conf 2>&1)" '^written: .*: in a sweep all trials write them into one folder$' "and says so where all trials share them"
is "$(ls)" "own.conf
train.py
util.py" "it leaves nothing behind, either"
timeout 300 dl run --local --set searcher.max_trials=2 own.conf >"$work/out" 2>&1
like "$(dl reproduce own-0001 2)" '^reproduced: ' "dl reproduce"
rm -r own-0001

# ---- files that checkpoint_policy.files matches; code that is not frozen
like "$(dl try --set 'checkpoint_policy={files="*.pt";}' own.conf 2>&1)" '^policy: +checkpoint_policy.files names 1 of these files, [0-9]+ bytes$' "and what its policy counts"
like "$(dl try --set code.freeze=false own.conf 2>&1)" '^written: .*model.pt \([0-9]+ bytes\).*: in a sweep all trials write them into one folder$' "and if no code is frozen"
rm -rf model.pt results __pycache__
timeout 300 dl run --local --set searcher.max_trials=3 --set 'checkpoint_policy={files="model.pt";}' own.conf >"$work/out" 2>&1
like "$(dl preview own-0001)" '^checkpoint_policy.files: at most 3 files.* at most 3 stay at the end: [0-9.e-]+ MB, because the files saved so far have [0-9.e-]+ MB each$' "dl preview of an experiment knows their bytes"
rm -r own-0001

# ---- metrics.file of a script that logs to its own file
echo 'echo "epoch 1: loss = 9" >log.txt; sleep 0.2; echo "epoch 2: loss = $1" >>log.txt' >log.sh
conf log 'sh log.sh {lr}'
sed -i 's/"loss = /"epoch {step}: loss = /; s/metrics = {/& file = "log.txt";/' log.conf
timeout 300 dl run --local log.conf >"$work/out" 2>&1
is "$? $(values log-0001 | tr ' ' '\n' | grep -c '^0\.')" "0 8" "metrics.file in the working folder"
like "$(dl try log.conf 2>&1)" '^pattern: +matched 2 of 2 lines$' "also of dl try"
rm -r log-0001 log.sh

# ---- one shared folder: dl reports files that two trials write
shared () { # shared NAME: print how dl run, show and watch report it
    { cat "$work/out"; dl show "$1"; dl watch "$1"; } 2>/dev/null | grep '^shared:' | sort | uniq -c | sed 's/^ *//'
}
echo 'echo "$1" >"$2"; sleep 0.1; echo "loss = $1"' >save.sh
conf save 'sh save.sh {lr} model.pt' 'working_folder = "shared";'
timeout 300 dl run --local --set resources.workers=1 save.conf >"$work/out" 2>&1
like "$(shared save-0001)" '^3 shared: trials 1 and 2 wrote the same file, model.pt, in the folder that all trials share: they overwrite each other.s file; without working_folder = "shared" each attempt has a folder of its own$' "two trials that write the same file"
timeout 300 dl run --local --set searcher.max_trials=4 save.conf >"$work/out" 2>&1
like "$(shared save-0002)" '^3 shared: trials [1-4] and [1-4] wrote the same file, model.pt,' "also at the same time"
printf '1e999 nan\n1 1 model.pt\n5 x y\n' >save-0002/trials/0001/a.1/.written
printf '1 9\n5 1 \033[31mmodel.pt\n' >save-0002/trials/0002/a.1/.written
head -c 100000 /dev/zero >save-0002/trials/0003/a.1/.written
mkfifo pipe && mv pipe save-0002/trials/0004/a.1/.written
is "$(timeout 60 dl show save-0002 >"$work/out2" 2>&1; echo "$? $(grep -c "$(printf '\033')\|shared:" "$work/out2")")" "0 0" "files that someone else wrote there are ignored"
timeout 300 dl run --local --set 'working_folder="attempt"' --set code.freeze=false --set resources.workers=1 --set 'entrypoint="sh save.sh {lr} result.txt; sh save.sh {lr} result.txt >b"' save.conf >"$work/out" 2>&1
like "$(shared save-0003)" '^3 shared: trials 1 and 2 wrote the same file, b, .* \(and 1 other\): .*; write into \{attempt_dir\}, or freeze the code' "and if the code is not frozen"
like "$(cat "$work/out")" "^dl: the code is not frozen \(code.freeze\): all trials run in $proj, and overwrite each other's files of the same name$" "dl run says so"
rm result.txt b
for workers in 1 4; do
    for name in 'model_{trial}.pt' '{opt}.pt' '{opt}/model.pt'; do
        conf names "mkdir -p a b; sh save.sh {lr} $name; sh save.sh {lr} $name" 'working_folder = "shared";'
        sed -i 's/lr = .*/lr = 0.5; opt = { type = "categorical"; vals = ["a", "b"]; }; };/; s/"random"/"grid"/; s/ max_trials = 8;//' names.conf
        timeout 300 dl run --local --set resources.workers=$workers names.conf >"$work/out" 2>&1
        is "$? $(shared names-0001)" "0 " "no warning: $workers at a time, $name"
        rm -r names-0001
    done
done
conf cache '[ -f cache.bin ] || sh save.sh 1 cache.bin; sh save.sh {lr} /dev/null' 'working_folder = "shared";'
timeout 300 dl run --local cache.conf >"$work/out" 2>&1
is "$? $(shared cache-0001)" "0 " "nor for what the first of them prepares"
rm -r save-000? cache-0001
like "$(DL_FREEZE=false dl run --dry-run --set 'entrypoint="sh save.sh {lr} out.txt"' own.conf 2>&1)" "^dl: the code is not frozen \(the variable DL_FREEZE\): all trials run in $proj, and overwrite" "a user's variable that disables freezing is reported"
is "$(DL_FREEZE=false dl run --dry-run --set 'working_folder="shared"' own.conf 2>&1 | grep -c '^dl: the code is not frozen')" 0 "but not if the file lets trials share a folder"

# ---- an attempt's folder has links to what all trials share: data folders, what .dlignore names, large files
mkdir mydata
echo mydata >.dlignore
head -c 2000000 /dev/zero >large.txt
echo 'echo "$1" >"$2"; sleep 0.1; echo "loss = $1"' >save.sh
conf linked 'sh save.sh {lr} mydata/model.pt; sh save.sh {lr} own.pt; echo {lr} | dd of=large.txt conv=notrunc 2>&1'
timeout 300 dl run --local --set resources.workers=1 linked.conf >"$work/out" 2>&1
like "$(shared linked-0001)" '^3 shared: trials 1 and 2 wrote the same file, large.txt, in the folder that all trials share \(and 1 other\): they overwrite each other.s file; dl links it instead of copying it for each attempt \(.dlignore, its size, or "data" in its name\): write into \{attempt_dir\}$' "two trials that write into a folder that is linked"
like "$(dl try linked.conf 2>&1)" '^written: .*mydata/model.pt \([0-9]+ bytes\).*: in a sweep all trials write them into one folder' "dl try says so only for these files"
like "$(dl try linked.conf 2>&1)" '^written: +own.pt \([0-9]+ bytes\): in a sweep each attempt has its own' "and not for the others"
conf linked 'cat mydata/model.pt; : >mydata/lock; echo own >own.pt; ln -s own.pt latest.pt; ln -s $PWD/own.pt best.pt; sh save.sh {lr} mydata/trial_{trial}.pt'
timeout 300 dl run --local linked.conf >"$work/out" 2>&1
is "$? $(shared linked-0002)" "0 " "no warning: files that are read, a lock, the script's own links, one file per trial"
rm -r linked-000? linked.conf mydata large.txt .dlignore save.sh

# ---- files from runs by hand are not trial outputs; an attempt changes only its own copy
mkdir -p checkpoints mydata
if git --version >/dev/null 2>&1; then
    git init -q .
    printf 'checkpoints/\nresults.csv\nmydata/\nempty/\n' >.gitignore
fi
mkdir empty
echo by hand >results.csv
head -c 2000000 /dev/zero >checkpoints/best.pt
head -c 2000000 /dev/zero >mydata/large
echo original >config.json
cat >hand.sh <<'SH'
[ "$(cat config.json)" = original ] || exit 9
echo "$1" >config.json
echo "$1" >>results.csv
[ "$(wc -c <mydata/large)" = 2000000 ] && [ -L mydata/large ] || [ -L mydata ] || exit 8
echo "$1" >checkpoints/best.pt
echo "$1" >checkpoints/new.pt
echo "$1" >empty/file
chmod 600 config.json util.py
sleep 0.3
[ "$(cat config.json checkpoints/best.pt checkpoints/new.pt empty/file | sort -u)" = "$1" ] && [ "$(wc -l <results.csv)" = 2 ] || exit 7
echo "loss = $1"
SH
conf hand 'sh hand.sh {lr}'
timeout 300 dl run --local hand.conf >"$work/out" 2>&1
is $? 0 "files of a run by hand, in folders that git ignores, too"
# shellcheck disable=SC2011
is "$(cat results.csv config.json | xargs) $(wc -c <checkpoints/best.pt) $(ls checkpoints empty | xargs)" "by hand original 2000000 checkpoints: best.pt empty:" "stay as they were"
is "$(cat hand-0001/code/*/up/proj/config.json)" "original" "and so does the frozen code"
rm -r hand-0001 .git .gitignore checkpoints mydata empty results.csv config.json 2>/dev/null

# ---- scripts from public bug reports: ray#9571 loads data and modules by relative paths, lightning#11418 takes the first
# free number; also folders without write permission, FIFOs and sockets, and a script that deletes its working folder
mkdir -p tree/sub tree/data tree/pkg beside
echo 1 >tree/data/a.csv
echo 2 >beside/b.csv
: >tree/pkg/__init__.py
echo 'def f(): return 3' >tree/pkg/m.py
cat >tree/sub/reads.py <<'PY'
import os, sys
sys.path.append("..")
from pkg.m import f
here = os.path.dirname(os.path.abspath(__file__))
read = lambda *path: float(open(os.path.join(*path)).read())
print("loss = %r" % (read("..", "data", "a.csv") + read("..", "..", "beside", "b.csv") + read(here, "..", "data", "a.csv") + f()))
PY
cat >tree/sub/first.py <<'PY'
import os, time
n = 0
while os.path.exists("logs/version_%d" % n):
    n += 1
time.sleep(0.2)
os.makedirs("logs/version_%d" % n)
print("loss = %d" % n)
PY
cat >tree/sub/odd.py <<'PY'
import os, socket
os.makedirs("closed/sub")
open("closed/f", "w").write("x")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
open("a", "w").write("x")
os.link("a", "b")
os.chmod("a", 0)
os.symlink("/nonexistent", "nowhere")
os.chmod("closed", 0o555)
print("loss = 5")
PY
echo 'import os, shutil; shutil.rmtree(os.getcwd()); print("loss = 6")' >tree/sub/removes.py
(
    cd tree/sub || exit 1
    for script in reads first odd removes; do
        conf $script "$python $script.py {lr}" 'code = { path = ".."; };'
        timeout 300 dl run --local --set searcher.max_trials=4 $script.conf >"$work/out" 2>&1
        echo "$? $(values $script-0001)"
    done
    timeout 60 dl gc odd-0001 >"$work/out" 2>&1 && timeout 60 dl rm odd-0001 >"$work/out" 2>&1
    # shellcheck disable=SC2010,SC2012
    echo "$? $(ls | grep -v '[.]conf$' | xargs)"
) >got 2>&1
is "$(cat got)" "0 7.0 7.0 7.0 7.0
0 0.0 0.0 0.0 0.0
0 5.0 5.0 5.0 5.0
0 6.0 6.0 6.0 6.0
0 first-0001 first.py odd.py reads-0001 reads.py removes-0001 removes.py" "data beside, numbers that are free, files without rights, a folder that is removed"
rm -r tree beside got

# ---- a later attempt finds the files of an earlier one, through {resume_dir} or in its own folder
cat >epochs.sh <<'SH'
epoch=0
[ -z "$2" ] || epoch=$(cat "$2") || exit 3
[ "$1" != own ] || [ ! -f last.pt ] || epoch=$(cat last.pt)
echo "from $epoch"
while [ "$epoch" -lt 60 ]; do
    epoch=$((epoch + 1))
    echo "$epoch" >last.tmp && mv last.tmp last.pt
    echo "epoch $epoch: loss = 0.$epoch"
    [ ! -f "$PACE" ] || sleep 0.1
done
SH
mkdir sub
cp epochs.sh sub
for kind in attempt trial; do
    [ $kind = trial ] && command='sh epochs.sh own' || command='sh epochs.sh attempt [{resume_dir}/last.pt]'
    conf $kind "$command" "working_folder = \"$kind\"; code = { path = \"..\"; }; environment = { PACE = \"$work/pace\"; };"
    sed -i 's/"loss = /"epoch {step}: loss = /; s/max_trials = 8/max_trials = 1/; s/workers = 4/workers = 1/' $kind.conf
    cp $kind.conf sub
    (
        cd sub || exit 1
        touch "$work/pace"
        timeout 300 dl run --local $kind.conf >"$work/out" 2>&1 &
        wait_for 100 grep -q 'epoch 3' $kind-0001/trials/0001/a.1/log
        wait_for 100 test -L $kind-0001/trials/0001/a.1/work
        ls $kind-0001/trials/0001/a.1/work/sub >shown
        dl pause $kind-0001 >"$work/out2" 2>&1
        wait $!
        rm "$work/pace"
        timeout 300 dl resume --local $kind-0001 >"$work/out" 2>&1
        # shellcheck disable=SC2011
        echo "$? $(grep -h ^from $kind-0001/trials/0001/a.2/log) $(ls $kind-0001/trials/0001/a.1/work/sub $kind-0001/trials/0001/a.2/work/sub | xargs) $(xargs <shown)"
    ) >got
    like "$(cat got)" "^0 from ([3-9]|[1-5][0-9]) $kind-0001/trials/0001/a.1/work/sub: last.pt $kind-0001/trials/0001/a.2/work/sub: last.pt .*last.pt" "working_folder = $kind: an attempt continues"
done
rm -r sub/trial-0001 sub/attempt-0001

# ---- dl gc removes superseded files, and the trial can still resume
conf keep 'sh epochs.sh attempt [{resume_dir}/last.pt]' "checkpoint_policy = { files = \"last.pt\"; save_trial_best = 0; }; environment = { PACE = \"$work/pace\"; };"
sed -i 's/"loss = /"epoch {step}: loss = /; s/max_trials = 8/max_trials = 1/; s/workers = 4/workers = 1/' keep.conf
touch "$work/pace"
attempts () { # attempts FILE: print the attempts that have it
    # shellcheck disable=SC2012
    (cd keep-0001/trials/0001 && ls a.?/*/"$1") 2>/dev/null | sed 's|^a\.\(.\)/.*|\1|' | xargs
}
sed -i 's/^epoch=0$/&; date >notes/' epochs.sh
go_on () { # go_on ATTEMPT COMMAND...: run until the attempt logs a metric, then pause
    attempt=$1
    shift
    timeout 300 dl "$@" >"$work/out" 2>&1 &
    wait_for 200 grep -q '^epoch .*loss' keep-0001/trials/0001/a."$attempt"/log
    dl pause keep-0001 >"$work/out2" 2>&1
    wait $!
}
go_on 1 run --local keep.conf
go_on 2 resume --local keep-0001
go_on 3 resume --local keep-0001
is "$(attempts last.pt)" "1 2 3" "three attempts left a file"
cp keep-0001/experiment.conf kept.conf
sed 's/files = "last.pt"; *//' kept.conf >keep-0001/experiment.conf
like "$(dl gc keep-0001 | tr '\n' ' ')" 'deleted 0 files.* 2 files that trials saved, [0-9]+ bytes, are superseded .*checkpoint_policy.files.*keep-0001/experiment.conf' "dl gc without the key says what it would save"
cp kept.conf keep-0001/experiment.conf
like "$(dl gc keep-0001)" '^deleted 1 files' "dl gc with the key"
is "$(attempts last.pt), $(attempts notes)" "2 3, 1 2 3" "the two newest stay, and files of other names"
rm "$work/pace"
timeout 300 dl resume --local keep-0001 >"$work/out" 2>&1
like "$? $(grep -h ^from keep-0001/trials/0001/a.4/log)" '^0 from ([3-9]|[1-5][0-9])$' "the paused trial continues after that"
is "$(attempts last.pt), $(attempts notes)" "4, 1 2 3 4" "at the end those of the policy are kept"
rm -r keep-0001

# A trainer can outlive its killed worker.  What it writes then must not reach the next attempt's files.
cat >zombie.sh <<'SH'
if [ "$DL_ATTEMPT" = 1 ]; then
    setsid sh -c 'echo first >last.pt; echo "epoch 1: loss = 1" >&2; until [ -f "$PACE" ]; do sleep 0.1; done; echo zombie >last.pt; touch "$PACE.done"' &
    until [ -f last.pt ]; do sleep 0.1; done
    echo "epoch 1: loss = 1"
    sleep 1000
fi
touch "$PACE"
until [ -f "$PACE.done" ]; do sleep 0.1; done
cat last.pt
echo "epoch 2: loss = 2"
SH
conf zombie "sh zombie.sh" "working_folder = \"trial\"; environment = { PACE = \"$work/pace\"; };"
sed -i 's/"loss = /"epoch {step}: loss = /; s/max_trials = 8/max_trials = 1/; s/workers = 4/workers = 1/' zombie.conf
timeout 300 dl run --local zombie.conf >"$work/out" 2>&1 &
run=$!
wait_for 100 grep -q 'epoch 1' zombie-0001/trials/0001/a.1/log
kill -KILL "$(pgrep -f "dl worker.*$proj/zombie-0001" | head -1)"
wait $run
[ "$(count zombie-0001 result)" = 1 ] || timeout 300 dl resume --local zombie-0001 >"$work/out" 2>&1
is "$(grep -v '^epoch' zombie-0001/trials/0001/a.2/log)" first "an attempt that was given up does not write to the next one's files"

# ---- paths of more than 3000 bytes
long=$(printf '%0200d' 0)
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do mkdir $long && cd $long || exit; done
echo 'echo "$1" >model.pt; echo "loss = $1"' >deep.sh
conf deep 'sh deep.sh {lr}'
timeout 300 dl try deep.conf >"$work/out" 2>&1
like "$? $(cat "$work/out")" '^written: +model.pt' "dl try in a deep folder"
timeout 300 dl run --local deep.conf >"$work/out" 2>&1
is "$? $(wc -l <deep-0001/trials/0008/a.1/work/model.pt)" "0 1" "and dl run"
while [ ${#PWD} -lt 3600 ]; do mkdir $long && cd $long || exit; done
echo 'echo "loss = $1"' >deep.sh
conf deep 'sh deep.sh {lr}'
timeout 300 dl run --local deep.conf >"$work/out" 2>&1
like "$? $(cat "$work/out")" '^[1-9].*: .*(too long|longer than 4096 bytes)' "without room for a working folder it says so"
cd "$proj" && rm -r $long
cat >deeper.py <<'PY'
import os, subprocess
for i in range(25):
    os.mkdir("0" * 200)
    os.chdir("0" * 200)
for name, text in ("run", 'name = "x"; entrypoint = "sh deep.sh {lr}";'), ("flow", 'name = "x"; steps = { a = { entrypoint = "sh deep.sh"; }; };'):
    open(name + ".conf", "w").write(text)
for command in ["try", "run.conf"], ["run", "--local", "run.conf"], ["flow", "run", "--local", "flow.conf"]:
    subprocess.run(["dl"] + command)
PY
for name in run.conf run.conf 'dl: flow.conf'; do echo "$name: cannot determine the path of its folder: File name too long"; done >deeper
python3 deeper.py >"$work/out" 2>&1
is "$(grep folder "$work/out")" "$(cat deeper)" "a path of more than 4096 bytes"
rm -r $long deeper deeper.py
mkdir "$work/tmp"
(
    cd "$work/tmp" && chmod 700 .
    while [ ${#PWD} -lt 3890 ]; do mkdir $long && cd $long || exit; done
    pwd >"$work/longest"
)
like "$(TMPDIR=$(cat "$work/longest") dl try own.conf 2>&1)" "^dl: $work/tmp/.*0: cannot create a folder there: its path is too long$" "TMPDIR whose path is too long"

# ---- mistakes
conf wrong 'sh hand.sh {lr}' 'working_folder = "own";'
dl run --local wrong.conf >"$work/out" 2>&1
is "$? $(cat "$work/out")" "2 wrong.conf:6: 'working_folder' is \"own\", but must be attempt, trial or shared" "another word"

done_testing
