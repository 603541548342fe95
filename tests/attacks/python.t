#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Another member of the group replaces the folders in which trial scripts and ranks of dl elastic work.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy
preload_sanitizers && skip_all "sanitizers"
. "$srcdir/tests/attacks/users.sh"
group=$work/group
shared_folder "$group"
secret=$victim_home/secret
victim sh -c 'umask 077; mkdir -p "$HOME/secret/ckpt" && cd "$HOME/secret" && echo precious >key && for n in 1 2; do echo mine >ckpt/0000000$n.h5; done'
untouched () { # untouched NAME: check that the secret files have not changed
    is "$(cd "$secret" && find . -type f | sort | xargs) $(cat "$secret/key" "$secret"/ckpt/*)" "./ckpt/00000001.h5 ./ckpt/00000002.h5 ./key precious
mine
mine" "$1"
}

# Run a script of the victim's as an experiment in the group's folder.  The script creates the file ready, and continues when
# the file go exists.
begin () { # begin NAME <SCRIPT
    {
        echo 'import os, sys, time'
        echo 'group = "'"$group"'"'
        echo 'def wait():'
        echo '    open(group + "/ready", "w").close()'
        echo '    while not os.path.exists(group + "/go"):'
        echo '        time.sleep(0.1)'
        cat
    } >"$1.py"
    cat >"$1.conf" <<END
name = "$1"; entrypoint = "$python $work/$1.py"; code = { freeze = false; };
searcher = { name = "random"; metric = "loss"; max_trials = 1; };
hyperparameters = { x = 1.5; }; max_restarts = 0; worker = { heartbeat = 1; };
END
    chmod 644 "$1.py" "$1.conf"
    rm -f "$group/ready" "$group/go"
    victim timeout 300 dl run --local --dir "$group" "$1.conf" >"$1.out" 2>&1 &
    running=$!
    e=$group/$1-0001
    wait_for 200 test -e "$group/ready"
}

go_on () {
    touch "$group/go"
    wait $running
}

# ---- slurmdl.det: the temporary folder of a checkpoint's files
begin stage <<'END'
from slurmdl.det.core import init
with init() as context:
    with context.checkpoint.store_path({"steps_completed": 1}) as (path, storage_id):
        (path / "model.txt").write_text("model")
        wait()
    for op in context.searcher.operations():
        op.report_completed(0.5)
END
attacker sh -c "cd '$e/trials/0001/a.1' && for stage in det.tmp.*; do mv \$stage away && ln -s '$secret' \$stage; done" 2>/dev/null
go_on
h5=$e/trials/0001/a.1/ckpt/00000001.h5
is "$(grep -q model.txt "$h5"; echo $?) $(grep -q precious "$h5"; echo $?)" "0 1" "det: a checkpoint has the script's files, and none from elsewhere"
untouched "det: nothing is written elsewhere"
is "$(find "$victim_home/.local/state/slurm-dl/det" -mindepth 1)" "" "det: the folder is removed"
is "$(stat -c %a "$victim_home/.local/state/slurm-dl/det")" 700 "det: which was private"

# ---- removing a checkpoint
begin delete <<'END'
from slurmdl.det.core import init
with init() as context:
    with context.checkpoint.store_path({"steps_completed": 1}) as (path, storage_id):
        pass
    wait()
    try:
        context.checkpoint.delete(storage_id)
    except Exception as error:
        print("told:", error)
    for op in context.searcher.operations():
        op.report_completed(0.5)
END
attacker sh -c "cd '$e/trials/0001/a.1' && mv ckpt away && ln -s '$secret/ckpt' ckpt"
go_on
untouched "det: delete() does not follow a link"
like "$(cat "$e/trials/0001/a.1/log")" "^told: .*0001.h5: (cannot remove: this path is or contains a symbolic link|there is no such checkpoint)" "det: and it says so"

mkdir -p stand/lightning/pytorch/loggers stand/lightning/fabric/plugins/io
touch stand/lightning/__init__.py stand/lightning/pytorch/loggers/__init__.py stand/lightning/fabric/__init__.py \
    stand/lightning/fabric/plugins/__init__.py stand/lightning/fabric/plugins/io/__init__.py
echo 'class Callback: pass' >stand/lightning/pytorch/__init__.py
echo 'class Logger: pass' >stand/lightning/pytorch/loggers/logger.py
echo 'class CheckpointIO: pass' >stand/lightning/fabric/plugins/io/checkpoint_io.py
if $python -c 'import torch' 2>/dev/null; then
    begin remove <<END
