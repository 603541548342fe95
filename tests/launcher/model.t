#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root in part
# dl model: a registry of checkpoints in plain files.
. "$srcdir/tests/lib.sh"
unset DL_DIR DL_MODELS

cat >exp.conf <<END
name = "exp"; entrypoint = ["$builddir/tests/runtime/writer", "train"];
searcher = { name = "asha"; metric = "loss"; max_trials = 6; max_length = 9; divisor = 3.0; };
hyperparameters = { lr = { type = "log"; minval = -3; maxval = 0; }; };
resources = { workers = 2; };
reproducibility = { experiment_seed = 5; };
worker = { heartbeat = 1; lease = 30; grace = 5; };
END
runs 0 "a sweep with checkpoints" dl run --local exp.conf
best=$(dl show --trials=1 --columns=trial --csv exp | tail -1)
field () { # field FILE KEY: print the string or number
    sed -n "s/^ *\"$2\": \"*\([^\",]*\)\"*,*\$/\1/p" "$1"
}

dl model register --step=7777 exp 1 net >out 2>&1
is "$? $(ls -d models 2>/dev/null)" "3 " "a failed registration creates no registry"

# ---- register
is "$(dl model ls 2>&1; echo $?)" "dl: ./models: there is no registry; dl model register creates one, --models or DL_MODELS names another folder
3" "no registry"
is "$(dl model register exp "$best" net)" net/1 "register"
is "$(dl model register exp best net)" "net/1 (already registered)" "the same checkpoint again, as the best one"
other=$((best % 6 + 1))
is "$(dl model register exp $other net)" net/2 "another trial"
version=models/net/version-0001.json
digest=$(field $version sha256)
holds "the version names the checkpoint by its digest" [ "$(sha256sum <"models/.checkpoints/$digest.h5")" = "$digest  -" ]
is "$(field $version experiment.conf)" "$(sha256sum <exp-0001/experiment.conf | cut -d' ' -f1)" "and the experiment file"
is "$(field $version trial)" "$best" "and the trial"
dl ckpt ls --json "models/.checkpoints/$digest.h5" >ckpt.json
is "$(field $version step)" "$(field ckpt.json step)" "and the step"
like "$(field $version value)" '^[0-9.e-]+$' "with the metric there"
is "$(dl model register exp 99 net 2>/dev/null; echo $?)" 3 "no such trial"
is "$(dl model register --step=7777 exp 1 net 2>/dev/null; echo $?)" 3 "no such step"

# ---- an experiment whose first log entry has 5 MB, as another user may have planted it
cp -a exp-0001 huge-0001
/usr/bin/python3 - huge-0001 "$srcdir" <<'END'
import json, os, sys
exp, src = sys.argv[1:]
sys.path.insert(0, os.path.join(src, "tests/faults"))
import replay
path = exp + "/log/000000/00000001"
line = json.loads(open(path).read().split("\n")[0])
line["data"] = "x" * 5000000
text = json.dumps(line, separators=(",", ":")) + "\n"
os.unlink(path)
open(path, "w").write(text + '{"xxh64": "%016x"}\n' % replay.xxh64(text.encode()))
END
rm -f huge-0001/log/*.pack
like "$(dl model register huge-0001 best huge 2>&1)" \
    'the entry has more than 4194304 bytes' "an entry that is too long is not created"
is "$(dl model ls >/dev/null 2>&1; echo $?) $(ls -d models/huge 2>/dev/null)" "0 " "and the registry can be listed"
rm -r huge-0001
is "$(cd models/.checkpoints && ls | wc -l) $(cat "models/.checkpoints/$digest.h5" | sha256sum)" "2 $digest  -" "its file is removed, and no other version's"

# ---- the same bytes in two experiments: each version keeps its own copy
cp -a exp-0001 copy-0001
is "$(dl model register copy-0001 "$best" copied)" copied/1 "a trial of a copied experiment"
is "$(dl model rm copied) $(sha256sum <"models/.checkpoints/$digest.h5")" "copied/1 is removed $digest  -" "is removed, without the other's file"
rm -r copy-0001 models/copied
is "$(dl model register exp 1 a/b 2>&1; echo $?)" "dl: 'a/b' is not a valid name: use 1 to 64 letters, digits, '.', '_' and '-', not '.' first
2" "no name"
is "$(dl model rename x 2>/dev/null; echo $?)" 2 "an unknown word"
is "$(dl model show 2>&1; echo $?)" "dl: usage: dl model show NAME[/VERSION|@STAGE]
2" "a missing argument"

# ---- six registrations at once
for i in 1 2 3 4 5 6; do
    dl model register exp $i many >"many.$i" 2>&1 &
done
wait
is "$(cat many.? | sort | tr '\n' ' ')" "many/1 many/2 many/3 many/4 many/5 many/6 " "six at once: a version each"

# ---- promote
is "$(dl model promote net/1 production)" "net/1 is net@production" "promote"
is "$(dl model promote net staging)" "net/2 is net@staging" "without a version: the newest"
is "$(dl model promote net@staging production)" "net/2 is net@production" "the version of a stage"
is "$(dl model show --json net@production | sed -n 's/^  "stages": "\(.*\)".*/\1/p')" "production, staging" "a stage has one version"
is "$(find models/net -name 'stage-*' | wc -l)" 3 "each promotion is a separate entry"
is "$(dl model promote net/9 production 2>/dev/null; echo $?)" 3 "no such version"
is "$(dl model show net@none 2>/dev/null; echo $?)" 3 "no such stage"
like "$(dl model ls net)" "^net +2 +production, staging|^net +2 +staging, production" "ls"
is "$(dl model ls nett 2>&1; echo $?)" "dl: no model 'nett' (dl model ls lists them)
3" "ls of a model that does not exist"
is "$(dl model ls --json | grep -c '"model":')" 8 "ls --json has all"

