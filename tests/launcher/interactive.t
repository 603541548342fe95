#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl shell, notebook and tensorboard, with stand-ins for Slurm, Jupyter and Python.
. "$srcdir/tests/lib.sh"
mkdir bin home
XDG_STATE_HOME=$work/home/state
export XDG_STATE_HOME
unset DL_PYTHON DL_DIR
books=$XDG_STATE_HOME/slurm-dl/notebooks

# fake NAME <<END: a program that comes first in PATH
fake () {
    { echo '#!/bin/sh'; cat; } >"bin/$1"
    chmod +x "bin/$1"
}
old=$PATH
PATH=$work/bin:$PATH

# ---- shell
like "$(dl shell </dev/null 2>&1)" '^dl: shell: standard input is not a terminal: use srun or sbatch$' "no terminal"
fake srun <<'END'
printf '<%s>' "$@"
echo
exit 7
END
on_terminal='import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'
out=$(SHELL=/bin/zsh python3 -c "$on_terminal" dl shell -- --gpus=1 -p "a b" </dev/null 2>&1)
is "$?" 7 "the status is srun's"
like "$out" '^<--pty><--gpus=1><-p><a b></bin/zsh><-i>' "its options and the user's shell"
cat >interrupt.py <<'END'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
said, waits = b"", sys.argv[1].encode()
while True:
    try:
        said += os.read(fd, 4096)
    except OSError:
        break
    if waits and waits in said:
        waits = b""
        os.write(fd, b"\x03")
print(said.decode().replace("\r", ""))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
fake squeue <<END
echo "\$*" >>"$work/asked"
echo "41|N/A|PENDING|PartitionConfig|UNLIMITED|(null)|/tmp"
END
fake srun <<'END'
trap 'echo "srun: Force Terminated job 41" >&2; exit 9' INT
echo "srun: job 41 queued and waiting for resources" >&2
while :; do sleep 0.1; done
END
out=$(timeout 300 python3 interrupt.py PENDING dl shell)
is "$?" 9 "^C ends a shell that waits, by srun"
like "$out" '^dl: job 41: PENDING PartitionConfig; \^C cancels it$' "and it has reported why it waits"
like "$out" 'srun: Force Terminated job 41$' "and srun's last message"
is "$(cat asked)" "--noheader --format=%F|%K|%T|%r|%L|%k|%Z --jobs=41" "Slurm was queried once"

# ---- notebook: the stand-in for sbatch runs the job as a local process
fake sbatch <<END
[ -e "$work/refuse" ] && { echo "sbatch: unrecognized option '--gpu'"; echo 'Try "sbatch --help" for more information'; exit 1; }
printf '%s\n' "\$@" >"$work/sbatch.args"
for script; do :; done
[ ! -e "$work/pending" ] || { setsid sleep 600 >/dev/null 2>&1 & echo \$! >"$work/job.pid"; echo 42; exit; }
SLURM_JOB_ID=42 SLURMD_NODENAME=n7 JUPYTER_TOKEN=old setsid sh "\$script" >"$work/job.log" 2>&1 &
echo \$! >"$work/job.pid"
echo 42
END
fake squeue <<END
[ ! -e "$work/down" ] || { echo "slurm_load_jobs error: Unable to contact slurm controller"; exit 1; }
[ ! -e "$work/pending" ] || { echo "42|N/A|PENDING|Resources"; exit; }
kill -0 "\$(cat "$work/job.pid")" 2>/dev/null && echo "42|N/A|RUNNING|None" && exit
echo "slurm_load_jobs error: Invalid job id specified"
exit 1
END
fake scancel <<END
kill "\$(cat "$work/job.pid")"
END
fake jupyter-lab <<'END'
printf '%s\n' "$@" >"$JUPYTER_RUNTIME_DIR/args"
echo "$JUPYTER_RUNTIME_DIR" >"$JUPYTER_RUNTIME_DIR/runtime"
echo "${JUPYTER_TOKEN:-none}" >"$JUPYTER_RUNTIME_DIR/given"
cat "$WORK/answer" >"$JUPYTER_RUNTIME_DIR/jpserver-1.json"
exec sleep 600
END
WORK=$work
export WORK
echo '{"port": 23456, "hostname": "127.0.0.1", "token": "abc-DEF_1"}' >answer
out=$(timeout 300 dl notebook --idle 5 -- --time=1:00 -p gpu 2>&1)
is "$?" 0 "dl notebook"
like "$out" '^http://127.0.0.1:23456/\?token=abc-DEF_1$' "the address"
like "$out" '^  ssh -N -L 23456:127.0.0.1:23456 -J [^ @]+@[^ @]+ [^ @]+@n7$' "the tunnel"
is "$(xargs <sbatch.args | sed "s|$books|BOOKS|g")" \
    "--parsable --no-requeue --job-name=dl-notebook --output=BOOKS/%j.log --time=1:00 -p gpu BOOKS/job.sh" "sbatch's options"
