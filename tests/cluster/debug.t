#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --dl-debug detects ranks that hang, keeps their stacks, and names the rank that waits in a different place.
. "$srcdir/tests/lib.sh"
python=$(command -v /usr/bin/python3 || command -v python3) || skip_all "no Python"
need_cluster
cluster_up debug --nodes=2 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT NCCL_DEBUG PYTHONPATH DL_DEBUG_DIR
export DL_DEBUG_PYTHON="$srcdir/etc/debug" PYTHONDONTWRITEBYTECODE=1

folder () { # print the folder of the newest step
    # shellcheck disable=SC2012
    ls -dt dl-debug-* 2>/dev/null | head -1
}

# ---- the option
for v in hang:0 hang:4 hang:86401 hang: 12x kill,kil 'hang:9;ls' 5000000 ''\''$(id)'; do
    out=$(timeout 300 srun "--dl-debug=$v" -n1 true 2>&1)
    [ $? -ne 0 ]
    ok $? "--dl-debug=$v is refused"
    like "$out" 'dl: --dl-debug=.*: not hang:SECONDS \(5 to 86400\)' "and why"
done
is "$(timeout 300 srun -n1 sh -c 'env | grep -cE "^(DL_DEBUG_(PATH|SET)|NCCL_|TORCH_|PYTHONPATH)"; ls -d dl-debug-* 2>/dev/null; true')" 0 \
    "nothing without --dl-debug"

# ---- what a rank gets
out=$(timeout 300 srun --dl-debug -n2 sh -c 'echo "$SLURM_PROCID $NCCL_DEBUG ${NCCL_DEBUG_FILE##*/} ${TORCH_NCCL_TRACE_BUFFER_SIZE} ${TORCH_FR_DUMP_TEMP_FILE##*/} $PYTHONFAULTHANDLER"' | sort)
is "$out" "0 INFO nccl.0.%h.%p.log 2000 flight_ 1
1 INFO nccl.1.%h.%p.log 2000 flight_ 1" "the variables, a log for each rank"
is "$(folder)" "" "a folder without a file is removed at the end"
timeout 300 srun --dl-debug -n2 -N2 true 2>err
like "$(cat err)" "^ *1 +n2 " "a table lists the ranks and their nodes"
is "$(grep -cE '^ *[01] +n[12] ' err)" 2 "it has all ranks"
is "$(NCCL_DEBUG=TRACE TORCH_NCCL_TRACE_BUFFER_SIZE=7 PYTHONPATH=/x timeout 300 srun --dl-debug -n1 sh -c 'echo $NCCL_DEBUG $TORCH_NCCL_TRACE_BUFFER_SIZE $PYTHONPATH')" \
    "TRACE 7 $srcdir/etc/debug:/x" "the user's exports win"
is "$(timeout 300 srun --dl-debug --dl-nccl=auto -n1 sh -c 'echo $NCCL_DEBUG')" INFO "but not what --dl-nccl has set"
is "$(DL_DEBUG_DIR=sub timeout 300 srun --dl-debug -n1 sh -c 'echo ${DL_DEBUG_PATH##*/}' 2>err)" "" "a folder that does not exist"
like "$(cat err)" 'dl: --dl-debug: nothing is recorded: .*/sub/dl-debug-[0-9]+\.0: No such file or directory; choose another folder' "is reported, and the job continues"
is "$(grep -c 'dl:' err)" 1 "in one line"
runs 3 "the exit status is the job's" srun --dl-debug -n2 sh -c 'exit 3'

# ---- a user's own sitecustomize
mkdir mine
echo 'print("mine", flush=True)' >mine/sitecustomize.py
is "$(PYTHONPATH=$work/mine timeout 300 srun --dl-debug -n1 "$python" -c 'print("end")')" "mine
end" "the user's sitecustomize runs, and nothing else is printed"
is "$(timeout 300 srun --dl-debug -n1 "$python" -c 'import subprocess, sys; print(subprocess.call(["sh", "-c", "ls /proc/self/fd | grep -c 200"]))')" "0
1" "its file is not inherited by other programs"

