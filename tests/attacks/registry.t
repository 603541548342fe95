#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Another user's model registry or folder of exports is not used as the user's own, and gives no access to other files.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
unset DL_DIR DL_MODELS
shared_folder "$work/group"
echo secret >"$victim_home/secret"

# ---- a registry next to a group's experiments
entry () { # entry DIGEST: add an entry of the attacker's
    attacker sh -c "mkdir -p '$work/group/models/net' && cat >'$work/group/models/net/version-0001.json'" <<END
{ "model": "net", "number": 1, "checkpoint": { "sha256": "$1", "step": 1 }, "experiment": { "hyperparameters": {} } }
END
}
entry "../../../victim/secret"
like "$(victim dl model ls --dir="$work/group" 2>&1; echo "=$?")" "belongs to user $attacker_id: if you trust that user, name it" "another user's registry"
is "$(cd "$victim_home" && victim dl model export --models="$work/group/models" net "$victim_home/out" 2>&1; echo $?)" \
    "dl: $work/group/models: the entry names no checkpoint
5" "a digest that is a path"
is "$(victim ls "$victim_home")" secret "nothing was written"
digest=$(victim sha256sum "$victim_home/secret" | cut -d' ' -f1)
entry "$digest"
attacker sh -c "mkdir '$work/group/models/.checkpoints' && ln -s '$victim_home/secret' '$work/group/models/.checkpoints/$digest.h5'"
like "$(victim dl model export --models="$work/group/models" net "$victim_home/out" 2>&1; echo "=$?")" "$digest.h5: .*symbolic link" "no link is followed"
attacker rm -r "$work/group/models/net"
attacker ln -s "$victim_home" "$work/group/models/net"
is "$(victim dl model show --models="$work/group/models" net >/dev/null 2>&1; echo $?)" 3 "nor for a model"
attacker rm "$work/group/models/net"

# ---- an entry of the victim's in the group's registry: nobody else can change it
cat >"$work/kept.conf" <<END
name = "kept"; entrypoint = ["$builddir/tests/runtime/writer", "train"];
searcher = { name = "random"; metric = "loss"; max_trials = 1; max_length = 2; };
hyperparameters = { lr = { type = "log"; minval = -3; maxval = 0; }; };
END
victim sh -c "umask 002; timeout 200 dl run --local --dir='$work/group' '$work/kept.conf' && cd '$work/group' &&
    dl model register --models='$work/group/ours' kept best kept" >out 2>&1
is "$? $(tail -n 1 out)" "0 kept/1" "a version is registered"
attacker sh -c "sed 's/\"kept-0001\"/\"evil\"/' '$work/group/ours/kept/version-0001.json' >'$attacker_home/new' &&
    cat '$attacker_home/new' >'$work/group/ours/kept/version-0001.json'" 2>/dev/null
is "$(victim dl model show --models="$work/group/ours" kept 2>&1 | grep -c evil)" 0 "and its description is intact"
is "$(find "$work/group/kept-0001" "$work/group/ours" -type f -user "$victim_id" -perm /022)" "" "nobody else can write to the victim's files"

# ---- the folder of an export, and the URL of a webhook
attacker sh -c "umask 0; mkdir -m 777 '$work/group/board' '$work/group/notes'; echo https://attacker.example/ >'$work/group/url'"
cat >"$work/exp.conf" <<END
name = "exp"; entrypoint = "echo loss=1";
searcher = { name = "random"; metric = "loss"; max_trials = 1; };
hyperparameters = { lr = { type = "float"; minval = 0.0; maxval = 1.0; }; };
metrics = { pattern = "loss={loss}"; };
END
mkdir "$work/own" && chown "$victim_id:$victim_id" "$work/own"
is "$(victim timeout 300 dl run --local --dir="$work/own" "$work/exp.conf" >/dev/null 2>&1; echo $?)" 0 "a sweep"
like "$(victim dl export --dir="$work/own" --format=parquet --output="$work/group/board" exp 2>&1; echo "=$?")" \
    "group/board: belongs to user $attacker_id" "another user's folder is not written to"
printf '#!/bin/sh\nexec cat >/dev/null\n' >"$work/drain"
chmod 755 "$work/drain"
victim sh -c "umask 002; cd '$work/group' && DL_PYTHON='$work/drain' dl export --dir='$work/own' --format=parquet --output=exp.parquet exp" >/dev/null 2>&1
attacker ln -s "$victim_home/secret" "$work/group/exp.parquet/exp.trials.parquet.new" 2>/dev/null
is "$? $(stat -c %A "$work/group/exp.parquet")" "1 drwxr-sr-x" "nobody else can plant links in a new folder, whatever the umask"
victim chmod g+w "$work/group/exp.parquet"
like "$(victim dl export --dir="$work/own" --format=parquet --output="$work/group/exp.parquet" exp 2>&1; echo "=$?")" \
    "exp.parquet: others may write there: chmod go-w" "nor in an existing one"
echo "notify = { webhook = \"$work/group/url\"; };" >>"$work/exp.conf"
like "$(victim dl run --local --dir="$work/own" "$work/exp.conf" 2>&1; echo "=$?")" \
    "group/url: others may read or change it" "another user's URL gets nothing"
done_testing