# ---- note, rm
is "$(dl model note net/1 'first one, 0.9 on test')" "net/1: noted" "note"
dl model note net/1 'of the paper' >/dev/null
like "$(dl model ls net)" '^net +1 .* of the paper$' "the last note counts, in the list"
is "$(dl model show --json net/1 | sed -n 's/^  "note": "\(.*\)".*/\1/p')" "of the paper" "and of one version"
is "$(dl model note net/1 '')$(dl model show net/1 | grep -c paper)" "net/1: note removed0" "an empty note removes it"
is "$(dl model note net/9 x 2>/dev/null; echo $?)" 3 "of no such version"
is "$(dl model rm net/2 2>&1; echo $?)" "dl: net/2 is production, staging: promote another version, or --force removes it
2" "a version with a stage is kept"
kept () { find models/.checkpoints -name "$1*" | wc -l; }
trial=$((other % 6 + 1)) # none of net's versions
file=$(grep -lE "\"trial\": $trial,?\$" models/many/version-*.json)
v=$(field "$file" number)
third=$(field "$file" sha256)
dl model register exp $trial twin >/dev/null
is "$(kept "$third")" 2 "a checkpoint of two models: each has its own name"
is "$(dl model register exp $trial twin) $(kept "$third")" "twin/1 (already registered) 2" "none again for an existing one"
is "$(dl model rm "many/$v") $(kept "$third")" "many/$v is removed 1" "rm removes a version and its checkpoint"
is "$(dl model export twin twin >/dev/null; echo $?)" 0 "but not that of the other model"
is "$(dl model ls many | grep -c '^many ') $(dl model show "many/$v" >/dev/null 2>&1; echo $?)" "5 3" "it is no longer listed"
is "$(dl model register exp $trial many)" many/7 "its number is not used again"
is "$(dl model rm many/7; dl model show many | sed -n 's/^number  *//p')" "many/7 is removed
$((v == 6 ? 5 : 6))" "the newest one is the newest that exists"
is "$(dl model rm many | grep -c removed) $(kept "$third") $(dl model ls many >/dev/null 2>&1; echo $?)" "5 1 3" "a whole model"
dl model promote twin best >/dev/null
is "$(dl model rm --force twin@best) $(kept "$third") $(dl model show twin@best >/dev/null 2>&1; echo $?)" "twin/1 is removed 0 3" "--force"
is "$(dl model rm twin 2>/dev/null; echo $?)" 3 "the removed model does not exist"
echo '[1]' >models/net/version-0003.json
is "$(dl model rm net/3) $(dl model ls net >/dev/null; echo $?)" "net/3 is removed 0" "rm of a damaged entry repairs the list"
rm models/net/version-0003.json models/net/removed-0003.json

# ---- export, after the experiment is gone
dl gc exp >/dev/null 2>&1
dl rm exp-0001 >out 2>&1
is "$? $(ls -d exp-0001 2>/dev/null)" "0 " "the experiment is removed"
is "$(dl model export net/1 first)" "net/1: first, all digests match" "export"
(cd first && sha256sum -c SHA256SUMS) >out 2>&1
is $? 0 "sha256sum agrees"
dl ckpt verify first/model.h5 >/dev/null
is $? 0 "a checkpoint that verifies"
like "$(cat first/hparams.json)" '"lr": [0-9.e-]+' "its hyperparameters"
is "$(field first/manifest.json sha256)" "$digest" "the manifest"
is "$(dl model export net first 2>&1; echo $?)" "dl: first: File exists; name a new folder
2" "an existing folder is kept"
file=models/.checkpoints/$digest.h5
chmod u+w "$file"
printf x | dd of="$file" bs=1 seek=700 conv=notrunc 2>/dev/null
like "$(dl model export net/1 second 2>&1; echo "=$?")" "damaged: its SHA-256 is" "a damaged checkpoint"
is "$(dl model export net/1 second 2>/dev/null; echo $?) $(ls -d second 2>/dev/null)" "5 " "its exit status; nothing is left"
echo '{"model": ' >models/net/version-0003.json
cp models/net/version-0002.json models/net/version-0004.json
like "$(dl model ls 2>&1; echo "=$?")" "version-0003.json: damaged" "a damaged entry"
is "$(dl model ls 2>/dev/null | grep -c '^net ') $(dl model ls >/dev/null 2>&1; echo $?)" "3 5" "does not hide other entries"
sed 's/"time": [0-9.]*/"time": 1e300/' models/net/version-0002.json >models/net/version-0004.json
is "$(dl model ls 2>/dev/null | grep -c '^net ') $(dl model show net/4 | grep -c '^time  *$')" "3 1" "nor does an invalid time"
rm models/net/version-0004.json

# ---- registries of other users
is "$(DL_MODELS=$work/elsewhere dl model ls 2>/dev/null; echo $?)" 3 "DL_MODELS"
mkdir open && chmod 777 open
like "$(dl model ls --models=open 2>&1; echo "=$?")" "open: this registry is world-writable" "a world-writable registry"
rm models/net/version-0003.json
ln -s "$work/first/manifest.json" models/net/version-0003.json
is "$(dl model ls >/dev/null 2>&1; echo $?)" 5 "no link is followed"
if [ "$(id -u)" -eq 0 ]; then
    mkdir -p theirs/models && chown 12345 theirs/models
    like "$(dl model ls --dir=theirs 2>&1; echo "=$?")" "belongs to user 12345" "another user's, unless it is named"
    is "$(dl model ls --models=theirs/models >/dev/null 2>&1; echo $?)" 0 "and named"
else
    skip "another user's registry" "not root"
fi
done_testing