is "$(stat -c %a "$books" "$books/42" "$books/42/node" "$books/42/jpserver-1.json" | xargs)" "700 700 600 600" "nobody else can read it"
is "$(cat "$books/42/given")" none "a token in the environment is not used"
like "$(cat "$books/42/args")" '^--ServerApp.shutdown_no_activity_timeout=300$' "it ends when it is idle"
like "$(cat "$books/42/args")" '^--ServerApp.ip=127.0.0.1$' "it listens on loopback"
like "$(cat "$books/42/args")" '^--KernelManager.transport=ipc$' "its kernels do not listen"
is "$(stat -c %a "$(dirname "$(cat "$books/42/runtime")")")" 700 "the short name of their folder belongs to the user"
is "$(grep -c abc-DEF_1 "$books/42/args" sbatch.args "$books/job.sh" | sed 's/.*://' | sort -u)" 0 "the token is on no command line"
is "$(dl notebook ls)" "42 RUNNING None n7" "ls"
touch down
is "$(dl notebook ls)" "42 UNKNOWN squeue: Unable to contact slurm controller n7" "ls while slurmctld is down"
rm down
is "$(dl notebook attach | head -1)" "http://127.0.0.1:23456/?token=abc-DEF_1" "attach"
: >"$books/42.log"
cp job.pid job.alive
sh -c 'echo $$' >job.pid # a PID that no longer exists
like "$(dl notebook attach 2>&1)" "^dl: job 42 has ended; its output: $books/42.log\$" "a killed job's address is not printed, because anyone can have its port"
mv job.alive job.pid
is "$(dl notebook stop)" "job 42 is cancelled" "stop"
touch pending
out=$(timeout 300 python3 interrupt.py Resources dl notebook)
is "$?" 4 "^C ends a notebook that waits"
like "$out" '^job 42: PENDING Resources; \^C cancels it$' "it has reported why it waits"
like "$out" 'job 42 is cancelled$' "its job is cancelled"
dl notebook >pending.out 2>&1 &
wait_for 60 grep -q PENDING pending.out
kill -HUP $!
is "$(dl notebook ls)" "42 PENDING Resources -" "ls lists a pending one"
is "$(dl notebook stop)" "job 42 is cancelled" "so does stop"
rm pending
is "$(dl notebook ls)" "" "it is gone"
like "$(dl notebook attach 2>&1)" "^dl: no notebook is running" "nothing to attach to"
printf '[I 1] hello\n[C 2] Running as root is not recommended.\n\n' >"$books/42.log"
is "$(dl notebook attach 42 2>&1 | tail -1)" "dl: job 42 has ended: [C 2] Running as root is not recommended.; its output: $books/42.log" "one that has ended, and why"
like "$(dl notebook attach 43 2>&1)" "^dl: job 43 is not a notebook; 'dl notebook ls' lists them\$" "a job without a notebook"
like "$(dl notebook stop '1;x' 2>&1)" "^dl: '1;x' is not a job number" "not a number"
like "$(dl notebook strat 2>&1)" "^dl: notebook: 'strat' is not one of ls, attach" "an unknown word"
echo '{"port": 23456, "hostname": "n7", "token": "t"}' >answer
# Slurm expands % in the path of the output file, and removes backslashes from it.
(
    XDG_STATE_HOME="$work/home/100%j"
    timeout 300 dl notebook >home.out 2>&1
    echo "$? $(grep -c '^http' home.out) $(sed -n 's/^--output=//p' sbatch.args)"
    dl notebook stop
    XDG_STATE_HOME="$work/home/a\\b"
    timeout 300 dl notebook >home.out 2>&1
    echo "$? $(grep -c '^http' home.out) $(sed -n 's/^--output=//p' sbatch.args) $(ls "$XDG_STATE_HOME/slurm-dl/notebooks")"
    dl notebook stop
) >homes 2>&1
is "$(cat homes)" "0 1 $work/home/100%%j/slurm-dl/notebooks/%j.log
job 42 is cancelled
0 1 /dev/null 42
42.log
job.sh
job 42 is cancelled" "a home with % or a backslash"

