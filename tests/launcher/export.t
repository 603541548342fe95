#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl export, other programs that read results.h5, dl gc.
. "$srcdir/tests/lib.sh"

pythons=
for p in ${DL_TEST_PYTHONS:-/usr/bin/python3}; do
    "$p" -c 'import h5py' 2>/dev/null && pythons="$pythons $p"
done

conf () { # conf NAME SEARCHER-LINES ENTRYPOINT POLICY
    cat >"$1.conf" <<END
name = "$1"; entrypoint = $3;
searcher = { metric = "loss"; $2 };
hyperparameters = {
    lr = { type = "log"; minval = -3; maxval = 0; };
    kind = { type = "categorical"; vals = ("a,b", "c\"d", "e"); };
    net = { width = { type = "int"; minval = 1; maxval = 9; when = { kind = "e"; }; }; };
    fixed = 7;
};
resources = { workers = 2; };
checkpoint_policy = { $4 };
reproducibility = { experiment_seed = 5; };
worker = { heartbeat = 1; lease = 30; grace = 5; };
END
}

kept () { # kept DIR: print its checkpoints
    find "$1" -path '*/ckpt/*' | sort | tr '\n' ' '
}

# ---- a search with checkpoints, exported in each format
conf asha 'name = "asha"; max_trials = 12; max_length = 9; divisor = 3.0;' "[\"$builddir/tests/runtime/writer\", \"train\"]" ''
runs 0 "asha with checkpoints" dl run --local asha.conf
dl export asha >asha.csv
is $? 0 "export"
is "$(head -1 asha.csv)" "trial,state,length,metric,best,best_length,seconds,attempts,fails,begin_time,end_time,host,gpus,why,hp.fixed,hp.kind,hp.lr,hp.net.width,metric.lr" "its first line"
is "$(wc -l <asha.csv)" 13 "one line per trial"
like "$(cat asha.csv)" ',"c""d",([^,]+),,\1$' "quoted, and empty for inactive parameters"
dl export --format=json --output=asha.json asha
is $? 0 "export --format=json --output"
dl export --format=h5 --output=asha.h5 asha
is $? 0 "export --format=h5"
for p in $pythons; do
    out=$("$p" "$srcdir/tests/launcher/results.py" check asha.h5 asha.csv asha.json 2>&1)
    ok $? "csv, json and h5 agree: $p"
    echo "$out" | sed 's/^/# /'
done
sed -n '/^    import pandas/,/^$/p' "$srcdir/doc/formats.md" | sed 's/^    //; s/"results.h5"/"asha.h5"/' >read.py
echo 'print(len(trials), len(hparams), metrics.columns.tolist(), sorted(set(metrics["name"])))' >>read.py
for p in $pythons; do
    "$p" -c 'import pandas' 2>/dev/null || continue
    is "$("$p" read.py 2>&1)" "12 12 ['trial', 'step', 'time', 'value', 'attempt', 'name'] ['loss', 'lr']" "the reader of formats.md: $p"
done
[ -n "$pythons" ] || skip "reading results.h5" "no Python with h5py (python3-h5py)"

# ---- with more than 10,000 trials, dl samples only 256 of them for metrics besides the optimised one
cat >many.conf <<'END'
name = "many"; entrypoint = "true"; hyperparameters = { x = { type = "float"; minval = 0; maxval = 1; }; };
searcher = { name = "random"; metric = "loss"; max_trials = 10001; max_length = 1; };
END
"$builddir/tests/launcher/makesweep" . many.conf >out 2>&1
ok $? "a search of 10,001 trials is made"
log_in () { # log_in TRIAL: give it metrics with lr
    mkdir -p "many-0001/trials/$1/a.1" && cp "$(ls asha-0001/trials/0001/a.*/metrics.h5 | tail -n 1)" "many-0001/trials/$1/a.1"
}
last_column () { dl export many | sed -n '1s/.*,//p'; }
log_in 0002
is "$(last_column)" hp.x "by default they are hidden"
log_in 10001
is "$(last_column)" metric.lr "on request they are printed"
is "$(dl export many | grep -c ",[-0-9.e]*[0-9]$")" 2 "all of them"
rm -rf many-0001