# ---- one rank waits in a different place
cat >hang.py <<'END'
import os, threading, time
rank = int(os.environ["SLURM_PROCID"])
def load_batch():
    time.sleep(1000)
def all_reduce():
    threading.Event().wait()
def step():
    load_batch() if rank == 1 else all_reduce()
print("begin", flush=True)
step()
END
timeout 300 srun --dl-debug=hang:5,kill -N2 -n4 "$python" hang.py >out 2>err
is $? 134 "ranks that hang are ended on request, by SIGABRT"
like "$(cat err)" 'dl: no progress for 5 s, ending the step: 3 ranks \(0,2-3\) are in wait \(threading\.py:[0-9]+\) from all_reduce \(hang\.py:6\); rank 1 is in load_batch \(hang\.py:4\); stacks of all ranks: /.*/dl-debug-[0-9]+\.0/dump-1$' \
    "the odd rank is named"
is "$(grep -c 'dl:' err)" 1 "once per step"
d=$(folder)
is "$(cd "$d/dump-1" && echo rank-*)" "rank-0 rank-1 rank-2 rank-3" "the stacks of all ranks are there"
out=$(dl debug "${d#dl-debug-}")
like "$out" '^ +3 ranks 0,2-3 +wait .* from all_reduce \(hang\.py:6\)$' "dl debug: one line for ranks at the same place"
like "$out" '^ +1 rank  1 +load_batch \(hang\.py:4\)  \[n1\]$' "and one for the odd rank"
like "$(dl debug "$(echo "$d" | sed 's/dl-debug-//; s/\..*//')")" 'load_batch' "dl debug JOB"
dl debug 999999 2>err
is $? 3 "no such job"
like "$(cat err)" '^dl: \./dl-debug-999999: no such folder: name it' "is reported"

# ---- a native program, and one in a shell
cat >hang.c <<'END'
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void wait_for_lock (void) { pthread_mutex_lock (&lock); }
int main (void) { pthread_mutex_lock (&lock); wait_for_lock (); return 0; }
END
${CC:-cc} -g -O0 -pthread hang.c -o hang
timeout 300 srun --dl-debug=hang:5,kill -n1 sh -c './hang; exit $?' >out 2>err
is $? 134 "a native program below a shell"
if command -v gdb >/dev/null; then
    like "$(cat err)" 'rank 0 is in .*pthread_mutex_lock.* from wait_for_lock \(hang\.c:3\)' "gdb finds the place"
else
    like "$(cat err)" "rank 0 is in the kernel's futex" "the kernel names the place"
fi

# ---- a rank that has ended, and a stopped one
cat >ends.py <<'END'
import os, threading, time
if os.environ["SLURM_PROCID"] == "0":
    time.sleep(1)
    raise ValueError("no such file of data")
threading.Event().wait()
END
rm -f out err
timeout 300 srun --dl-debug=hang:6 -N1 -n2 "$python" ends.py >out 2>err &
srun=$!
wait_for 300 grep -q 'dl: rank' err
like "$(cat err)" 'dl: rank 0 has ended.*\(ValueError: no such file of data\), and 1 rank on n[12] waits for it: rank 1 is in wait' "the rank that ended first, why, and where the other waits"
scancel -u "$(id -un)"
wait $srun 2>/dev/null
is "$(sed -n '1s/(.*//p' "$(folder)"/error.0.*)" "Traceback " "its exception is kept"
like "$(dl debug --last "$(folder)")" '^rank 0 ended: ValueError: no such file of data' "dl debug reports it"

cat >stops.py <<'END'
import os, signal, threading
if os.environ["SLURM_PROCID"] == "1":
    os.kill(os.getpid(), signal.SIGSTOP)
threading.Event().wait()
END
timeout 300 srun --dl-debug=5,kill -N1 -n3 "$python" stops.py >out 2>err
is $? 134 "a stopped rank is killed, too"
like "$(cat err)" '2 ranks \(0,2\) are in wait .*; rank 1 is stopped \(SIGSTOP\)' "and named as stopped"

