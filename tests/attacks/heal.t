#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Another member of the group attacks jobs that heal: what ranks and workers write and read in the attempt's folder, and the worker's listener.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
group=$work/group
shared_folder "$group"
mkdir bin
cp "$srcdir/tests/attacks/srun.py" bin/srun
program bin/scontrol <<'END'
echo "JobId=77 JobState=RUNNING NodeList=n1 "
END
program bin/squeue <<'END'
echo "77|N/A|RUNNING|None|1:00:00||/tmp"
END
chmod 755 bin bin/*
unset DL_FREEZE

job () { # job NAME: start NAME.conf in the group's folder, as the victim in a job of Slurm; sets $job and $trial
    chmod 644 "$1.conf"
    (cd "$group" && victim env PATH="$work/bin:$PATH" SLURM_JOB_ID=77 SLURM_JOB_NODELIST=n1 SLURM_JOB_NUM_NODES=1 SLURM_NTASKS=2 SLURMD_NODENAME=n1 \
        SLURM_JOB_END_TIME=$(($(date +%s) + 3600)) sh -c "umask 002; exec timeout 300 dl job '$work/$1.conf'") >"$1.out" 2>&1 &
    job=$!
    trial=$group/$1-0001/trials/0001
}
ends () { # ends NAME: check how the job ends
    wait "$job"
    is "$?" 0 "$1: the job succeeds"
}

# ---- a hang, while others flood the worker and have put a link where the stacks belong
victim mkdir "$victim_home/own"
cat >hang.conf <<END
name = "hang";
entrypoint = "echo begin; test \$DL_ATTEMPT = 1 || exit 0; until [ -e $work/go ]; do echo waits; sleep 0.1; done; exec sleep 1000";
searcher = { name = "single"; };
resources = { ranks_per_node = 2; };
worker = { heartbeat = 1; grace = 2; hang = 3; };
END
job hang
wait_for 300 grep -qs waits "$trial/a.1/log"
attacker ln -s "$victim_home/own" "$trial/a.1/stacks"
[ "$(readlink "$trial/a.1/stacks")" = "$victim_home/own" ] || bail_out "no link" hang.out
port=$(sed 's/ .*//' "$victim_home"/.slurm-dl/ranks.*)
attacker python3 - "$port" <<'END' &
import socket, sys, time
there = []
until = time.monotonic() + 60
while time.monotonic() < until:
    try:
        s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1)
        s.setblocking(False)
        there.append(s)
        for i, s in enumerate(there[-600:]): # silent, slow, and noisy
            if i % 3:
                s.send(b"x" if i % 3 == 1 else b"\x00\xff" * 2048)
    except OSError:
        time.sleep(0.01)
END
flood=$!
touch go
ends "a hang during a flood"
kill "$flood" 2>/dev/null
like "$(cat "$trial/a.1/healing")" 'no rank has made progress for [0-9]+ s' "the hang is seen"
like "$(cat "$trial/a.1/healing")" 'no stacks: others own .*/stacks, or may write there' "the link is told"
is "$(ls -A "$victim_home/own")" "" "nothing is written behind it"

# ---- forged ends of members, and a pipe
rm -f go
cat >roles.conf <<END
name = "roles";
worker = { heartbeat = 1; grace = 2; };
job = { roles = (
    { name = "chief"; command = "echo begin; until [ -e $work/go ]; do sleep 0.1; done; sleep 3; echo chief is done"; },
    { name = "worker"; command = "until [ -e $work/go ]; do sleep 0.1; done; sleep 3"; }
); };
END
job roles
wait_for 300 grep -qs begin "$trial/a.1/log"
attacker sh -c "umask 0; mkdir '$trial/a.1/ends' && echo '0 n1' >'$trial/a.1/ends/0' && mkfifo '$trial/a.1/ends/1'"
[ -p "$trial/a.1/ends/1" ] || bail_out "no forged ends" roles.out
touch go
ends "forged ends"
like "$(cat "$trial/a.1/log")" '^chief is done$' "the chief is not stopped"

# ---- a pipe where dl job expects the output of the next attempt
rm -f go
cat >pipe.conf <<END
name = "pipe";
entrypoint = "echo begin; until [ -e $work/go ]; do sleep 0.1; done";
searcher = { name = "single"; };
END
job pipe
wait_for 300 grep -qs begin "$trial/a.1/log"
attacker sh -c "umask 0; mkdir '$trial/a.2' && mkfifo '$trial/a.2/log'"
touch go
ends "a pipe"
done_testing
