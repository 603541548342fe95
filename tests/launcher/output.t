#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The whole output of every command that shows an experiment, for two stored experiments and for missing and damaged ones.
. "$srcdir/tests/lib.sh"
python3 -c 'import json' 2>/dev/null || skip_all "no Python"
unset COLUMNS DL_DIR
export TZ=UTC MAKE_TIME=1700000000

cat >first.conf <<'END'
name = "first"; entrypoint = "python3 train.py --lr {lr} --opt {opt}"; max_restarts = 1; max_failed = 10;
searcher = { name = "asha"; metric = "loss"; max_trials = 8; max_length = 9; divisor = 3; };
reproducibility = { experiment_seed = 3; };
resources = { workers = 2; };
hyperparameters = { lr = { type = "loguniform"; min = 1e-4; max = 1e-1; }; opt = { type = "categorical"; vals = ["sgd", "adam"]; }; };
END
sed -e 's/first/second/' -e 's/"asha"/"random"/' -e 's/divisor = 3; //' -e 's/max_trials = 8/max_trials = 3/' -e 's/min = 1e-4/min = 1e-3/' first.conf >second.conf
for name in first second; do
    runs 0 "make $name" "$builddir/tests/launcher/makesweep" . $name.conf 20
done
printf 'epoch 1\nepoch 2\nepoch 3\n' >first-0001/trials/0002/a.1/log
printf 'resumed\nepoch 9\n' >first-0001/trials/0002/a.2/log

# Expect standard input to be the command's standard output, then its standard error, then its exit status if it fails.
# Cut numbers to five decimals.
prints () { # prints NAME COMMAND... <<'END'
    prints_name=$1
    shift
    { at_most 300 "$@" 2>err </dev/null || echo "exit status $?"; } >out
    cat err >>out
    is "$(sed -E -e "s|$PWD|DIR|g" -e "s/by $(id -un)/by USER/" -e 's/([0-9]\.[0-9]{5})[0-9]+/\1/g' -e 's/"(id|digest)": "[0-9a-f]+"/"\1": "HEX"/' out)" "$(cat)" "$prints_name"
}

prints 'ls' dl ls <<'END'
experiment  state     searcher progress trials metric     best created          labels
first-0001  completed asha         100%      8 loss   0.40487 2023-11-14 22:13 
second-0001 completed random       100%      3 loss   0.43697 2023-11-14 22:13 
END

prints 'ls --json' dl ls --json <<'END'
{
   "experiments": [
      {
         "experiment": "first-0001",
         "state": "completed",
         "searcher": "asha",
         "progress": "100%",
         "trials": "8",
         "metric": "loss",
         "best": "0.40487",
         "created": "2023-11-14 22:13",
         "labels": null,
         "archived": "no"
      },{
         "experiment": "second-0001",
         "state": "completed",
         "searcher": "random",
         "progress": "100%",
         "trials": "3",
         "metric": "loss",
         "best": "0.43697",
         "created": "2023-11-14 22:13",
         "labels": null,
         "archived": "no"
      }
   ]
}
END

prints 'show an experiment' dl show first <<'END'
DIR/first-0001: completed, searcher asha, 100 % done
metric: loss, smaller is better
best loss 0.40487: trial 6 at length 9
failed: 1 of 8 trials: out of memory: tried to allocate 2.5 GiB </script><b>x
last: created by USER, 2023-11-14 22:13
trial state         length     best     last  time attempts        lr  opt why
    6 completed          9 0.40487 0.40487 33.3s        2  0.00225  sgd 
    2 completed          9 0.43697 0.43697 32.7s        2 0.00020  sgd 
    3 stopped early      3 0.71339 0.71339 26.8s        2 0.00016  sgd 
    4 stopped early      3 0.75626 0.75626 11.0s        1 0.00012  sgd 
    1 stopped early      3  1.03939  1.03939  9.9s        1   0.01925  sgd 
    8 stopped early      3  1.07782  1.07782  8.8s        1    0.0254 adam 
    5 stopped early      3  1.29982  1.29982 11.4s        1   0.04504  sgd 
    7 failed             0                   28.1s        2   0.08213 adam out of memory: tried to allocate 2.5 GiB </script><b>x
