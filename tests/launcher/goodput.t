#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl goodput: experiments with known schedules, whose times must be classified to the millisecond.
. "$srcdir/tests/lib.sh"
unset COLUMNS DL_DIR
make=$builddir/tests/launcher/makeschedule

conf () { # conf NAME [KEYS]
    cat >"$1.conf" <<END
name = "$1"; entrypoint = "true"; max_restarts = 5; $2
searcher = { name = "random"; metric = "loss"; max_trials = 2; max_length = 8; };
resources = { workers = 3; slots_per_trial = 4; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
END
}

schedule () { # schedule NAME <SCHEDULE: make the experiment
    "$make" >out 2>&1
    ok $? "$1"
    grep -v -e '-0001$' out | sed 's/^/# /'
}

row () { # row KIND NAME: print the nonzero columns of a CSV row as NAME=SECONDS
    awk -F, -v kind="$1" -v name="$2" '
        NR == 1 { for (i = 4; i <= 12; i++) names[i] = $i }
        NR > 1 && $1 == kind && $2 == name {
            for (i = 4; i <= 12; i++) { if ($i != 0) printf "%s=%g ", names[i], $i }
        }' csv
}

# adds_up.py FILE: in each row of the JSON, the classes must sum to the allocated time to the millisecond.
cat >adds_up.py <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))
names = "starting training saving restoring repeated idle unknown".split()
for r in rows:
    ms = {n: round(r[n] * 1000) for n in names + ["allocated"]}
    assert sum(ms[n] for n in names) == ms["allocated"], r
    assert abs(sum(r[n + "_percent"] for n in names) - (100 if r["allocated"] else 0)) < 0.05, r
assert rows
END

# ---- failure, lost worker, requeue, restores, hang, a task that never starts
conf job
schedule "a schedule" <<'END'
0    create job.conf
5    event {"op": "submit", "by": "u", "job": "41", "first": 1, "last": 3}
30   worker w1 41_1
30   event {"op": "begin", "by": "41_1", "trial": 1, "length": 8, "x": [0.5], "owner": "@w1"}
40   worker w2 41_2
40   event {"op": "begin", "by": "41_2", "trial": 2, "length": 8, "x": [0.25], "owner": "@w2"}
45   log 1 1 loss 1             # starting 15
50   log 1 1 loss 2             # training 5
55   log 1 1 loss 3             # training 5
58   did 1 1 saved {"step": 3, "seconds": 2}
63   log 1 1 loss 4             # training 6, saving 2
63   log 1 1 accuracy 4
68   log 1 1 loss 5             # training 5
73   event {"op": "fail", "by": "41_1", "trial": 1, "attempt": 1, "seconds": 43, "host": "n1", "why": "exit status 1", "cause": "RankDied"}
75   claim w1 1 2               # unknown 5; idle 2
85   did 1 2 restored {"step": 3, "seconds": 3}
85   did 1 2 resumed {"step": 3, "row": 1}
90   log 1 2 loss 4             # starting 12, restoring 3
95   log 1 2 loss 5             # repeated 5
100  log 1 2 loss 6             # training 5
104  beat w1                    # unknown 4
50   log 2 1 loss 1             # starting 10
55   log 2 1 loss 2             # training 5
60   did 2 1 restored {"step": 1, "seconds": 1}
60   did 2 1 resumed {"step": 1, "row": 3}
65   log 2 1 loss 2             # unknown 4, restoring 1, repeated 5
70   log 2 1 loss 3             # training 5
100  event {"op": "fail", "by": "41_2", "trial": 2, "attempt": 1, "seconds": 60, "host": "n2", "why": "rank 1 hangs", "cause": "Hang"}
100  event {"op": "exit", "by": "41_2", "trial": 2}
110  gone w2                    # idle 30 and 10
150  requeues 1
150  worker w3 41_1             # queued 46
152  event {"op": "lost", "by": "41_2", "trial": 1, "attempt": 2, "seconds": 29, "why": "its worker is gone", "progress": true}
152  claim w3 1 3               # idle 2
156  did 1 3 restored {"step": 3, "seconds": 2}
156  did 1 3 resumed {"step": 3, "row": 1}
160  log 1 3 loss 5             # starting 6, restoring 2
165  log 1 3 loss 6             # repeated 5
170  log 1 3 loss 7             # training 5
175  log 1 3 loss 8             # training 5
177  did 1 3 saved {"step": 8, "seconds": 2}
178  event {"op": "result", "by": "41_1", "trial": 1, "attempt": 3, "length": 8, "metric": 1, "seconds": 26, "host": "n1"}
178  event {"op": "end", "by": "41_1", "state": "completed"}
180  gone w3                    # saving 2, unknown 1, idle 2
END
runs 0 "CSV" dl goodput --csv job
cp out csv
is "$(row job 41_1)" "allocated=104 queued=71 starting=33 training=36 saving=4 restoring=5 repeated=10 idle=6 unknown=10 " \
    "a job that was requeued"
