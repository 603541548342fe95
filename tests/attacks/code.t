#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Frozen code of an experiment that a group shares: no other member's code runs, and nothing is unpacked elsewhere.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/groups.sh"
unset DL_FREEZE

# ---- an experiment with frozen code
mkdir code
cp s.conf code/c.conf
sed -i 's|^name.*|name = "c";|; s|^entrypoint.*|entrypoint = "sh train.sh";|' code/c.conf
echo "dl log loss=1" >code/train.sh
chmod -R go+rX code
victim timeout 100 dl run --local --dir "$group" code/c.conf >made 2>&1 || bail_out "no experiment" made
state=$victim_home/.local/state/slurm-dl
copy=$(find "$state" -name train.sh)
like "$copy" '/code/.*/code/train.sh$' "nobody else can write where the copy is"
is "$(find "$state" -maxdepth 2 -name code -printf '%m %U')" "700 $victim_id" "its mode and owner are private"
like "$(grep '^code' "$(dirname "${copy%%/code/*}/x")/pin")" "^code [0-9a-f]{64}$" "the record has the digest"
cp -a "$group/c-0001" saved

again () { # restore the experiment, and remove the unpacked copy of its code
    rm -rf "$group/c-0001" "${copy%%/code/*}/code" "$group/ran" out
    cp -a saved "$group/c-0001"
}

# ---- another archive, which is valid as a tar file
plant () { # plant PYTHON-LINES: replace the experiment's archive by one of the attacker's
    cat >plant.py <<PY
import io, sys, tarfile
out = tarfile.open(sys.argv[1], "w")
def add(name, text=None, link=None):
    info = tarfile.TarInfo(name)
    if link:
        info.type, info.linkname = tarfile.SYMTYPE, link
        out.addfile(info)
    else:
        info.size = len(text)
        out.addfile(info, io.BytesIO(text))
evil = b"touch $group/ran\\n"
$1
out.close()
PY
    chmod 644 plant.py
    attacker sh -c "umask 0; /usr/bin/python3 '$work/plant.py' /tmp/planted.$$ && mv -f /tmp/planted.$$ '$group/c-0001/code.tar.zst'"
}
is_refused () { # is_refused NAME STATUS PATTERN [EXPERIMENT]: check that dl continue fails, and that nothing runs
    victim timeout 100 dl continue --local --trials=3 "$group/${4:-c-0001}" >out 2>&1 </dev/null
    is $? "$2" "$1 is refused"
    like "$(cat out)" "$3" "$1: one line says why"
    [ ! -e "$group/ran" ] && [ ! -e "$victim_home/evil" ]
    ok $? "$1: nothing of it remains"
}
again
plant 'add("train.sh", evil)'
is_refused "another archive" 5 'code.tar.zst: this is not the code that was frozen; refusing to run it'
again
attacker sh -c "umask 0; ln -s /etc/passwd '$group/c-0001/l' && mv -f '$group/c-0001/l' '$group/c-0001/code.tar.zst'"
is_refused "a link" 5 'code.tar.zst'

# ---- no archive
again
attacker rm -f "$group/c-0001/code.tar.zst"
victim timeout 100 dl continue --local --trials=3 "$group/c-0001" >out 2>&1 </dev/null
is "$?" 0 "code that a member has removed is found beside the experiment"
again
attacker sh -c "rm -f '$group/c-0001/code.tar.zst'; mv '$group/.dl-code' '$group/kept'"
is_refused "code that is gone" 3 "^dl: $group/c-0001/code.tar.zst is missing, .*restore the file, or run the current code"
mv "$group/kept" "$group/.dl-code"

# ---- a forged log with the digest of another archive
again
plant 'add("train.sh", evil)'
digest='line["code"] = hashlib.sha256(open(exp + "/code.tar.zst", "rb").read()).hexdigest()'
forge () { # make the log name the archive that is there
    attacker /usr/bin/python3 "$srcdir/tests/attacks/forge.py" "$group/c-0001" "$digest" || bail_out "cannot change the log"
}
forge
is_refused "another log" 2 'what its trials run as you has changed since you last started it'

# ---- a planted folder "code" in the experiment
again
attacker sh -c "umask 0; mkdir -p '$group/c-0001/code/w' && echo 'touch $group/ran; dl log loss=1' >'$group/c-0001/code/w/train.sh'"
victim timeout 100 dl continue --local --trials=3 "$group/c-0001" >out 2>&1 </dev/null
is "$? $(ls "$group/ran" 2>/dev/null)" "0 " "dl does not use a planted copy"

# ---- a folder whose name contains lines of the record, and code that is not frozen
again
victim mkdir "$group/src"
cp code/* "$group/src"
victim timeout 100 dl run --local --dir "$group" "$group/src/c.conf" >out 2>&1
attacker /usr/bin/python3 - "$group/c-0002" "$group" "$srcdir" <<'PY'
import json, os, subprocess, sys
exp, group, src = sys.argv[1:]
with open(exp + "/log/000000/00000001") as f:
    line = json.loads(f.readline())
folder = line["dir"] + "\ncode " + line["code"] + "\nroot " + line["root"]
os.makedirs(folder)
with open(folder + "/train.sh", "w") as f:
    f.write("touch '" + group + "/ran'; dl log loss=1\n")
subprocess.check_call([sys.executable, src + "/tests/attacks/forge.py", exp,
                       'line["dir"] = %r; del line["code"], line["root"]' % folder])
PY
is_refused "a folder that says what the record does" 2 'what its trials run as you has changed since you last started it' c-0002

# ---- paths that lead out of the archive's folder: even a trusted archive unpacks nowhere else
for lines in 'add("../../../../../evil", evil)' "add(\"$victim_home/evil\", evil)" \
    "add(\"l\", link=\"$victim_home\"); add(\"l/evil\", evil)" 'add("train.sh/../../evil", evil)'; do
    again
    plant "$lines"
    attacker chmod 666 "$group/c-0001/code.tar.zst"
    forge
    ! victim timeout 100 dl continue --trust --local --trials=3 "$group/c-0001" >out 2>&1 </dev/null && [ -z "$(find "$work" /tmp -maxdepth 4 -name evil -newer plant.py 2>/dev/null)" ]
    ok $? "$lines"
    like "$(cat out)" 'cannot unpack the frozen code' "$lines: dl tried"
    holds "$lines: nothing is left behind" [ -z "$(find "$state" -name train.sh -newer plant.py)$(find "$group/c-0001" -name '.code*')" ]
done

again
for e in c-0001 c-0002; do victim dl rm --dir "$group" --force $e 2>&1 | sed "s/^/# /"; done
is "$(find "$state" -name train.sh)" "" "dl rm removes the copy even if the log no longer names the code"
done_testing
