#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dl best, dl failures, dl compare
. "$srcdir/tests/lib.sh"
python3 -c 'import json' 2>/dev/null || skip_all "no Python"
unset COLUMNS DL_DIR
make=$builddir/tests/launcher/makesweep
python3 -c '
import json, struct
head = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
open("w.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + struct.pack("<2f", 1, 2))'

# a script that saves a checkpoint, and fails if opt is bad
cat >train.sh <<'END2'
[ "$2" = bad ] && { echo "first line"; echo "cannot allocate memory at lr $1"; exit 7; }
if [ -n "${DL_ATTEMPT_DIR:-}" ]; then
    mkdir -p "$DL_ATTEMPT_DIR/ckpt"
    dl ckpt import --step=1 w.safetensors "$DL_ATTEMPT_DIR/ckpt/00000001.h5"
    dl log --step=1 loss="$1"
fi
echo "$DL_SEED $DL_LENGTH $DL_HP_lr $DL_HP_opt $1 $2 $3 $(tr -d "\n" <"$DL_HPARAMS")" >>"said"
END2
cat >real.conf <<'END2'
name = "real"; entrypoint = ["sh", "train.sh", "{lr}", "{opt}", "it's {length}"]; max_restarts = 0; max_failed = 100;
searcher = { name = "random"; metric = "loss"; max_trials = 24; max_length = 1; };
reproducibility = { experiment_seed = 3; };
resources = { workers = 1; };
checkpoint_policy = { save_experiment_best = 1; };
hyperparameters = { lr = { type = "loguniform"; min = 1e-4; max = 1e-1; }; opt = { type = "categorical"; vals = ["good", "fine", "bad"]; }; };
END2
timeout 300 dl run --local real.conf >run.out 2>&1
ok $? "a sweep"

# ---- best
runs 0 "dl best" dl best real
best=$(dl show --json real | json 'd["best_trial"]')
like "$(cat out)" "^best loss [0-9.e-]+: trial $best of real-0001$" "the trial"
like "$(cat out)" '^  lr +[0-9.e-]+$' "its parameters"
like "$(cat out)" "^checkpoint: .*/real-0001/trials/00*$best/a.1/ckpt/00000001.h5$" "its checkpoint"
dl best --json real >best.json
said=$(python3 -c '
import json
d = json.load(open("best.json"))
assert d["metrics"]["loss"] == d["hyperparameters"]["lr"] and d["experiment"] == "real-0001", d
print(d["command"])')
ok $? "--json"
holds "the same command" [ "$(sed -n 's/^to train it again: //p' out)" = "$said" ]
cp said before
(env -u DL_ATTEMPT_DIR sh -c "$said")
is "$(tail -n 1 said | sort)" "$(grep " $(python3 -c 'import json; print(json.load(open("best.json"))["hyperparameters"]["lr"])') " before)" "the command repeats the trial, seed and quotes included"
runs 0 "--export" dl best real --export=out.d
python3 - <<'END2'
import hashlib, json
m = json.load(open("out.d/manifest.json"))
assert sorted(m["files"]) == ["checkpoint.h5", "params.json"], m
for name, f in m["files"].items():
    data = open("out.d/" + name, "rb").read()
    assert len(data) == f["bytes"] and hashlib.sha256(data).hexdigest() == f["sha256"], name
assert json.load(open("out.d/params.json")) == m["hyperparameters"]
END2
ok $? "the manifest has sizes and digests"
like "$(dl ckpt verify out.d/checkpoint.h5)" 'all checksums match' "the checkpoint verifies"
dl best real --export=out.d >out 2>&1
is "$? $(cat out)" "2 dl: --export: out.d already exists: name a new folder" "an existing folder is not written to"
dl best real --export=no/where >out 2>&1
is "$?" 3 "nor is one created below a missing folder"
ckpt=$(sed -n 's/.*"checkpoint": "\(.*\)",/\1/p' best.json)
chmod u+w "$ckpt"
printf 'xxxxxxxx' | dd of="$ckpt" bs=1 seek=$(($(wc -c <"$ckpt") - 8)) conv=notrunc 2>/dev/null
dl best real --export=damaged >out 2>&1
is "$? $(ls -d damaged 2>/dev/null)" "5 " "a damaged checkpoint is not exported, and leaves nothing"
rm -f "$ckpt"
is "$(dl best real | grep ^checkpoint)" "checkpoint: none is kept" "no checkpoint"
trial=${ckpt%/a.*}
echo 1 >"$trial/last.pt"
is "$(dl best real | grep ^checkpoint)" "checkpoint: the files of its program are in $trial" "a file in {trial_dir}"
rm "$trial/last.pt"
echo 1 >"${ckpt%/ckpt/*}/last.pt"
is "$(dl best real | grep ^checkpoint)" "checkpoint: the files of its program are in ${ckpt%/ckpt/*}" "a file of the program"
dl ckpt import --step=2 w.safetensors "${ckpt%1.h5}2.h5"
is "$(dl best real | grep ^checkpoint)" "checkpoint: none was kept at the step of this value; the newest is ${ckpt%1.h5}2.h5" "one of another step"
dl best missing >out 2>&1
is "$?" 3 "no such experiment"

# ---- failures
runs 0 "dl failures" dl failures real
like "$(cat out)" '^real-0001: [0-9]+ of 24 trials failed; [0-9]+ attempts failed' "the number of failures"
is "$(grep -c '^ *[0-9]*  .*cannot allocate memory at lr #$' out)" 1 "a cause, whatever the numbers in it"
like "$(cat out)" '^    \| first line$' "the end of a log"
like "$(cat out)" '^       opt = bad: 100 % of these trials failed, 0 % of the others$' "the value that explains it"
is "$(dl failures -n 0 real | grep -c '|')" 0 "-n 0: no log"
dl failures --json real | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d[0]["attempts"] == len(d[0]["trials"]) and "opt = bad" in d[0]["where"] and d[0]["log"].endswith("\n") is False, d'
ok $? "--json"

# ---- compare
make_experiment () { # make_experiment NAME SEARCHER TRIALS
    printf 'name = "%s"; entrypoint = "true"; searcher = { metric = "loss"; name = "%s"; max_trials = %s; max_length = 9; };
hyperparameters = { lr = { type = "log"; minval = -5; maxval = -1; }; };\nresources = { workers = 4; };\n' "$1" "$2" "$3" >"$1.conf"
    "$make" . "$1.conf" 2 >out 2>&1
}
make_experiment rungs asha 40
make_experiment rand random 30
runs 0 "dl compare" dl compare rungs rand
like "$(cat out)" '^rungs-0001 +0\.[0-9]+ +[0-9]+ +[0-9.]+ +[0-9.]+ asha +completed +40' "an experiment"
like "$(cat out)" '^searcher.name +asha +random$' "a different setting"
is "$(grep -c '^lr ' out)" 0 "no setting that is the same"
dl compare --json rungs rand | python3 -c '
import json, sys
d = json.load(sys.stdin)
a, b = d["experiments"]
assert d["budget_seconds"] == min(a["trial_seconds"], b["trial_seconds"]), d
for e in (a, b):
    assert e["best"] <= e["at_budget"] <= e["area"], e
assert {"key": "searcher.name", "values": ["asha", "random"]} in d["settings"], d'
ok $? "--json"
is "$(COLUMNS=50 dl compare rungs rand | sed -n 1,3p | awk 'length > 50')" "" "it fits the window"
sed 's/"loss"/"accuracy"/; s/"rand"/"other"/' rand.conf >other.conf
"$make" . other.conf 2 >out 2>&1
dl compare rungs other >out 2>&1
is "$? $(grep -c 'optimises loss, but .*other-0001 accuracy: they cannot be compared' out)" "2 1" "other metrics are not compared"
dl compare rungs >out 2>&1
is "$?" 2 "one experiment is too few"

# ---- an experiment without results
printf 'name = "none"; entrypoint = "true"; searcher = { metric = "loss"; max_trials = 2; name = "random"; };\nhyperparameters = { x = 1; };\n' >none.conf
dl run --local --no-workers none.conf >out 2>&1
dl best none >out 2>&1
is "$? $(cat out)" "3 dl: none-0001: no trial has a finite value of loss yet" "dl best without a result"
is "$(dl failures none)" "none-0001: no attempt of its 0 trials failed" "dl failures without a trial"
dl compare none rand >out 2>&1
is "$? $(grep -c '^none-0001 *-' out)" "0 1" "dl compare without a result"
done_testing