is "$(row job 41_2)" "allocated=70 queued=35 starting=10 training=10 restoring=1 repeated=5 idle=40 unknown=4 " "a job that hung"
is "$(row job 41_3)" "queued=175 " "a job that never began"
is "$(row trial 1)" "allocated=98 queued=50 starting=33 training=36 saving=4 restoring=5 repeated=10 unknown=10 " \
    "a trial of three attempts"
is "$(row trial 2)" "allocated=60 starting=10 training=10 restoring=1 repeated=5 idle=30 unknown=4 " "the other"
is "$(row all '')" "allocated=174 queued=281 starting=43 training=46 saving=4 restoring=6 repeated=15 idle=46 unknown=14 " "all of it"
is "$(grep -c . csv)" 7 "and nothing else"
like "$(cat csv)" '^job,41_1,0\.116,104,.*,31\.73,34\.62,3\.85,4\.81,9\.62,5\.77,9\.62$' "GPU-hours, and parts of the allocated time"
runs 0 "JSON" dl goodput --json job
python3 adds_up.py out
ok $? "each row adds up"
is "$(python3 -c 'import json; r = json.load(open("out"))
print(*(k for k in r[0]), sep=",")')" "$(head -n 1 csv)" "with the columns of the CSV"
runs 0 "one trial" dl goodput --csv job 1
cp out csv
is "$(row attempt 1)" "allocated=43 starting=15 training=21 saving=2 unknown=5 " "the attempt that failed"
is "$(row attempt 2)" "allocated=29 queued=2 starting=12 training=5 restoring=3 repeated=5 unknown=4 " "the one whose worker died"
is "$(row attempt 3)" "allocated=26 queued=48 starting=6 training=10 saving=2 restoring=2 repeated=5 unknown=1 " "the last one"
is "$(row trial 1)" "allocated=98 queued=50 starting=33 training=36 saving=4 restoring=5 repeated=10 unknown=10 " "their trial"
runs 0 "a table" dl goodput job
like "$(cat out)" '^of +GPU-hours +allocated +queued +starting +training +saving +restoring +repeated +idle +unknown$' "has all columns"
like "$(cat out)" '^job 41_1 +0\.116 +1m44s +1m11s +31\.7% +34\.6% +3\.8% +4\.8% +9\.6% +5\.8% +9\.6%$' "in per cent"
like "$(cat out)" '^all +0\.193 +2m54s +4m41s +24\.7% ' "its last line is the sum"

# ---- a trainer whose clock differs from the worker's; a second worker in the same job; a pause
conf skew
schedule "another schedule" <<'END'
0    create skew.conf
0    worker w1 7
0    event {"op": "begin", "by": "7", "trial": 1, "length": 8, "x": [0.5], "owner": "@w1"}
3610 log 1 1 loss 1             # an hour ahead
3615 log 1 1 loss 2             # training 5
3620 log 1 1 loss 3             # training 5
40   event {"op": "park", "by": "7", "trial": 1, "attempt": 1, "seconds": 40}
40   event {"op": "pause", "by": "u"}
45   beat w1
50   worker w2 7                # the same allocation: idle 5 and 5
140  event {"op": "resume", "by": "u"}
150  claim w2 1 2               # the trial waited for 10, and the job was idle for 100
160  log 1 2 loss 4             # starting 10
170  log 1 2 loss 5             # training 10
175  beat w2                    # unknown 5
END
runs 0 "it runs" dl goodput --csv skew
cp out csv
is "$(row trial 1)" "allocated=65 queued=10 starting=10 training=20 unknown=35 " "clocks that differ are not compared"
is "$(row job 7)" "allocated=175 starting=10 training=20 idle=110 unknown=35 " "a running attempt counts until its last sign of life"
runs 0 "JSON of it" dl goodput --json skew
python3 adds_up.py out
ok $? "adds up"

# ---- what the log does not show is unknown, not guessed

conf once
schedule "rows that are few" <<'END'
0    create once.conf
0    worker w1 8
0    event {"op": "begin", "by": "8", "trial": 1, "length": 8, "x": [0.5], "owner": "@w1"}
50   log 1 1 loss 8
60   event {"op": "result", "by": "8", "trial": 1, "attempt": 1, "length": 8, "metric": 1, "seconds": 60, "host": "n"}
60   event {"op": "begin", "by": "8", "trial": 2, "length": 8, "x": [0.25], "owner": "@w1"}
100  event {"op": "fail", "by": "8", "trial": 2, "attempt": 1, "seconds": 40, "host": "n", "why": "exit status 1"}
100  gone w1
END
dl goodput --csv once >csv
is "$(row job 8)" "allocated=100 unknown=100 " "one row, or none, does not tell when the training began"
conf lines 'metrics = { pattern = ["loss {loss}"]; };'
schedule "rows that are lines" <<'END'
0    create lines.conf
0    worker w1 9
0    event {"op": "begin", "by": "9", "trial": 1, "length": 8, "x": [0.5], "owner": "@w1"}
10   log 1 1 loss 1
20   log 1 1 loss 2
20   event {"op": "fail", "by": "9", "trial": 1, "attempt": 1, "seconds": 20, "host": "n", "why": "exit status 1"}
20   claim w1 1 2
30   log 1 2 loss 1
40   log 1 2 loss 2
50   log 1 2 loss 3
50   event {"op": "result", "by": "9", "trial": 1, "attempt": 2, "length": 8, "metric": 1, "seconds": 30, "host": "n"}
50   gone w1
END
dl goodput --csv lines >csv
is "$(row trial 1)" "allocated=50 starting=20 training=20 unknown=10 " "line numbers do not tell what is repeated"

