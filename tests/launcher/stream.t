#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl export to other tools: a stand-in reads what dl sends to the Python package.  tests/python/export.t uses the real tools.
. "$srcdir/tests/lib.sh"

cat >some.conf <<'END'
name = "some"; description = "a \"word\"";
entrypoint = "case {trial}-$DL_ATTEMPT in 2-*) exit 3 ;; 3-1) dl log --step=1 loss=9; exit 3 ;; 4-*) dl log --step=1 loss=5; echo >begun; until [ -e go ]; do sleep 0.1; done ;; esac; dl log --step=1 loss=2 other=nan; dl log --step=2 loss={trial} other=-inf new=inf";
max_restarts = 1;
searcher = { name = "random"; metric = "loss"; max_trials = 4; max_length = 2; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; };
worker = { heartbeat = 1; lease = 30; grace = 5; };
END
program tool <<'END'
echo "$1 $3 $4 ${5##*/}" >args
[ -z "$TOOL_READS" ] || { head -n "$TOOL_READS" >lines; exit "$TOOL_STATUS"; }
cat >lines
exit "${TOOL_STATUS:-0}"
END
export DL_PYTHON="$work/tool"
trial () { # trial N: print what dl sent about it, without times
    sed -n -E "/\"trial\":$1,/s/"'^(\{"values":\[[^]]*\],"trial":[0-9]+,"state":"[^"]*"),("length":[0-9]+),.*("attempts":[0-9]+),.*("why":(null|"[^"]*")),.*("final":(true|false)).*/\1,\6,\2,\3,\4/p; '"s/^\[$1,([0-9]+,[0-9]+,[0-9]+),[0-9.]+,/\1,/p" lines | tr '\n' ' '
}
mkdir sub
timeout 300 dl run --local some.conf >out 2>&1 &
run=$!
wait_for 300 test -e some-0001/trials/0004/a.1/metrics.h5

# ---- while it runs
following () { [ "$(grep -c flush lines)" -ge "$1" ]; }
damaged=some-0001/trials/0001/a.1/metrics.h5
cp "$damaged" whole.h5
timeout 600 dl export --follow --seconds=0.2 --format=wandb some >out.follow 2>err.follow &
follow=$!
wait_for 300 following 3
is "$(cat args)" "-c slurmdl.export wandb some-0001.wandb" "the module, the format and the folder"
is "$(grep -c '"trial":1,.*"final":false' lines) $(grep -c '"trial":2,"state":"failed",.*"final":true' lines)" "1 1" "an unchanged trial is sent once"
holds "an open trial is sent each time" [ "$(grep -c '"trial":4,"state":"open","length":0,.*"final":false' lines)" -ge 3 ]
like "$(grep '^\[4,' lines | head -1)" '^\[4,0,1,1,[0-9.]+,5\]$' "with the rows that it has by then"
kill $follow
wait $follow 2>/dev/null
head -c 600 whole.h5 >"$damaged"
rm lines
timeout 600 dl export --follow --seconds=0.2 --format=wandb some >out.follow 2>err.follow &
follow=$!
wait_for 300 following 3
holds "a trial with unreadable rows is sent again" [ "$(grep -c '"trial":1,' lines)" -ge 3 ]
is "$(grep -c '"trial":2,' lines)" 1 "the others are not"
cp whole.h5 "$damaged"
holds "its rows come when they can be" wait_for 300 grep -q '^\[1,' lines
touch go
wait $run
is $? 0 "the sweep ends"
wait $follow
is $? 0 "so does who follows it"
is "$(cat out.follow) $(tail -1 lines)" 'some-0001.wandb {"end":true}' "with the name of the folder, and a last line"
is "$(grep '"trial":4' lines | tail -1 | grep -c '"state":"completed","length":2,.*"attempts":1,.*"final":true')" 1 "the last trial as it ended"