END

prints 'show --columns, --where and --sort' dl show first --columns=trial,state,lr '--where=lr<0.01' --sort=-lr <<'END'
trial state                lr
    6 completed      0.00225
    2 completed     0.00020
    3 stopped early 0.00016
    4 stopped early 0.00012
END

prints 'show --csv' dl show first --csv <<'END'
trial,state,length,metric,best,best_length,seconds,attempts,fails,begin_time,end_time,host,gpus,why,hp.lr,hp.opt
6,completed,9,0.40487,0.40487,9,33.27172,2,0,1700000043.69695,1700000076.96867,n1,,,0.00225,sgd
2,completed,9,0.43697,0.43697,9,32.74080,2,0,1.7e+09,1700000043.69695,n1,,,0.00020,sgd
3,stopped early,3,0.71339,0.71339,3,26.75303,2,0,1700000009.89164,1700000036.64467,n1,,,0.00016,sgd
4,stopped early,3,0.75626,0.75626,3,10.95614,1,0,1700000010.95416,1700000021.91031,n1,,,0.00012,sgd
1,stopped early,3,1.03939,1.03939,3,9.89164,1,0,1.7e+09,1700000009.89164,n1,,,0.01925,sgd
8,stopped early,3,1.07782,1.07782,3,8.83627,1,0,1700000076.12214,1700000084.95841,n1,,,0.02540,adam
5,stopped early,3,1.29982,1.29982,3,11.37902,1,0,1700000036.64467,1700000048.02369,n1,,,0.04503,sgd
7,failed,0,,,0,28.09844,2,2,1700000048.02369,1700000076.12214,n2,,out of memory: tried to allocate 2.5 GiB </script><b>x,0.08212,adam
END

prints 'show --json' dl show --json --trials=1 second <<'END'
{
  "experiment": "second",
  "dir": "DIR/second-0001",
  "id": "HEX",
  "digest": "HEX",
  "description": null,
  "state": "completed",
  "searcher": "random",
  "done": 1.0,
  "metrics": [
    {
      "name": "loss",
      "smaller_is_better": true
    }
  ],
  "space": [
    {
      "name": "lr",
      "type": "float",
      "low": 0.001,
      "high": 0.1,
      "log": true
    },
    {
      "name": "opt",
      "type": "categorical",
      "choices": [
        "sgd",
        "adam"
      ]
    }
  ],
  "best_trial": 2,
  "best": 0.43697,
  "best_length": 9,
  "trials": [
    {
      "trial": 2,
      "state": "completed",
      "length": 9,
      "metric": 0.43697,
      "best": 0.43697,
      "best_length": 9,
      "seconds": 19.16978,
      "attempts": 1,
      "fails": 0,
      "begin_time": 1700000000.0,
      "end_time": 1700000019.16978,
      "host": "n1",
      "gpus": null,
      "why": null,
      "hyperparameters": {
        "lr": 0.00160,
        "opt": "sgd"
      },
      "conditions": [
        {
          "type": "Created",
          "status": true,
          "time": 1700000000.0,
          "reason": "Created"
        },
        {
          "type": "Running",
          "status": false,
          "time": 1700000019.16978,
          "reason": "AttemptStarted"
        },
        {
          "type": "Succeeded",
          "status": true,
          "time": 1700000019.16978,
          "reason": "TrainingCompleted"
        }
      ]
    }
  ]
}
END