conf gap
schedule "an attempt without rows between others" <<'END'
0    create gap.conf
0    worker w1 11
0    event {"op": "begin", "by": "11", "trial": 1, "length": 8, "x": [0.5], "owner": "@w1"}
10   log 1 1 loss 1
20   log 1 1 loss 2
20   event {"op": "fail", "by": "11", "trial": 1, "attempt": 1, "seconds": 20, "host": "n", "why": "exit status 1"}
20   claim w1 1 2
30   event {"op": "fail", "by": "11", "trial": 1, "attempt": 2, "seconds": 10, "host": "n", "why": "exit status 1"}
30   claim w1 1 3
40   log 1 3 loss 2
50   log 1 3 loss 3
END
dl goodput --csv gap >csv
is "$(row trial 1)" "allocated=50 starting=20 training=20 unknown=10 " "the rows are those of their attempts"
is "$(row job 11)" "allocated=50 starting=20 training=20 unknown=10 " "a worker that has not sent a heartbeat counts until its last row"

# ---- a flow
schedule "a flow" <<'END'
0    flow pipe-0001
0    told {"op": "start", "by": "u", "step": "prepare", "start": 1, "mode": "submit"}
2    told {"op": "submit", "by": "u", "step": "prepare", "start": 1, "job": "60"}
10   told {"op": "begin", "by": "u", "step": "prepare", "start": 1, "attempt": 1, "host": "n", "pid": 5, "job": "60"}
30   told {"op": "done", "by": "u", "step": "prepare", "start": 1, "attempt": 1, "state": "ok"}
31   told {"op": "submit", "by": "u", "step": "train", "start": 1, "job": "61"}
40   told {"op": "begin", "by": "u", "step": "train", "start": 1, "attempt": 1, "host": "n", "pid": 6, "job": "61"}
50   made train 1 loss 1        # starting 10
60   made train 1 loss 2        # training 10
65   told {"op": "fail", "by": "u", "step": "train", "start": 1, "attempt": 1, "seconds": 25, "status": 1, "why": "exit status 1"}
67   told {"op": "begin", "by": "u", "step": "train", "start": 1, "attempt": 2, "host": "n", "pid": 6, "job": "61"}
70   made train 2 loss 1        # unknown 5, idle 2, starting 3
80   made train 2 loss 2        # repeated 10
95   made train 2 loss 3        # training 15
96   told {"op": "done", "by": "u", "step": "train", "start": 1, "attempt": 2, "state": "ok"}
END
runs 0 "is shown" dl goodput --csv pipe
cp out csv
is "$(row step prepare/0)" "allocated=20 queued=8 unknown=20 " "a step that logs nothing"
is "$(row step train/0)" "allocated=54 queued=11 starting=13 training=25 repeated=10 unknown=6 " "one that trains"
is "$(row job 60)" "allocated=20 queued=8 unknown=20 " "its job"
is "$(row job 61)" "allocated=56 queued=9 starting=13 training=25 repeated=10 idle=2 unknown=6 " "and that of the other"
is "$(row all '')" "allocated=76 queued=17 starting=13 training=25 repeated=10 idle=2 unknown=26 " "the flow"
like "$(cat csv)" '^all,,,76,' "its GPUs are not known"
runs 0 "JSON of a flow" dl goodput --json pipe-0001
python3 adds_up.py out
ok $? "adds up"
runs 0 "a table of a flow" dl goodput pipe
like "$(cat out)" '^job 61 +56\.0s +9\.0s +23\.2%' "in per cent"
runs 2 "a flow has no trials" dl goodput pipe 1
is "$(cat out)" "dl: ./pipe-0001: a flow has no trials" "in one line"

# ---- bad input
runs 2 "two forms at once" dl goodput --json --csv job
is "$(cat out)" "dl: goodput: --json and --csv cannot be used together" "in one line"
runs 3 "no such experiment" dl goodput nothing
is "$(grep -c . out)" 1 "in one line"
for trial in 3 0 x; do
    runs 3 "no trial $trial" dl goodput job $trial
    is "$(grep -c . out)" 1 "in one line"
done
printf 'x' | dd of=job-0001/trials/0001/a.1/metrics.h5 conv=notrunc bs=1 seek=0 2>/dev/null
runs 5 "a damaged file" dl goodput --csv job
like "$(cat out)" '^dl: .*trials/0001/a\.1/metrics\.h5: .* \(some of its time may be shown as unknown\)$' "is named"
like "$(cat out)" '^job,41_2,.*,70,' "and the rest is shown"
mkdir none-0001
runs 3 "a folder that is no experiment" dl goodput none-0001
is "$(grep -c . out)" 1 "in one line"
done_testing