# ---- after the experiment has ended
dl export --format=mlflow --output=sub/there some >out
is "$? $(cat out) $(cat args)" "0 sub/there -c slurmdl.export mlflow there" "--output"
is "$(grep -v -e '^\[' -e '^{"values' lines | sed 's/"experiment":"some","dir.*"metrics/"metrics/; s/,"best_trial.*/}}/')" '{"experiment":{"metrics":[{"name":"loss","smaller_is_better":true}],"space":[{"name":"x","type":"float","low":0.0,"high":1.0}]}}
{"metric":0,"name":"loss"}
{"metric":1,"name":"other"}
{"metric":2,"name":"new"}
{"flush":true}
{"end":true}' "the experiment, each metric once, the end"
like "$(head -1 lines)" '"dir":"[^"]*/some-0001","id":"[0-9a-f]{32}","digest":"[0-9a-f]{64}","description":"a \\"word\\""' "who it is"
is "$(trial 1)" '{"values":[1],"trial":1,"state":"completed","final":true,"length":2,"attempts":1,"why":null 0,1,1,2] 1,1,1,NaN] 0,1,2,1] 1,1,2,-Infinity] 2,1,2,Infinity] ' "a trial, then its rows"
is "$(trial 2)" '{"values":[],"trial":2,"state":"failed","final":true,"length":0,"attempts":2,"why":"exit status 3" ' "one that has failed"
is "$(trial 3)" '{"values":[3],"trial":3,"state":"completed","final":true,"length":2,"attempts":2,"why":"exit status 3" 0,2,1,2] 1,2,1,NaN] 0,2,2,3] 1,2,2,-Infinity] 2,2,2,Infinity] ' "one that was retried, without the rows of what failed"
cp "$damaged" whole.h5
head -c 600 whole.h5 >"$damaged"
dl export --format=mlflow --output=sub/there some >out 2>&1
is "$? $(grep -c '^\[1,' lines) $(grep -c '"trial":1' lines) $(tail -1 lines)" '0 0 1 {"end":true}' "unreadable rows do not hide anything else"
cp whole.h5 "$damaged"

# ---- failures
TOOL_READS=1 TOOL_STATUS=5 dl export --format=optuna some >out 2>&1
is "$? $(cat out)" "5 " "a tool that fails has printed why"
holds "and leaves no empty folder" [ ! -e some-0001.optuna ]
mkdir kept
TOOL_STATUS=5 dl export --format=optuna --output=kept some >out 2>&1
holds "nor removes an existing one" [ -d kept ]
# more output than fits into a pipe
for i in $(seq 30); do echo "dl log --step=$i $(seq 200 | sed 's/.*/m&=1/' | tr '\n' ' ') loss=$i"; done >long.sh
cat >long.conf <<'END'
name = "long"; entrypoint = "sh SCRIPT";
searcher = { name = "random"; metric = "loss"; max_trials = 1; };
hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
resources = { workers = 1; };
END
sed -i "s|SCRIPT|$work/long.sh|" long.conf
runs 0 "a trial with many rows" dl run --local long.conf
TOOL_READS=1 TOOL_STATUS=0 dl export --format=optuna long >out 2>&1
like "$? $(cat out)" "^7 dl: .*/long-0001: could not be read completely\$" "a tool that reads one line"
dl export --format=optuna --output=sub/both long >out
mkdir elsewhere
cp -r some-0001 elsewhere/long-0001
dl export --format=optuna --output=sub/both elsewhere/long-0001 >out 2>&1
like "$? $(cat out)" '^[1-9].*has another experiment with the name long-0001: name another folder with --output' "another experiment of the same name"
dl export --format=optuna --output=sub/both long >out
is $? 0 "the same one again"
mkdir -m 777 open
dl export --format=optuna --output=open long >out 2>&1
like "$? $(cat out)" '^[1-9].*open: others may write there: chmod go-w' "a folder that others can write to"
DL_PYTHON=$work/none dl export --format=optuna long >out 2>&1
like "$? $(cat out)" '^[1-9]' "no Python"
printf '#!/bin/sh\nkill -9 $$\n' >tool
dl export --format=optuna --output=killed long >out 2>&1
like "$? $(cat out)" '^7 dl: .*tool: killed by signal 9; run dl export --format again to do the rest' "one that is killed"
done_testing