prints 'show a trial' dl show first 2 <<'END'
trial 2: completed, length 9, loss 0.43697
  hyperparameters: {"lr": 0.00020, "opt": "sgd"}
  seed: 340042959
  time: 32.7s in 2 attempts that ended
  Created     since 2023-11-14 22:13  Created
  Suspended   until 2023-11-14 22:13  RungReached
  Running     until 2023-11-14 22:14  AttemptStarted
  Succeeded   since 2023-11-14 22:14  TrainingCompleted
  attempt 1: DIR/first-0001/trials/0002/a.1
  attempt 2: DIR/first-0001/trials/0002/a.2
  metric values steps     last      min at     max at
  loss       19  5-90 0.43697 0.43697 90 1.03992  5
END

prints 'show --values' dl show first 1 --values <<'END'
trial 1: stopped early, length 3, loss 1.03939
  hyperparameters: {"lr": 0.01925, "opt": "sgd"}
  seed: 613542490
  time: 9.9s in 1 attempt that ended
  Created     since 2023-11-14 22:13  Created
  Running     until 2023-11-14 22:13  AttemptStarted
  Suspended   until 2023-11-14 22:14  RungReached
  Succeeded   since 2023-11-14 22:14  SearchEnded
  attempt 1: DIR/first-0001/trials/0001/a.1
    loss                                    5  1.39350
    loss                                   10  1.27974
    loss                                   15  1.19685
    loss                                   20  1.14515
    loss                                   25  1.09673
    loss                                   30  1.03939
END

prints 'show a trial as JSON' dl show first 2 --json <<'END'
{
  "trial": 2,
  "state": "completed",
  "length": 9,
  "metric": 0.43697,
  "best": 0.43697,
  "best_length": 9,
  "seconds": 32.74080,
  "attempts": 2,
  "fails": 0,
  "begin_time": 1700000000.0,
  "end_time": 1700000043.69695,
  "host": "n1",
  "gpus": null,
  "why": null,
  "hyperparameters": {
    "lr": 0.00020,
    "opt": "sgd"
  },
  "conditions": [
    {
      "type": "Created",
      "status": true,
      "time": 1700000000.0,
      "reason": "Created"
    },
    {
      "type": "Suspended",
      "status": false,
      "time": 1700000021.91031,
      "reason": "RungReached"
    },
    {
      "type": "Running",
      "status": false,
      "time": 1700000043.69695,
      "reason": "AttemptStarted"
    },
    {
      "type": "Succeeded",
      "status": true,
      "time": 1700000043.69695,
      "reason": "TrainingCompleted"
    }
  ],
  "metrics": {
    "loss": {
      "rows": 19,
      "first_step": 5,
      "last_step": 90,
      "last": 0.43697,
      "min": 0.43697,
      "min_step": 90,
      "max": 1.03992,
      "max_step": 5
    }
  },
  "healing": [],
  "no_progress": null,
  "seed": 340042959
}
END

prints 'best' dl best first <<'END'
best loss 0.40487: trial 6 of first-0001 at length 9
  lr          0.00225
  opt         sgd
checkpoint: none is kept
to train it again: cd DIR && env DL_LENGTH=9 DL_SEED=1923210993 DL_HP_lr=0.00225 DL_HP_opt=sgd sh -c 'python3 train.py --lr 0.00225 --opt sgd'
END

prints 'best --json' dl best --json first <<'END'
{
  "checkpoint": null,
  "command": "cd DIR && env DL_LENGTH=9 DL_SEED=1923210993 DL_HP_lr=0.00225 DL_HP_opt=sgd sh -c 'python3 train.py --lr 0.00225 --opt sgd'",
  "experiment": "first-0001",
  "hyperparameters": {
    "lr": 0.00225,
    "opt": "sgd"
  },
  "id": "HEX",
  "length": 9,
  "metrics": {
    "loss": 0.40487
  },
  "seed": 1923210993,
  "trial": 6
}
END

prints 'failures' dl failures first <<'END'
first-0001: 1 of 8 trials failed; 2 attempts failed or were lost
    2  out of memory: tried to allocate # GiB </script><b>x
       trial 7; the last one: trial 7, attempt 2, after 12.3s
END

