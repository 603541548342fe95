#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl export for other tools: each tool reads exactly what was logged, even if the export was killed at any instant.
# DL_TEST_PYTHON names an interpreter that has the tools.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy
preload_sanitizers && skip_all "sanitizers"
tools=${DL_TEST_PYTHON:-$python}
export DL_PYTHON="$tools"

cat >train.py <<'END'
import sys, time
import slurmdl

with slurmdl.init() as run:
    run.restore()
    for step in range(1, run.length + 1):
        run.log("loss", run.hp["lr"] + 1 / step, step)
        run.log("odd <&>\"'/\u00fc% \\", 2 * step, step)
        run.log("none", float("nan"), step)
        run.save(step)
        time.sleep(float(sys.argv[1]))
END

sweep () { # sweep NAME SECONDS
    cat >"$1.conf" <<END
name = "$1"; entrypoint = ["$python", "$work/train.py", "$2"];
searcher = { name = "asha"; metric = "loss"; max_trials = 6; max_length = 9; divisor = 3.0; };
hyperparameters = {
    lr = { type = "log"; minval = -3; maxval = 0; };
    kind = { type = "categorical"; vals = ("a,b", "c\"d", 3); };
    net = { width = { type = "int"; minval = 1; maxval = 9; when = { kind = "a,b"; }; }; };
    fixed = 7;
};
resources = { workers = 2; };
reproducibility = { experiment_seed = 5; };
worker = { heartbeat = 1; lease = 30; grace = 5; };
END
    timeout 300 dl run --local "$1.conf" >"$1.out" 2>&1
}

has_tool () { # has_tool FORMAT
    package=$1
    [ "$1" = parquet ] && package=pyarrow
    (python=$tools && has numpy "$package" 2>/dev/null)
}

same () { # same FORMAT FOLDER EXPERIMENT
    $tools "$here/exported.py" "$@" 2>&1 | sed -n '/^same/p; /^differs/,$p'
}

# ---- export a finished experiment twice
sweep ended 0
is $? 0 "a sweep"
for format in tensorboard wandb mlflow optuna parquet; do
    if ! has_tool $format; then
        skip "$format" "no $format for $tools (DL_TEST_PYTHON)"
        continue
    fi
    timeout 300 dl export --format=$format --output=all ended >out 2>&1
    is "$? $(cat out)" "0 all" "$format: exported"
    like "$(same $format all ended-0001)" "^same: [0-9]+ rows" "$format: the tool reads what was logged"
    timeout 300 dl export --format=$format --output=all ended >out 2>&1
    is "$? $(cat out)" "0 all" "$format: exported again"
    like "$(same $format all ended-0001)" "^same: [0-9]+ rows" "$format: a second export adds no row"
done

# ---- export a running experiment, and kill the export
killed () { # killed FORMAT SECONDS: kill the whole export at a random instant of its first SECONDS, again and again
    kills=0
    while [ $kills -lt "$(often 3 8)" ] || kill -0 $sweep 2>/dev/null; do
        setsid dl export --format="$1" --follow --seconds=0.2 --output=live live >/dev/null 2>&1 &
        export=$!
        sleep "$($python -c 'import random, sys; print(random.uniform(0.3, 1) * float(sys.argv[1]))' "$2")"
        kill -KILL -$export 2>/dev/null
        wait $export 2>/dev/null
        kills=$((kills + 1))
    done
}

# seconds that each tool takes to start and to write some rows
starts='tensorboard 1.5 optuna 2.5 mlflow 7 wandb 3'
seconds () {
    echo "$starts" | sed "s/.*$1 \([^ ]*\).*/\1/"
}

for format in tensorboard optuna mlflow wandb; do
    has_tool $format || continue
    rm -rf live live-0001
    sweep live 0.3 &
    sweep=$!
    wait_for 60 test -d live-0001/trials/0001
    killed $format "$(seconds $format)"
    wait $sweep
    is $? 0 "$format: a sweep under an export that is killed"
    timeout 300 dl export --format=$format --follow --output=live live >out 2>&1
    is "$? $(cat out)" "0 live" "$format: the next export is complete"
    like "$(same $format live live-0001)" "^same: [0-9]+ rows" "$format: no row is lost or duplicated"
done

# ---- --follow with csv
sweep csv 0.1 &
wait_for 60 test -d csv-0001/trials/0001
timeout 300 dl export --follow --seconds=0.2 --output=follow.csv csv
is $? 0 "--follow --format=csv"
wait
dl export csv >last.csv
holds "--follow: the last file has all rows" cmp -s follow.csv last.csv
is "$(dl export --follow csv 2>&1; echo $?)" "dl: --follow with --format=csv needs --output=FILE
2" "--follow needs a file"

# ---- errors
program none <<'END'
exec /usr/bin/env -u PYTHONPATH python3 -S -E "$@"
END
like "$(DL_PYTHON=./none dl export --format=optuna --output=bad ended 2>&1; echo "=$?")" \
    "dl: .*slurmdl.*: install the Python package of slurm-dl" "no package slurmdl"
is "$(DL_PYTHON=./none dl export --format=optuna --output=bad ended >/dev/null 2>&1; echo $?)" 3 "its exit status"
mkdir hidden
for package in tensorboard pyarrow; do
    echo "raise ImportError('hidden')" >hidden/$package.py
done
like "$(PYTHONPATH=$work/hidden:$PYTHONPATH DL_PYTHON=$python dl export --format=tensorboard --output=bad ended 2>&1; echo "=$?")" \
    "dl: --format=tensorboard needs tensorboard .hidden.: .* -m pip install tensorboard" "no tensorboard"
is "$(PYTHONPATH=$work/hidden:$PYTHONPATH DL_PYTHON=$python dl export --format=parquet --output=bad ended >/dev/null 2>&1; echo $?)" 3 "without pyarrow: exit status"
is "$(DL_PYTHON=$work/absent dl export --format=optuna ended >/dev/null 2>&1; echo $?)" 3 "without Python"
[ ! -e bad ] && [ ! -e ended-0001.optuna ]
ok $? "a failure leaves no folder"
mkdir other
mv live.conf other 2>/dev/null || cp ended.conf other/live.conf
sed 's/"live"/"ended"/; s/"0.3"/"0"/' other/live.conf >other/ended.conf
(cd other && timeout 300 dl run --local ended.conf >/dev/null 2>&1)
mkdir bad2
dl export --format=parquet --output=bad2 ended >/dev/null 2>&1
like "$(dl export --format=parquet --output=bad2 other/ended-0001 2>&1; echo "=$?")" \
    "has another experiment with the name ended-0001: name another folder" "two experiments of one name"
mkdir open && chmod 777 open
like "$(dl export --format=parquet --output=open ended 2>&1; echo "=$?")" "open: others may write there" "a world-writable folder"
mkdir trap
echo 'open("executed", "w")' >trap/slurmdl.py
cp trap/slurmdl.py trap/json.py
(cd trap && dl export --format=parquet --output=out ../ended-0001 >/dev/null 2>&1)
holds "no module is imported from the current folder" [ ! -e trap/executed ]
done_testing