# ---- output files and mistakes
ln -s asha.csv link.csv
echo old >asha.csv
dl export --output=link.csv asha
[ -h link.csv ] && [ "$(wc -l <asha.csv)" -eq 13 ]
ok $? "a symbolic link is kept"
is "$(dl export --output=/dev/stdout asha | wc -l)" 13 "a device is written into"
refused 3 "^dl: .*none/asha.csv: cannot write: No such file or directory$" "a folder that does not exist" dl export --output=none/asha.csv asha
refused 2 "^dl: --format=h5 needs --output=FILE, a plain file$" "h5 needs a file" dl export --format=h5 asha
refused 2 "^dl: --follow with --format=h5 needs --output=FILE$" "--follow needs one, too" dl export --follow --format=h5 asha
refused 2 "^dl: --safe-csv is for --format=csv, not json$" "an option for spreadsheets only" dl export --safe-csv --format=json asha
refused 2 "'xml' is not one of csv, json, h5, tensorboard" "an unknown format" dl export --format=xml asha
if [ -w /dev/full ]; then
    dl export asha >/dev/full 2>/dev/null
    is $? 7 "a full disk under stdout"
    dl export --output=/dev/full asha 2>/dev/null
    is $? 7 "a full disk"
fi
is "$(find . -name '.*[0-9a-f]*' ! -name .gitignore -type f | wc -l)" 0 "no temporary file is left"

# ---- gc: a finished experiment keeps the best and the latest checkpoint of each trial
is "$(for t in asha-0001/trials/*; do find "$t" -path '*/ckpt/*' | wc -l; done | sort -u | tr '\n' ' ')" "1 2 " "one or two of each trial are kept"
is "$(dl gc asha | tail -1 | cut -d' ' -f1-3)" "deleted 0 files," "gc has nothing to do"
grep -v checkpoint_policy asha-0001/experiment.conf >asha.conf
echo 'checkpoint_policy = { save_trial_best = 1; save_trial_latest = 0; };' >>asha.conf
cp asha.conf asha-0001/experiment.conf
before=$(kept asha-0001)
total=$(echo "$before" | wc -w)
out=$(dl gc --dry-run asha)
is $? 0 "gc --dry-run"
is "$(kept asha-0001)" "$before" "removes nothing"
would=$(echo "$out" | grep -c '^would delete .*\.h5 (')
[ "$would" -gt 0 ] && [ "$would" -lt "$total" ]
ok $? "it would remove $would of $total"
out=$(dl gc asha)
is $? 0 "gc"
like "$(echo "$out" | tail -1)" "^deleted $would files, [0-9]+ bytes; $((total - would)) files, [0-9]+ bytes stay\$" "prints what it did"
is "$(kept asha-0001 | wc -w)" $((total - would)) "and did it"
is "$(for t in asha-0001/trials/*; do [ "$(find "$t" -path '*/ckpt/*' | wc -l)" = 1 ] || echo "$t"; done | grep -v "/$(printf %04d "$(dl best --json asha | grep -o '"trial": *[0-9]*' | grep -o '[0-9]*$' | head -1)")\$")" "" \
    "it keeps each trial's best, and the one with which the best trial is compared"
is "$(dl gc asha | tail -1 | cut -d' ' -f1-3)" "deleted 0 files," "a second gc has nothing to do"
conf none 'name = "random"; max_trials = 3; max_length = 2;' "[\"$builddir/tests/runtime/writer\", \"train\"]" \
    'save_trial_best = 0; save_trial_latest = 0;'
runs 0 "a search that keeps nothing" dl run --local none.conf
is "$(kept none-0001)" "" "nothing is kept"
is "$(find none-0001 -name ckpt)" "" "nor is an empty folder"
like "$(conf bad 'name = "random"; max_trials = 1;' '"x"' 'save_trial_latst = 1;' && dl run --dry-run bad.conf 2>&1)" \
    "unknown key 'checkpoint_policy.save_trial_latst'; did you mean 'checkpoint_policy.save_trial_latest'" "a mistyped key"

# ---- a growing experiment: readers see only complete files, and gc refuses to run beside workers
conf grow 'name = "random"; max_trials = 24;' "\"sleep 0.5; until [ {trial} -lt 3 ] || [ -e $PWD/grow.h5.seen ]; do sleep 0.1; done; dl log loss={lr}\"" ''
timeout 300 dl run --local grow.conf >out 2>&1 &
run=$!
holds "exported while it runs" wait_for 300 dl export --format=h5 --output=grow.h5 grow
dl gc grow >gc.out 2>&1
is $? 9 "gc while workers live: status"
like "$(cat gc.out)" 'workers are running' "gc while workers live"
dl gc --dry-run grow >/dev/null
is $? 0 "gc --dry-run while workers live"
(while [ ! -e over ]; do dl export --format=h5 --output=grow.h5 grow || echo >wrong; done) &
writer=$!
states=2
times=$(often 40 200)
for p in $pythons; do
    out=$(timeout 300 "$p" "$srcdir/tests/launcher/results.py" watch grow.h5 "$times" $states 2>&1)
    ok $? "a reader opens it $times times while it is rewritten: $p"
    echo "$out" | sed 's/^/# /'
    states=1 # the search may be over already
done
: >over
wait $writer
holds "no writer failed" [ ! -e wrong ]
wait $run
is $? 0 "the search ends"
done_testing
