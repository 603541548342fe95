#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The hang watcher of a node, with ranks that this test starts: ranks that hang, end or are stopped.
# tests/cluster/debug.t tests it in real steps.
. "$srcdir/tests/lib.sh"
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no Python"
for v in $(env | sed -n 's/^\(\(SLURM\|DL_DEBUG\|PYTHON\)[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
export PYTHONDONTWRITEBYTECODE=1
trap 'kill -9 $(cat */pid.* 2>/dev/null) 2>/dev/null; clean_up' EXIT

id=$$ # a job ID that no other test on this machine uses
in_step () { # in_step RANK COMMAND...
    rank=$1
    shift
    exec env SLURM_JOB_ID=$id SLURM_STEP_ID="$step" SLURM_PROCID="$rank" SLURM_LOCALID="$rank" SLURM_GTIDS=0,1,2 SLURM_NODEID=0 SLURMD_NODENAME=m1 \
        SLURM_STEP_NUM_NODES=1 DL_DEBUG_PATH="$work/dl-debug-$id.$step" AT="$work/$step/at.$rank" PYTHONPATH="$srcdir/etc/debug" PYTHONFAULTHANDLER=1 \
        sh -c 'export SLURM_TASK_PID=$$; exec "$@"' sh "$@"
}
ranks () { # ranks STEP PROGRAM: start three ranks
    step=$1
    mkdir "$step" "dl-debug-$id.$step"
    for r in 0 1 2; do
        (in_step $r "$python" "$2" >"$step/out" 2>/dev/null) &
        echo $! >"$step/pid.$r"
    done
}
watcher () { # watcher STEP SECONDS [kill]: start it once all ranks have started; STEP/err gets its messages
    step=$1
    for r in 0 1 2; do
        wait_for 300 test -e "$step/at.$r"
    done
    (exec env SLURM_JOB_ID=$id SLURM_STEP_ID="$step" SLURM_GTIDS=0,1,2 SLURM_NODEID=0 SLURMD_NODENAME=m1 SLURM_STEP_NUM_NODES=1 \
        dl watch-ranks "$work/dl-debug-$id.$step" "$2" "$(cat "$step/pid.0")" ${3:+"$3"} 2>"$step/err" 3>"$step/ready") &
    eval "watcher$step=$!"
}
living () { # living STEP: print how many of its ranks live
    for r in 0 1 2; do kill -0 "$(cat "$1/pid.$r")" && echo lives; done 2>/dev/null | wc -l
}
finish () { # finish STEP RANK...: end these ranks, and return the watcher's exit status
    step=$1
    shift
    for r; do kill "$(cat "$step/pid.$r")" 2>/dev/null; done
    eval "wait \$watcher$step"
}
cat >hang.py <<'END'
import os, threading, time
def load_batch():
    time.sleep(1000)
def all_reduce():
    threading.Event().wait()
def step():
    load_batch() if os.environ["SLURM_PROCID"] == "1" else all_reduce()
open(os.environ["AT"], "w").close()
step()
END
cat >ends.py <<'END'
import os, threading, time
open(os.environ["AT"], "w").close()
def watched():
    while not os.path.exists(os.environ["DL_DEBUG_PATH"] + "/watch-0"):
        time.sleep(0.1)
if os.environ["SLURM_PROCID"] == "2":
    watched()
    raise ValueError("no such file of data")
if os.environ["SLURM_PROCID"] == "1":
    watched()
    os.kill(os.getpid(), 9)
threading.Event().wait()
END
cat >stops.py <<'END'
import os, signal, threading
open(os.environ["AT"], "w").close()
if os.environ["SLURM_PROCID"] == "1":
    os.kill(os.getpid(), signal.SIGSTOP)
threading.Event().wait()
END
cat >works.py <<'END'
import os, threading, time
open(os.environ["AT"], "w").close()
if os.environ["SLURM_PROCID"] == "1":
    while not os.path.exists("go"):
        time.sleep(0.3)
        print("saves", flush=True)
elif os.environ["SLURM_PROCID"] == "2":
    threading.Thread(target=lambda: os.path.exists("go") or time.sleep(0.1), daemon=True).start()
while not os.path.exists("go"):
    threading.Event().wait(3600 if os.environ["SLURM_PROCID"] == "0" else 0.2)
END

for r in 1 2; do
    sed "s/\"$((3 - r))\"/\"9\"/" ends.py >end$r.py
done
# Run seven steps at once, because they spend most of their time waiting.
ranks 0 hang.py
ranks 1 hang.py
ranks 2 hang.py
ranks 3 end2.py
ranks 4 end1.py
ranks 5 stops.py
ranks 6 works.py
watcher 0 5 kill
watcher 1 1000
watcher 2 5
watcher 3 6
watcher 4 6
watcher 5 5 kill
watcher 6 3 kill

# ---- a limit that is never reached: the watcher stays silent, and dl debug collects stacks on request
wait_for 300 test -e dl-debug-$id.1/watch-0
like "$(cat dl-debug-$id.1/watch-0)" '^m1 [0-9]+\.[0-9]$' "the watcher's file"
out=$(timeout 300 dl debug dl-debug-$id.1)
like "$out" 'dump-1, .*: requested by dl debug' "dl debug inspects a running step"
like "$out" '^ +1 rank  1 +load_batch \(hang\.py:3\)' "where its ranks are"
out=$(timeout 300 dl debug dl-debug-$id.1)
like "$out" 'dump-2, .*: requested by dl debug' "and again"
is "$(cat 1/err)" "" "the watcher prints nothing"
is "$(living 1)" 3 "and the ranks continue"
finish 1 0 1 2
is "$? $(cd dl-debug-$id.1 && echo -- *)" "0 -- dump-1 dump-2" "it ends with them"

# ---- a rank that is elsewhere
finish 0
is $? 0 "the watcher ends with its ranks"
like "$(cat 0/err)" '^dl: no progress for 5 s, ending the step: 2 ranks \(0,2\) are in wait \(threading\.py:[0-9]+\) from all_reduce \(hang\.py:5\); rank 1 is in load_batch \(hang\.py:3\); stacks of all ranks: /.*/dump-1$' "which rank hangs, and where"
is "$(grep -c dl: 0/err)" 1 "once"
mkdir alone
mv "dl-debug-$id.0" alone
cd alone || exit 1
d=dl-debug-$id.0
is "$(cd $d/dump-1 && echo rank-*) $(ls $d/watch-* 2>/dev/null)" "rank-0 rank-1 rank-2 " "the stacks are there, the watcher's file is not"
out=$(dl debug ./$d)
like "$out" '^ +2 ranks 0,2 +wait .* from all_reduce \(hang\.py:5\)$' "dl debug: the ranks at the same place"
like "$out" '^ +1 rank  1 +load_batch \(hang\.py:3\)  \[m1\]$' "and the odd one"
is "$(dl debug $id.0)" "$out" "dl debug JOB.STEP"
is "$(dl debug --last $id)" "$out" "dl debug JOB"
cd ..

# ---- a rank ends, by an exception or a signal
wait_for 300 grep -q 'dl: rank' 3/err
like "$(cat 3/err)" '^dl: rank 2 has ended( with status 1)? \(ValueError: no such file of data\), and 2 ranks on m1 wait for it: 2 ranks \(0-1\) are in wait' "the one that ended, and why"
like "$(dl debug --last dl-debug-$id.3)" '^rank 2 ended: ValueError: no such file of data' "dl debug reports it"
finish 3 0 1
wait_for 300 grep -q 'dl: rank' 4/err
like "$(cat 4/err)" '^dl: rank 1 has ended( by signal 9)?, and 2 ranks on m1 wait for it: ' "one that was killed"
finish 4 0 2

# ---- a rank is stopped
finish 5
like "$(cat 5/err)" '2 ranks \(0,2\) are in wait .*; rank 1 is stopped \(SIGSTOP\)' "one that is stopped"

# ---- without "kill" the watcher only reports, with it the ranks end
wait_for 300 grep -q 'dl: no progress for 5 s: ' 2/err
is "$(living 2)" 3 "without kill, hanging ranks are only reported"
finish 2 0 1 2
is "$(grep -c dl: 2/err)" 1 "once"
for step in 0 5; do
    wait_for 60 sh -c "! kill -0 $(cat $step/pid.0) && ! kill -0 $(cat $step/pid.1) && ! kill -0 $(cat $step/pid.2)"
done

# ---- some ranks wait while others work: after 9 s the watcher reports that once, and leaves the ranks alone
is "$(grep -v ': 2 of 3 ranks on m1 have made no progress for 9 s while others have: ' 6/err)" "" "ranks that wait for one that works are left alone"
is "$(living 6)" 3 "all of them"
touch go
finish 6 0 2
is "$? $(find . -maxdepth 1 -name "dl-debug-$id.6" | wc -l)" "0 $(grep -c dl: 6/err)" "an empty folder is removed"
done_testing
