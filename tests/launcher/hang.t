#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the watcher of a node beside ranks that are started here: who hangs, who has ended, who is stopped; tests/cluster/debug.t is of steps
. "$srcdir/tests/lib.sh"
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no Python"
for v in $(env | sed -n 's/^\(\(SLURM\|DL_DEBUG\|PYTHON\)[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
export PYTHONDONTWRITEBYTECODE=1
trap 'kill -9 $(cat pid.* 2>/dev/null) 2>/dev/null; clean_up' EXIT

id=$$ # a job that no other test on this machine has
in_step () { # in_step RANK COMMAND...
    rank=$1
    shift
    exec env SLURM_JOB_ID=$id SLURM_STEP_ID="$step" SLURM_PROCID="$rank" SLURM_LOCALID="$rank" SLURM_GTIDS=0,1,2 SLURM_NODEID=0 SLURMD_NODENAME=m1 \
        SLURM_STEP_NUM_NODES=1 DL_DEBUG_PATH="$work/dl-debug-$id.$step" PYTHONPATH="$srcdir/etc/debug" PYTHONFAULTHANDLER=1 \
        sh -c 'export SLURM_TASK_PID=$$; exec "$@"' sh "$@"
}
ranks () { # ranks STEP PROGRAM: three of them, and 'out'
    step=$1
    rm -f pid.*
    : >err
    mkdir "dl-debug-$id.$step"
    for r in 0 1 2; do
        (in_step $r "$python" "$2" >>out 2>/dev/null) &
        echo $! >pid.$r
    done
    for r in 0 1 2; do # the shells before them are no ranks
        wait_for 300 sh -c "grep -qz ^SLURM_TASK_PID= /proc/$(cat pid.$r)/environ"
    done
}
watcher () { # watcher SECONDS [kill]: what it says is in 'err'
    (exec env SLURM_JOB_ID=$id SLURM_STEP_ID="$step" SLURM_GTIDS=0,1,2 SLURM_NODEID=0 SLURMD_NODENAME=m1 SLURM_STEP_NUM_NODES=1 \
        dl watch-ranks "$work/dl-debug-$id.$step" "$1" "$(cat pid.0)" ${2:+"$2"} 2>err 3>ready) &
    watcher=$!
}
all_end () {
    for r in 0 1 2; do
        wait "$(cat pid.$r)"
        echo "$?"
    done | tr '\n' ' '
}
cat >hang.py <<'END'
import os, threading, time
def load_batch():
    time.sleep(1000)
def all_reduce():
    threading.Event().wait()
def step():
    load_batch() if os.environ["SLURM_PROCID"] == "1" else all_reduce()
step()
END
cat >ends.py <<'END'
import os, threading, time
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
if os.environ["SLURM_PROCID"] == "1":
    os.kill(os.getpid(), signal.SIGSTOP)
threading.Event().wait()
END
cat >works.py <<'END'
import os, threading, time
if os.environ["SLURM_PROCID"] == "1":
    while not os.path.exists("go"):
        time.sleep(0.3)
        print("saves", flush=True)
elif os.environ["SLURM_PROCID"] == "2":
    threading.Thread(target=lambda: os.path.exists("go") or time.sleep(0.1), daemon=True).start()
while not os.path.exists("go"):
    threading.Event().wait(3600 if os.environ["SLURM_PROCID"] == "0" else 0.2)
END

# ---- one is elsewhere
ranks 0 hang.py
watcher 5 kill
wait $watcher
is $? 0 "the watcher ends with its ranks"
like "$(cat err)" '^dl: no progress for 5 s, the step is ended: 2 ranks \(0,2\) are in wait \(threading\.py:[0-9]+\) from all_reduce \(hang\.py:5\); rank 1 is in load_batch \(hang\.py:3\); stacks of all ranks: /.*/dump-1$' "who hangs, and where"
is "$(grep -c dl: err)" 1 "once"
d=dl-debug-$id.0
is "$(cd $d/dump-1 && echo rank-*) $(ls $d/watch-* 2>/dev/null)" "rank-0 rank-1 rank-2 " "the stacks are there, the watcher's file is not"
for r in 0 1 2; do
    wait_for 60 sh -c "! kill -0 $(cat pid.$r)"
done
out=$(dl debug ./$d)
like "$out" '^ +2 ranks 0,2 +wait .* from all_reduce \(hang\.py:5\)$' "dl debug: those at one place"
like "$out" '^ +1 rank  1 +load_batch \(hang\.py:3\)  \[m1\]$' "and the odd one"
is "$(dl debug $id.0)" "$out" "dl debug JOB.STEP"
is "$(dl debug --last $id)" "$out" "dl debug JOB"

# ---- one that only reports, asked by hand
ranks 1 hang.py
watcher 1000
wait_for 300 test -e dl-debug-$id.1/watch-0
like "$(cat dl-debug-$id.1/watch-0)" '^m1 [0-9]+\.[0-9]$' "the watcher's file"
out=$(timeout 300 dl debug dl-debug-$id.1)
like "$out" 'dump-1, .*: asked for by dl debug' "dl debug asks a step that runs"
like "$out" '^ +1 rank  1 +load_batch \(hang\.py:3\)' "where its ranks are"
out=$(timeout 300 dl debug dl-debug-$id.1)
like "$out" 'dump-2, .*: asked for by dl debug' "and again"
is "$(cat err)" "" "the watcher says nothing"
is "$(for r in 0 1 2; do kill -0 "$(cat pid.$r)" && echo lives; done | wc -l)" 3 "and the ranks go on"
# shellcheck disable=SC2046
kill $(cat pid.*)
wait $watcher
is "$? $(cd dl-debug-$id.1 && echo -- *)" "0 -- dump-1 dump-2" "it ends with them"
ranks 2 hang.py
watcher 5
wait_for 300 grep -q 'dl: no progress for 5 s: ' err
is "$(for r in 0 1 2; do kill -0 "$(cat pid.$r)" && echo lives; done | wc -l)" 3 "without kill ranks that hang are told only"
# shellcheck disable=SC2046
kill $(cat pid.*)
wait $watcher
is "$(grep -c dl: err)" 1 "once"

# ---- one ends, by an exception or a signal
for r in 1 2; do
    sed "s/\"$((3 - r))\"/\"9\"/" ends.py >end$r.py
done
ranks 3 end2.py
watcher 6
wait_for 300 grep -q 'dl: rank' err
like "$(cat err)" '^dl: rank 2 has ended( with status 1)? \(ValueError: no such file of data\), and 2 ranks on m1 wait for it: 2 ranks \(0-1\) are in wait' "the one that ended, and why"
like "$(dl debug --last dl-debug-$id.3)" '^rank 2 ended: ValueError: no such file of data' "dl debug says it"
# shellcheck disable=SC2046
kill $(cat pid.0 pid.1)
wait $watcher
ranks 4 end1.py
watcher 6
wait_for 300 grep -q 'dl: rank' err
like "$(cat err)" '^dl: rank 1 has ended( by signal 9)?, and 2 ranks on m1 wait for it: ' "one that was killed"
# shellcheck disable=SC2046
kill $(cat pid.0 pid.2)
wait $watcher

# ---- one is stopped
ranks 5 stops.py
watcher 5 kill
wait $watcher
like "$(cat err)" '2 ranks \(0,2\) are in wait .*; rank 1 is stopped \(SIGSTOP\)' "one that is stopped"
for r in 0 1 2; do
    wait_for 60 sh -c "! kill -0 $(cat pid.$r)"
done

# ---- some go on
: >out
ranks 6 works.py
watcher 3 kill
sleep 8
is "$(cat err)" "" "ranks that wait for one that works are left alone"
is "$(for r in 0 1 2; do kill -0 "$(cat pid.$r)" && echo lives; done | wc -l)" 3 "all of them"
touch go
kill "$(cat pid.0)" "$(cat pid.2)" 2>/dev/null
wait $watcher
is "$? $(ls -d dl-debug-$id.6 2>/dev/null)" "0 " "a folder in which nothing was written goes"
done_testing