prints 'failures --json' dl failures --json first <<'END'
[
  {
    "cause": "out of memory: tried to allocate # GiB </script><b>x",
    "attempts": 2,
    "trials": [
      7
    ],
    "last_trial": 7,
    "last_attempt": 2,
    "log": ""
  }
]
END

prints 'compare' dl compare first second <<'END'
experiment      best trial at budget     area searcher state     trials failed  wall trial time GPU h
first-0001  0.40487     6  0.68614 0.71516 asha     completed      8      1 1m24s      2m41s 
second-0001 0.43697     2  0.43697 0.59489 random   completed      3      0 41.2s      1m00s 
loss: smaller is better
at budget: after 1m00s of trial time, which all have spent; area: mean of the best so far until then

setting             first-0001        second-0001
searcher.name       asha              random
searcher.max_trials 8                 3
searcher.divisor    3                 4
lr                  log 0.0001 to 0.1 log 0.001 to 0.1
END

prints 'compare --json' dl compare --json first second <<'END'
{
  "metric": "loss",
  "budget_seconds": 60.34853,
  "experiments": [
    {
      "experiment": "first-0001",
      "searcher": "asha",
      "state": "completed",
      "best": 0.40487,
      "trial": 6,
      "at_budget": 0.68614,
      "area": 0.71516,
      "trials": 8,
      "failed": 1,
      "wall_seconds": 84.95841,
      "trial_seconds": 161.92708,
      "gpu_seconds": 0.0
    },
    {
      "experiment": "second-0001",
      "searcher": "random",
      "state": "completed",
      "best": 0.43697,
      "trial": 2,
      "at_budget": 0.43697,
      "area": 0.59489,
      "trials": 3,
      "failed": 0,
      "wall_seconds": 41.17874,
      "trial_seconds": 60.34853,
      "gpu_seconds": 0.0
    }
  ],
  "settings": [
    {
      "key": "searcher.name",
      "values": [
        "asha",
        "random"
      ]
    },
    {
      "key": "searcher.max_trials",
      "values": [
        "8",
        "3"
      ]
    },
    {
      "key": "searcher.divisor",
      "values": [
        "3",
        "4"
      ]
    },
    {
      "key": "lr",
      "values": [
        "log 0.0001 to 0.1",
        "log 0.001 to 0.1"
      ]
    }
  ]
}
END

prints 'diff' dl diff first second <<'END'
settings:
  hyperparameters.lr.min: 0.0001 -> 0.001
  name: "first" -> "second"
  searcher.divisor: 3 -> -
  searcher.max_trials: 8 -> 3
  searcher.name: "asha" -> "random"
exit status 1
dl: DIR/first-0001: there is no record of its code and packages
dl: DIR/second-0001: there is no record of its code and packages
END

prints 'diff on a full disk' sh -c 'dl diff first second >/dev/full' <<'END'
exit status 7
dl: DIR/first-0001: there is no record of its code and packages
dl: DIR/second-0001: there is no record of its code and packages
dl: cannot write standard output: No space left on device
END

prints 'export' dl export second <<'END'
trial,state,length,metric,best,best_length,seconds,attempts,fails,begin_time,end_time,host,gpus,why,hp.lr,hp.opt
1,completed,9,0.79151,0.79151,9,17.31037,1,0,1.7e+09,1700000017.31037,n1,,,0.03334,sgd
2,completed,9,0.43697,0.43697,9,19.16978,1,0,1.7e+09,1700000019.16978,n1,,,0.00160,sgd
3,completed,9,0.45954,0.45954,9,23.86836,1,0,1700000017.31037,1700000041.17874,n1,,,0.00137,sgd
END