like "$(timeout 300 dl notebook --network)" '^  ssh -N -L 23456:n7:23456 [^ @]+@[^ ]+$' "--network"
dl notebook stop >stop.out
echo '{"port": 23456, "hostname": "127.0.0.1", "token": "", "password": false}' >answer
like "$(timeout 300 dl notebook 2>&1)" 'has no token: .*: the job is cancelled$' "a server without a token"
holds "is stopped" wait_for 60 sh -c '! kill -0 $(cat job.pid)'
printf '{"port": 23456, "hostname": "127.0.0.1", "token": "a\\u001b]0;b"}' >answer
is "$(timeout 300 dl notebook 2>&1 | grep -c "$(printf '\033')")" 0 "a token with control characters is invalid"
touch refuse
like "$(dl notebook 2>&1)" "^dl: sbatch: unrecognized option '--gpu'; Try .sbatch --help. for more information$" "Slurm rejects: its whole message"
runs 6 "with its status" dl notebook
rm bin/jupyter-lab
like "$(PATH=$work/bin:$(dirname "$(command -v dl)") dl notebook 2>&1)" '^dl: there is no Jupyter in PATH: pip install jupyterlab, or' \
    "no Jupyter"
like "$(dl notebook --jupyter nothing 2>&1)" "^dl: --jupyter: there is no program 'nothing'" "no such Jupyter"

# ---- tensorboard
PATH=$old
cat >exp.conf <<'END'
name = "exp"; entrypoint = "dl log loss=1";
searcher = { name = "single"; metric = "loss"; };
hyperparameters = { x = 1; };
END
timeout 300 dl run --local exp.conf >/dev/null
program python <<'END'
[ "$4" = tensorboard ] && { cat >"$5/rows"; exit; }
[ -n "$3" ] || exit 0
while [ ! -s "$3/rows" ]; do sleep 0.1; done
stat -c '%a %n' "$3" >"$WORK/seen"
echo http://there
exec sleep 600
END
TMPDIR=$work DL_PYTHON=$work/python timeout 300 dl tensorboard exp >board.out 2>&1 &
pid=$!
wait_for 120 test -s seen
is "$(sed "s|$work/dl-tensorboard.*|FOLDER|" seen)" "700 FOLDER" "a private folder with the metrics"
like "$(cat board.out)" '^http://there$' "the address"
kill $pid
wait $pid
is "$(ls -d dl-tensorboard.* 2>/dev/null)" "" "the folder is gone at the end"
DL_PYTHON=$work/python timeout 300 dl tensorboard nothing >none.out 2>&1
is $? 3 "no such experiment"
DL_PYTHON=$work/none timeout 60 dl tensorboard exp >none.out 2>&1
is $? 3 "no Python"
done_testing