# ---- healthy programs
cat >healthy.py <<'END'
import sys, time
end = time.time() + 13
def spin(seconds):
    stop = time.time() + seconds
    while time.time() < stop:
        pass
def train():
    spin(0.31)
    spin(0.23)
    spin(0.17)
    spin(0.29)
    spin(0.13)
    spin(0.19)
def validate():
    spin(0.27)
    spin(0.37)
while time.time() < end:
    if sys.argv[1] == "logs":
        time.sleep(0.5)
        print("step", flush=True)
    else:
        train()
        validate()
END

cat >one.py <<'END'
import ctypes, os, threading, time
if os.environ["SLURM_PROCID"] == "0":
    for i in range(40):
        time.sleep(0.3)
        print("saves", flush=True)
else:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    print("poll", ctypes.CDLL(None).poll(None, 0, 12500), flush=True)
END
# run them in parallel, because they mostly wait
healthy () { # healthy NAME OPTION... PROGRAM...: start a step in its own folder
    mkdir "$1"
    (cd "$1" && shift && exec timeout 300 srun "$@" >out 2>err) &
}
healthy logs --dl-debug=5 -n1 "$python" "$work/healthy.py" logs
logs=$!
healthy computes --dl-debug=5 -n1 "$python" "$work/healthy.py" computes
computes=$!
healthy one1 --dl-debug=5,kill -N1 -n2 "$python" "$work/one.py"
one1=$!
healthy one2 --dl-debug=5,kill -N2 -n2 "$python" "$work/one.py"
one2=$!
unhurt () { # unhurt FOLDER PID NAME: check that the step succeeds without a message of dl
    wait "$2"
    is "$? $(grep dl: "$1/err")" "0 " "$3"
}
unhurt logs $logs "a program that logs is never said to hang"
unhurt computes $computes "a program that computes is never said to hang"
unhurt one1 $one1 "a rank that waits for one that works, on 1 nodes"
unhurt one2 $one2 "a rank that waits for one that works, on 2 nodes"
is "$(cat one1/out one2/out | grep poll | tr '\n' ' ')" "poll 0 poll 0 " "looking at it does not interrupt its system call"

# ---- on demand
rm -f out err
timeout 300 srun --dl-debug -N2 -n2 "$python" hang.py >out 2>err &
srun=$!
wait_for 300 sh -c '[ "$(grep -c begin out)" = 2 ]'
wait_for 300 sh -c "ls $(folder)/watch-0 $(folder)/watch-1"
out=$(timeout 300 dl debug "$(folder)")
like "$out" 'dump-1, .*: requested by dl debug' "dl debug inspects a running step"
like "$out" '^ +1 rank  0 +wait .* from all_reduce' "rank 0"
like "$out" '^ +1 rank  1 +load_batch \(hang\.py:4\)' "rank 1"
is "$(grep -c 'dl:' err)" 0 "the step prints nothing"
kill -0 $srun
ok $? "and continues"
scancel -u "$(id -un)"
wait $srun 2>/dev/null

# ---- PyTorch over gloo
if $python -c 'import torch' 2>/dev/null; then
    cat >gloo.py <<'END'
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(10)
dist.all_reduce(x)
def slow_data():
    time.sleep(1000)
if dist.get_rank() == 2:
    slow_data()
dist.all_reduce(x)
END
    timeout 300 srun --dl=torch --dl-debug=hang:25,kill -N1 -n3 "$python" gloo.py >out 2>err
    is $? 134 "a hung all_reduce"
    like "$(cat err)" '2 ranks \(0-1\) are in all_reduce \(distributed_c10d\.py:[0-9]+\) from .*\(gloo\.py:[0-9]+\); rank 2 is in slow_data \(gloo\.py:6\)' \
        "PyTorch: which ranks wait in all_reduce, and which do not"
else
    skip "PyTorch" "no python3-torch"
fi
no_watchers () { ! pgrep -f "dl watch-ranks $work"; }
wait_for 600 no_watchers
ok $? "no watcher is left running"
done_testing