prints 'export --format=json' dl export --format=json second <<'END'
[
{"trial":1,"state":"completed","length":9,"metric":0.79151,"best":0.79151,"best_length":9,"seconds":17.31037,"attempts":1,"fails":0,"begin_time":1700000000.0,"end_time":1700000017.31037,"host":"n1","gpus":null,"why":null,"hyperparameters":{"lr":0.03334,"opt":"sgd"},"conditions":[{"type":"Created","status":true,"time":1700000000.0,"reason":"Created"},{"type":"Running","status":false,"time":1700000017.31037,"reason":"AttemptStarted"},{"type":"Succeeded","status":true,"time":1700000017.31037,"reason":"TrainingCompleted"}]},
{"trial":2,"state":"completed","length":9,"metric":0.43697,"best":0.43697,"best_length":9,"seconds":19.16978,"attempts":1,"fails":0,"begin_time":1700000000.0,"end_time":1700000019.16978,"host":"n1","gpus":null,"why":null,"hyperparameters":{"lr":0.00160,"opt":"sgd"},"conditions":[{"type":"Created","status":true,"time":1700000000.0,"reason":"Created"},{"type":"Running","status":false,"time":1700000019.16978,"reason":"AttemptStarted"},{"type":"Succeeded","status":true,"time":1700000019.16978,"reason":"TrainingCompleted"}]},
{"trial":3,"state":"completed","length":9,"metric":0.45954,"best":0.45954,"best_length":9,"seconds":23.86836,"attempts":1,"fails":0,"begin_time":1700000017.31037,"end_time":1700000041.17874,"host":"n1","gpus":null,"why":null,"hyperparameters":{"lr":0.00137,"opt":"sgd"},"conditions":[{"type":"Created","status":true,"time":1700000017.31037,"reason":"Created"},{"type":"Running","status":false,"time":1700000041.17874,"reason":"AttemptStarted"},{"type":"Succeeded","status":true,"time":1700000041.17874,"reason":"TrainingCompleted"}]}
]
END

prints 'logs' dl logs first 2 <<'END'
resumed
epoch 9
END

prints 'logs of an attempt' dl logs --attempt=1 first 2 <<'END'
epoch 1
epoch 2
epoch 3
END

prints 'the last lines of a log' dl logs -n 1 first 2 <<'END'
epoch 9
END

prints 'preview' dl preview second-0001 <<'END'
a unit of length took 2.235 s so far
second: searcher random, metric loss (smaller is better), 2 workers
space: 2 dimensions
  lr: 0.001 to 0.1, logarithmic
  opt: sgd, adam

      length trials end            sum
           9          3             27
         all          3             27

3 trials, as much as 3.0 full trainings, 3 segments
on the disk: about 38 files and folders, 0.111 MB, besides checkpoints and output
0.01676 trial-hours, 0 GPU-hours, about 0.00838 hours with 2 workers
END

prints 'wait' dl wait first <<'END'
DIR/first-0001: completed, 8 trials
best loss 0.40487: trial 6 at length 9
failed: 1 of 8 trials: out of memory: tried to allocate 2.5 GiB </script><b>x
END

prints 'watch' dl watch first <<'END'
DIR/first-0001: completed, 8 trials
best loss 0.40487: trial 6 at length 9
failed: 1 of 8 trials: out of memory: tried to allocate 2.5 GiB </script><b>x
END

# ---- report: its text, without scripts, data and the "Written" lines, which change
runs 0 "report" dl report -o r.html first second
cat >text.py <<'END'
import html, re
t = open("r.html", encoding="utf-8").read()
t = re.sub(r"<(script|style)\b.*?</\1>|<pre>.*?</pre>", "", t, flags=re.S)
t = re.sub(r"</(h[1-6]|p|div|tr|li|section|dd|button|header|summary)>|<(section|h[1-6]|tr|dl|p|div|dt)\b", lambda m: "\n" + m.group(0), t)
for line in (" ".join(html.unescape(re.sub("<[^>]+>", " ", l)).split()) for l in t.split("\n")):
    if line and not line.startswith("Writ"):
        print(line)
