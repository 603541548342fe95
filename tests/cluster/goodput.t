#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl goodput on a cluster: the time in each class agrees with what programs on a known schedule measured themselves.
. "$srcdir/tests/lib.sh"
need_cluster
try_cluster goodput --nodes=3 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl" || skip_all "no cluster"
unset DL_DIR
export PATH="$builddir/launcher:$PATH"
paced=$builddir/tests/cluster/paced

# Compare a row with the times that a program logged, within 10 % and 0.9 s.  "starting" may be longer, because it begins
# before the program does.
cat >agrees.py <<'END'
import json, sys
rows, kind, name, notes = json.load(open(sys.argv[1])), *sys.argv[2:5]
row = next(r for r in rows if r["kind"] == kind and r["name"] == name)
wanted = dict.fromkeys("starting training saving restoring repeated".split(), 0.0)
for line in open(notes):
    wanted[line.split()[1]] += float(line.split()[2])
wrong = []
for what, seconds in wanted.items():
    least, most = seconds * 0.9 - 0.9, seconds * 1.1 + 0.9 + (120 if what == "starting" else 0)
    if not least <= row[what] <= most:
        wrong.append(f"{what} is {row[what]} s, not {seconds:.3f} s")
print("; ".join(wrong) or " ".join(w for w in wanted if wanted[w] > 0))
END
agrees () { # agrees EXPERIMENT KIND NAME FILE CLASSES: compare a row with the times in FILE, which must have these classes
    dl goodput --json "$1" >rows.json
    is "$(python3 agrees.py rows.json "$2" "$3" "$4" 2>&1 | tail -1)" "$5" "$1: $2 $3"
    python3 -c 'import json, sys
for r in json.load(open("rows.json")):
    print("#", r["kind"], r["name"], *(f"{k}={v}" for k, v in r.items() if v and isinstance(v, float) and "percent" not in k))'
}
value () { # value EXPERIMENT KIND NAME CLASS: print one time
    dl goodput --json "$1" | python3 -c 'import json, sys
print(next(r[sys.argv[3]] for r in json.load(sys.stdin) if r["kind"] == sys.argv[1] and r["name"] == sys.argv[2]))' "$2" "$3" "$4"
}
between () { # between LEAST NUMBER MOST NAME
    python3 -c 'import sys; least, n, most = map(float, sys.argv[1:]); sys.exit(not least <= n <= most)' "$1" "$2" "$3"
    ok $? "$4"
    echo "# $1 <= $2 <= $3"
}

# ---- start all at the same time: a job that heals twice, a sweep whose job is requeued, a flow
dl job --detach --nodes=2 --name=heals --set worker.heartbeat=1 -- \
    "$paced" "$work/heals" start=3 step=1 save=2 restore=3 steps=16 every=4 fault=107 signal=9 rank=1 fault=211 signal=19 rank=1 >out 2>&1
is $? 0 "heals: submitted"
cat >sweep.conf <<END
name = "sweep";
entrypoint = "exec $paced $work/sweep.\$DL_TRIAL plain=1 start=2 step=1 steps=10 every=4 fault=\${DL_TRIAL}07 signal=9 hold=\$((DL_TRIAL - 1))05";
metrics = { pattern = [ "step={step} loss={loss}" ]; };
searcher = { name = "random"; metric = "loss"; max_trials = 2; max_length = 10; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; };
worker = { heartbeat = 1; grace = 3; };
END
dl run --detach sweep.conf >out 2>&1
is $? 0 "sweep: submitted"
cat >pipe.conf <<END
name = "pipe";
steps = {
    train = { retries = 1; entrypoint = "exec $paced $work/pipe start=2 step=1 save=2 restore=3 steps=8 every=3 fault=106 signal=9"; };
    after = { after = "train"; entrypoint = "true"; };
};
END
dl flow run pipe.conf >out 2>&1
is $? 0 "pipe: submitted"

# ---- requeue the sweep's job while its second trial waits
wait_for 300 grep -qx 105 sweep.2.now
job=$(squeue -h -o %A --name=sweep)
waited () { # waited JOB: print the seconds from its last submission or requeue to its start, according to Slurm
    scontrol show job "$1" | python3 -c 'import re, sys
from datetime import datetime
submit, start = (datetime.fromisoformat(re.search(rf"\b{k}Time=(\S+)", text)[1]) for text in [sys.stdin.read()] for k in ("Submit", "Start"))
print((start - submit).total_seconds())'
}
first=$(waited "$job")
scontrol requeue "$job"

# ---- the job: rank 1 is killed in its first attempt, and stopped in its second
timeout 300 dl wait heals >out 2>&1
is $? 0 "heals: it ends"
is "$(cat heals-0001/log/0*/0* | grep -oE '"cause": *"[A-Za-z]+"' | grep -oE 'Rank[A-Za-z]+' | xargs)" "RankDied RankStopped" "what happened to it"
agrees heals trial 1 heals "starting training saving restoring repeated"
agrees heals job "$(python3 -c 'import json; print(*(r["name"] for r in json.load(open("rows.json")) if r["kind"] == "job"))')" heals \
    "starting training saving restoring repeated"
dl goodput --json heals 1 >rows.json
quiet=$(sed -n 's/.*no rank has made progress for \([0-9]*\) s.*/\1/p' heals-0001/trials/0001/a.2/healing | head -1)
idle=$(python3 -c 'import json; print(*(r["idle"] for r in json.load(open("rows.json")) if r["kind"] == "attempt"))')
between "$((${quiet:-1000} - 2))" "$(echo "$idle" | cut -d' ' -f2)" "$((${quiet:-0} + 60))" "idle is the time since the last row of the one that was stopped"
is "$(echo "$idle" | cut -d' ' -f1,3)" "0.0 0.0" "but not to the others"

# ---- the flow
wait_for 300 sh -c 'dl flow show pipe | grep -q "pipe-0001: completed"'
ok $? "pipe: it ends"
agrees pipe step train/0 pipe "starting training saving restoring repeated"
agrees pipe all "" pipe "starting training saving restoring repeated"

# ---- the sweep: Slurm restarts its job
timeout 500 dl wait sweep >out 2>&1
is $? 0 "sweep: it ends"
cat sweep.1 sweep.2 >sweep.all
agrees sweep trial 1 sweep.1 "starting training repeated"
agrees sweep trial 2 sweep.2 "starting training repeated"
agrees sweep all "" sweep.all "starting training repeated"
again=$(waited "$job")
between "$(python3 -c "print(0.9 * ($first + $again) - 15)")" "$(value sweep all "" queued)" "$(python3 -c "print(1.1 * ($first + $again) + 60)")" \
    "queued is the time that Slurm let it wait, twice"
done_testing
