#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# The store of frozen code next to a group's experiments: dl removes, links and discloses none of the user's other files.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
unset DL_FREEZE DL_DIR
group=$work/group
shared_folder "$group"

# ---- a work tree with a key that only the user can read, and an excluded file
code=$work/code
mkdir "$code"
cat >"$code/c.conf" <<'END'
name = "c"; entrypoint = "sh train.sh"; code = { exclude = ("notes"); };
searcher = { name = "random"; metric = "loss"; max_trials = 1; };
hyperparameters = { x = { type = "float"; minval = 0.0; maxval = 1.0; }; };
END
echo "dl log loss=1" >"$code/train.sh"
for f in key notes; do echo "old $f" >"$code/$f"; done
chown -R "$victim_id:$victim_id" "$code"
victim sh -c "cd '$code' && git init -q . && git add -A && git -c user.name=v -c user.email=v@example.org commit -qm first &&
    for f in key notes train.sh; do echo \"# new \$f\" >>\$f; done && chmod 600 key"
experiment () { # run a new one in the group's folder
    victim sh -c "umask 002; exec timeout 100 dl run --local --dir '$group' '$code/c.conf'" >made 2>&1
}
experiment
is $? 0 "an experiment"
like "$(attacker cat "$group/c-0001/provenance.json")" 'new train.sh' "the group can read what has changed"
is "$(attacker grep -cE 'new (key|notes)' "$group/c-0001/provenance.json")" 0 "but not of files that are not frozen"

# ---- another folder of the user's is renamed to the store's name
mkdir "$group/data"
digest=$(sha256sum <made | cut -c 1-64)
echo data | tee "$group/data/set.csv" >"$group/data/$digest.csv"
chown -R "$victim_id:$victim_id" "$group/data"
attacker sh -c "! rm '$group/data/set.csv' 2>/dev/null && mv '$group/.dl-code' '$group/old' && mv '$group/data' '$group/.dl-code'"
is $? 0 "the attacker cannot remove the files, but can rename the folder"
victim dl rm --dir "$group" --force c-0001 >out 2>&1
is "$(find "$group/.dl-code" -type f | wc -l)" 2 "dl rm removes none of them"

# ---- a link to a folder of the user's
attacker sh -c "mv '$group/.dl-code' '$group/data' 2>/dev/null; ln -s '$victim_home' '$group/.dl-code'"
experiment
is "$? $(find "$victim_home" -maxdepth 1 -type f)" "0 " "dl links nothing into it"

# ---- a small archive that unpacks to very much data
attacker sh -c "mkdir -m 755 '$attacker_home/own' && chmod 755 '$attacker_home'"
attacker sh -c "umask 022; exec timeout 100 dl run --local --dir '$attacker_home/own' '$code/c.conf'" >made 2>&1 ||
    sed 's/^/# /' made
attacker /usr/bin/python3 - "$attacker_home/own/c-0001" <<'END'
import os, subprocess, sys, tarfile
exp = sys.argv[1]
zstd = subprocess.Popen(["zstd", "-q", "-1"], stdin=subprocess.PIPE, stdout=open(exp + "/new", "wb"))
with tarfile.open(fileobj=zstd.stdin, mode="w|") as out:
    for i in range(8):
        info = tarfile.TarInfo("f%d" % i)
        info.size = 70 << 20
        out.addfile(info, open("/dev/zero", "rb"))
zstd.stdin.close()
assert zstd.wait() == 0
os.chmod(exp + "/new", 0o644)
os.rename(exp + "/new", exp + "/code.tar.zst")
END
attacker /usr/bin/python3 "$srcdir/tests/attacks/forge.py" "$attacker_home/own/c-0001" \
    'line["code"] = hashlib.sha256(open(exp + "/code.tar.zst", "rb").read()).hexdigest()'
mine=$(find "$group" -maxdepth 1 -name 'c-0*')
victim timeout 100 dl diff "$mine" "$attacker_home/own/c-0001" >out 2>&1
like "$(cat out)" 'cannot read the frozen code: File too large' "dl diff does not read it to its end"
done_testing