END
prints 'the text of the report' env PYTHONUTF8=1 python3 text.py <<'END'
first-0001, second-0001 – dl report
Skip to the table
first-0001, second-0001
2 experiments
11 trials
Value
Colour
◐
Best loss (smaller is better)
0.40488
trial first-0001/6 at length 9 · median of 5 trials 0.437
--lr 0.00225 --opt sgd Copy
dl fork --set searcher.max_length=18 first-0001 6 Copy
dl fork --seeds 5 first-0001 6 Copy
Cost
Wall clock 85 s
Worker time 3 min 42 s
Trials 11
Attempts 15
Workers 4
Busy 100 %
Spent without a result 41.7 s (18.8 %)
How trials ended
completed 5 45.5 %
stopped early 5 45.5 %
failed 1 9.1 %
Attempts that failed, by cause
out of memory: tried to allocate # GiB </script><b>x 2
Experiments
experiment searcher state best trial trials failed time of results
first-0001 asha completed 0.40488 6 8 1 2 min 41 s
second-0001 random completed 0.43698 2 3 0 60.3 s
The charts and images of this page need JavaScript.
Learning curves
History
Parameters together
drag along an axis to filter
Each parameter
Two parameters
Rungs and promotions
a line is a trial that went on
Trade-off
Failures
of the selected trials
Workers
GPUs
Trials
the best first, at most 50
Filter Save CSV
trial state loss length time attempts lr opt
first-0001/6 completed 0.40488 9 33.3 s 2 0.00225 sgd
first-0001/2 completed 0.43698 9 32.7 s 2 0.00020 sgd
second-0001/2 completed 0.43698 9 19.2 s 1 0.00160 sgd
second-0001/3 completed 0.45955 9 23.9 s 1 0.00137 sgd
second-0001/1 completed 0.79152 9 17.3 s 1 0.03334 sgd
first-0001/3 stopped early 0.71339 3 26.8 s 2 0.00016 sgd
first-0001/4 stopped early 0.75627 3 11 s 1 0.00012 sgd
first-0001/1 stopped early 1.0394 3 9.89 s 1 0.01925 sgd
first-0001/8 stopped early 1.0778 3 8.84 s 1 0.02540 adam
first-0001/5 stopped early 1.2998 3 11.4 s 1 0.04503 sgd
first-0001/7 failed – 0 28.1 s 2 0.08212 adam
Provenance
Experiment first-0001
Begun 2023-11-14 22:13 UTC
Last event 2023-11-14 22:14 UTC
State completed
Searcher asha
Seed 3
Entrypoint python3 train.py --lr {lr} --opt {opt}
Entries of the decision log 2
experiment.conf
Experiment second-0001
Begun 2023-11-14 22:13 UTC
Last event 2023-11-14 22:14 UTC
State completed
Searcher random
Seed 3
Entrypoint python3 train.py --lr {lr} --opt {opt}
Entries of the decision log 2
experiment.conf
Licence of D3, which draws this page
END

# ---- a missing experiment and a damaged log: one error line, and no files are written
cp -r first-0001 bad-0001
printf x | dd of=bad-0001/log/000000/00000002 bs=1 seek=30 conv=notrunc 2>/dev/null
while read -r words; do
    # shellcheck disable=SC2086
    set -- $words
    refused 5 "^dl: $PWD/bad-0001/log/000000/00000002: damaged \(checksum or JSON is wrong\): restore this file from a backup$" \
        "a damaged log: dl $*" dl "$@" bad-0001
    refused 3 "^dl: no experiment 'none' in \. \(set the folder with --dir or DL_DIR\)$" "no experiment: dl $*" dl "$@" none
done <<'END'
show
show --json
best
best --export=out.d
export
export --format=h5 --output=o.h5
failures
plot
report -o bad.html
compare first
diff first
gc
wait
watch
stop
pause
kill
continue
retry
archive
fork
reproduce
scale 2
END
is "$(ls -d out.d o.h5 bad.html bad-0001/code* 2>/dev/null)" "" "no file of data that could not be read"
is "$(diff -rq first-0001 bad-0001 | grep -c '')" 1 "the damaged experiment is left as it was"
done_testing
