#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Experiment, run() and the Hydra sweeper.  DL_TEST_PYTHON names another interpreter for packages that Debian's lacks
# (pandas, matplotlib, tqdm, optuna, plotly, scikit-learn, optuna-dashboard, hydra-core, IPython).
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
case $CFLAGS in *sanitize*) skip_all "slow under sanitizers" ;; esac
need_package numpy

tap notebook $python "$here/notebook.py"
is "$($python -c 'import sys, slurmdl; print(*[m for m in ("slurmdl.sweep", "slurmdl.experiment", "pandas") if m in sys.modules])')" \
    "" "import slurmdl in a training script does not load what notebooks need"
mkdir "$work/example" && cd "$work/example" || exit 1
sed 's/max_trials=20/max_trials=3/' "$srcdir/contrib/examples/notebook/tune.py" >tune.py
like "$(timeout 600 $python tune.py 2>&1)" "^.'dropout': [0-9.e-]+, 'lr': [0-9.e-]+, 'width': [0-9]+.$" "the example"
like "$(dl best)" "^to train it again: dl reproduce [^ ]+ [0-9]+$" "dl best prints a one-line command"
like "$(dl show --provenance)" "^command: .*tune.py$" "the origin is the command that was typed"
if [ -z "$DL_TEST_PYTHON" ]; then
    skip "pandas, optuna, Hydra" "DL_TEST_PYTHON is not set"
    done_testing
fi
tap other-notebook "$DL_TEST_PYTHON" "$here/notebook.py"
"$DL_TEST_PYTHON" -c 'import IPython' 2>/dev/null && tap ipython "$DL_TEST_PYTHON" "$here/cells.py"

# ---- Hydra
if ! "$DL_TEST_PYTHON" -c 'import hydra' 2>/dev/null; then
    skip "Hydra" "no hydra-core"
    done_testing
fi
mkdir -p "$work/hydra/conf/opt" && cd "$work/hydra" || exit 1
cp "$here/hydra_app.py" app.py
printf 'defaults: [{opt: sgd}, _self_]\nlr: 0.1\nwidth: 8\nnote: hello\n' >conf/config.yaml
printf 'rate: 1.0\nname: sgd\n' >conf/opt/sgd.yaml
printf 'rate: 2.0\nname: adam\n' >conf/opt/adam.yaml
cat >conf/params.yaml <<'END'
defaults: [config, {override hydra/sweeper: slurmdl}, _self_]
hydra:
  mode: MULTIRUN
  sweep: {dir: by-config}
  sweeper: {local: true, max_trials: 2, params: {lr: "interval(0, 1)", width: "range(1, 9)"}, keys: {max_restarts: 0}}
END
app () { # app ARGUMENT...: run a sweep of two trials
    timeout 600 "$DL_TEST_PYTHON" app.py --multirun hydra/sweeper=slurmdl hydra.sweeper.local=true hydra.sweeper.max_trials=2 "$@" 2>&1
}
app hydra.sweep.dir=out hydra.sweeper.workers=2 'lr=tag(log, interval(1e-4, 0.1))' 'width=range(8, 64, 8)' 'opt=glob(*)' \
    'opt.rate=choice(0.5, 1)' 'note="a b, {c} =[x]"' >app.out
is $? 0 "Hydra: a sweep"
conf=out/app-0001/experiment.conf
like "$(cat $conf)" 'type = "loguniform";' "Hydra: tag(log, interval())"
like "$(xargs <$conf)" 'width = \{ type = int; minval = 8; maxval = 56; step = 8; \}' "Hydra: range() excludes its end"
like "$(cat $conf)" 'vals = \( "adam", "sgd" \)' "Hydra: glob()"
like "$(cat $conf)" 'vals = \( 0.5, 1 \)' "Hydra: choice()"
like "$(cat out/app-0001/trials/0001/a.1/app.log)" "'note': 'a b, \{c\} =\[x\]'" "Hydra: a trial keeps the other overrides"
like "$(cat out/optimization_results.yaml)" '^best_evaluated_result: [0-9]' "Hydra: the best result"
dl show --json out/app-0001 | grep -q '"state": "completed"'
ok $? "Hydra: dl lists the experiment"
is "$(app 'lr=interval(0, 1)' note=bad | grep -v '^\[' | sed -n 1p | sed 's/.*same way: //')" "exit status 1: ValueError: so bad" "Hydra: the reason of a failure"
app hydra.sweep.dir=some hydra.sweeper.searcher=grid hydra.sweeper.max_trials=null +hydra.sweeper.keys.max_restarts=0 'width=8,no' >some.out
is "$? $(sed 's/^.*slurmdl: //' some.out | tail -2 | sed 's/ of 2.*Error.*/ of 2/; s/[0-9.]*: .*/R/')" "0 1 of 2
best result R" "Hydra: what failed, and the best result"
is "$(app note=bad | sed -n 1p)" "slurmdl: no override has a range: use choice(...), range(...) or interval(...)" "Hydra: no range"
timeout 600 "$DL_TEST_PYTHON" app.py --config-name params >params.out 2>&1
is $? 0 "Hydra: ranges and settings in the configuration"
like "$(cat by-config/app-0001/experiment.conf)" 'max_restarts = 0;' "Hydra: further keys"
done_testing