sys.path.insert(0, "$work/stand")
import slurmdl, slurmdl.lightning
run = slurmdl.init()
class Trainer:
    def save_checkpoint(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        wait()
try:
    slurmdl.lightning.Callback(run, keep=1)._save(Trainer(), 1)
except Exception as error:
    print("told:", error)
run.log("loss", 0.5, 1)
END
    attacker sh -c "cd '$e/trials/0001/a.1' && mv ckpt away && ln -s '$secret/ckpt' ckpt"
    go_on
    untouched "lightning: nor does the callback that removes old checkpoints"
    like "$(cat "$e/trials/0001/a.1/log")" "^told: .*0001.h5: cannot remove: this path is or contains a symbolic link" "lightning: and it says so"
else
    skip "lightning" "no python3-torch"
fi

# ---- hyperparameters
begin hparams <<'END'
wait()
import slurmdl
with slurmdl.init() as run:
    try:
        print("x is", run.hp.x)
    except Exception as error:
        print("told:", type(error).__name__)
    run.log("loss", 0.5, 1)
END
attacker sh -c "cd '$e/trials/0001/a.1' && rm -f hparams.json && mkfifo hparams.json"
touch "$group/go"
wait_for 100 grep -q '^told: ' "$e/trials/0001/a.1/log"
like "$(cat "$e/trials/0001/a.1/log")" "^told: " "hparams.json: does not wait for a pipe"
attacker timeout 5 sh -c "echo '{\"x\": 9}' >'$e/trials/0001/a.1/hparams.json'" 2>/dev/null
wait $running

# ---- dl elastic: its folder is replaced before the last rank ends
cat >elastic.py <<END
import os, sys, time
import slurmdl.elastic
world = slurmdl.elastic.Elastic(min=2, settle=0.1, timeout=200)
comm = world.form()
world.restore()
rank = comm.rank
world.commit(1)
world.close()
if rank:
    open("$group/ready", "w").close()
    while not os.path.exists("$group/go"):
        time.sleep(0.1)
END
chmod 644 elastic.py
rm -f "$group/ready" "$group/go"
(cd "$group" && victim env DL_COMM_TIMEOUT=200 timeout 300 dl elastic --local --min=2 --nodes=2 $python "$work/elastic.py") >out 2>&1 &
running=$!
wait_for 200 sh -c "test -e '$group/ready' && ls '$group'/elastic.*/ended.*"
attacker sh -c "cd '$group' && for folder in elastic.*; do mv \$folder away && ln -s '$secret' \$folder; done"
touch "$group/go"
wait $running
is $? 0 "dl elastic ends"
untouched "and removes nothing behind a link"
like "$(cat out)" "^dl: .*group: its group can replace your folder" "it warns where that can happen"

# ---- a rank of elastic training: its folder is replaced between two accesses
cat >alone.py <<END
import os, time
import slurmdl.elastic
world = slurmdl.elastic.Elastic(dir="$group/world", min=1, settle=0.1, timeout=200)
world.form()
world.restore()
open("$group/ready", "w").close()
while not os.path.exists("$group/go"):
    time.sleep(0.1)
world.commit(1)
world.close()
END
chmod 644 alone.py
rm -f "$group/ready" "$group/go"
victim timeout 300 $python alone.py >out 2>&1 &
running=$!
wait_for 200 test -e "$group/ready"
attacker sh -c "cd '$group' && mv world away.world && ln -s '$secret' world"
go_on
is $? 0 "elastic: a rank ends"
untouched "elastic: and says so in its own folder, whatever has the name"

# ---- TMPDIR belongs to another user
mkdir "$work/his"
chown "$attacker_id" "$work/his"
chmod 1777 "$work/his"
cat >try.conf <<'END'
name = "t"; entrypoint = "echo $DL_EXPERIMENT_DIR; dl log loss=1";
searcher = { name = "random"; metric = "loss"; max_trials = 1; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
END
chmod 644 try.conf
like "$(victim env TMPDIR="$work/his" timeout 200 dl try try.conf 2>&1)" "^/tmp/dl-try" "TMPDIR of another user, who can replace its contents: uses /tmp"
is "$(victim env TMPDIR="$work/his" "$python" -c 'from slurmdl.det import checkpoint; print(checkpoint._temporary())')" /tmp "so does slurmdl.det"

# ---- umask 000
mkdir "$victim_home/open"
chown "$victim_id:$victim_id" "$victim_home/open"
victim sh -c 'umask 000; cd "$HOME/open" && exec timeout 200 dl run --local "$1"' sh "$work/try.conf" >out 2>&1
is "$? $(find "$victim_home/open" -mindepth 1 ! -type l -perm -002)" "0 " "with umask 000 no file of an experiment is world-writable"
done_testing
