#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# An attacker who may rename files in the group's folder replaces a pinned experiment, or parts of it; dl runs nothing of it.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/groups.sh"
forge=$srcdir/tests/attacks/forge.py
state=$victim_home/.local/state/slurm-dl
CALLS=$victim_home/calls
export CALLS
mkdir bin
for name in sbatch scontrol squeue; do
    printf '#!/bin/sh\necho "%s $*" >>"$CALLS"\n[ %s != scontrol ] || exit 1\n[ %s != sbatch ] || echo 77\n' $name $name $name >bin/$name
done
chmod 755 bin bin/*
PATH=$work/bin:$PATH

# the attacker's script: the first entry of a forged log names its folder, or a forged experiment.conf runs it
mkdir evil
chmod 777 evil
printf '#!/bin/sh\nid -u >%s\necho loss=1\n' "$group/ran" >evil/train.sh
chmod 755 evil/train.sh
sed 's|^entrypoint.*|entrypoint = "sh ./train.sh; dl log loss=1";|' s.conf >v.conf
mkdir good
printf '#!/bin/sh\ntrue\n' >good/train.sh
mv v.conf good
chmod -R go+rX good

made () { # made NAME [VARIABLE=VALUE]: make an experiment of the victim's; sets $e to its folder
    rm -rf "$group"/[a-z]*-0001 "$group"/[a-z]*.old "$group/ran" "$state"
    victim env "${2:-DL_FREEZE=0}" timeout 100 dl run --local --dir "$group" --set "name=\"$1\"" good/v.conf >made 2>&1 ||
        bail_out "no experiment $1" made
    e=$group/$1-0001
}
new_log () { # new_log STATEMENT: replace the log and the trials; the statement changes the log's first entry
    attacker sh -c "umask 0; cd '$e' && mv log log.old && mv trials trials.old && mkdir -p log/000000 trials &&
        cp log.old/000000/00000001 log/000000 && exec /usr/bin/python3 '$forge' '$e' \"line['dir'] = '$work/evil'; $1\"" ||
        bail_out "the log cannot be replaced"
}
new_conf () { # replace experiment.conf by one that runs the attacker's script
    attacker sh -c "umask 0; cd '$e' && sed 's|^entrypoint.*|entrypoint = \"sh $work/evil/train.sh; dl log loss=1\";|' experiment.conf >c &&
        mv -f c experiment.conf && grep -q evil experiment.conf" || bail_out "experiment.conf cannot be replaced"
}
digest () { # digest FILE
    sha256sum <"$1" | cut -c 1-64
}
nothing_runs () { # nothing_runs NAME PATTERN COMMAND...: check that it is refused with a message and status 2 or 5
    name=$1
    pattern=$2
    shift 2
    rm -f "$group/ran" "$CALLS"
    "$@" >out 2>&1 </dev/null
    status=$?
    like "$status $(head -1 out)" "^(2|5) dl: .*($pattern)" "$name is refused, in one line"
    [ ! -e "$group/ran" ] && ! grep -q sbatch "$CALLS" 2>/dev/null
    ok $? "$name: nothing of it runs"
}
changed="what its trials run as you has changed since you last started it"
first="its trials would run, as you, what experiment.conf of"
unfit="the value of .(id|digest|root). is not one that dl writes"

# ---- members missing from the log

made without
new_log "del line['id'], line['digest']"
for command in resume continue 'retry' 'reproduce' 'fork' worker 'requeue'; do
    set -- dl "$command"
    case $command in worker | requeue) ;; reproduce) set -- "$@" "$e" ;; *) set -- "$@" --local "$e" ;; esac
    case $command in worker) set -- "$@" -- "$e" ;; requeue) set -- "$@" -- "$e" 75 ;; esac
    nothing_runs "$command, a log without id and digest" "$unfit" \
        victim env SLURM_ARRAY_JOB_ID=4 SLURM_ARRAY_TASK_ID=1 timeout 100 "$@"
done
made without
victim chmod +t "$group"
new_log "pass"
attacker "$putevent" "$e" '{"op": "end", "state": "stopped"}' || bail_out "the log cannot be ended"
attacker /usr/bin/python3 "$forge" "$e" "del line['id'], line['digest']" || bail_out "the log cannot be changed"
nothing_runs "an ended one without them, in a sticky folder" "$unfit" victim timeout 100 dl continue --local "$e"
victim chmod -t "$group"
for key in id digest; do
    made only$key
    new_log "del line['$key']"
    nothing_runs "a log without $key" "$unfit" victim timeout 100 dl resume --local "$e"
done
made nocode DL_FREEZE=1
grep -q '"code"' "$e/log/000000/00000001" || bail_out "the code was not frozen" made
new_log "del line['code'], line['root']"
nothing_runs "a log without the code that was frozen" "$changed" victim timeout 100 dl resume --local "$e"
made noroot
new_log "line['code'] = '0' * 64"
nothing_runs "code without its folder" "$unfit" victim timeout 100 dl resume --local "$e"

# ---- forged members of the log

made ownid
new_conf
new_log "line['id'] = '0123456789abcdef' * 2; line['digest'] = '$(digest "$e/experiment.conf")'"
for command in resume continue retry fork; do
    nothing_runs "$command of a log with another id, digest and experiment.conf" "$changed" victim timeout 100 dl $command --local "$e"
done
like "$(cat out)" "^dl:   id: \"[0-9a-f]{32}\" -> \"0123" "one line says that the id differs"
nothing_runs "dl worker by hand" "$changed" victim timeout 100 dl worker -- "$e"

made theirid
new_conf
new_log "line['digest'] = '$(digest "$e/experiment.conf")'"
nothing_runs "the victim's id with another digest" "$changed" victim timeout 100 dl resume --local "$e"

made elsewhere
new_log "pass"
nothing_runs "another folder, all else as it was" "$changed" victim timeout 100 dl resume --local "$e"

made owner
attacker sh -c "umask 0; cd '$e' && cp -r log l && mv log log.old && mv l log"
nothing_runs "the same log as another user's files" "$changed" victim timeout 100 dl continue --local "$e"
like "$(cat out)" "^dl:   log_owner: \"$victim_id\" -> \"$attacker_id\"" "one line says who owns it"

# ---- another folder in place of the experiment's

made whole
attacker sh -c "umask 0; cd '$group' && mv whole-0001 whole.old && cp -r whole.old whole-0001"
new_conf
new_log "line['digest'] = '$(digest "$e/experiment.conf")'"
nothing_runs "a copy under its name" "$changed" victim timeout 100 dl resume --local "$e"
made fresh
attacker sh -c "umask 0; cd '$group' && mv fresh-0001 fresh.old && cp -r fresh.old fresh-0001"
new_conf
new_log "line['id'] = 'ab' * 16; line['digest'] = '$(digest "$e/experiment.conf")'"
nothing_runs "another experiment under its name" "$changed" victim timeout 100 dl resume --local "$e"
victim rm -rf "$state"
nothing_runs "and without a record" "$first" victim timeout 100 dl resume --local "$e"

made moved
attacker sh -c "umask 0; cd '$group' && mv moved-0001 taken-0001"
e=$group/taken-0001
new_conf
new_log "line['id'] = 'cd' * 16; line['digest'] = '$(digest "$e/experiment.conf")'"
nothing_runs "its folder under another name, with another log" "$changed" victim timeout 100 dl resume --local "$e"

# another experiment of the victim's
made one
DL_FREEZE=0 victim timeout 100 dl run --local --dir "$group" --set 'name="two"' --set "entrypoint=\"id -u >$group/ran; dl log loss=1\"" s.conf >made 2>&1
is "$(cat "$group/ran")" "$victim_id" "the victim has another experiment, which leaves a file"
attacker sh -c "cd '$group' && mv one-0001 one.old && mv two-0001 one-0001"
nothing_runs "another one of the victim's under its name" "$changed" victim timeout 100 dl continue --trials=3 --local "$e"
attacker sh -c "cd '$group' && mv one-0001 two-0001 && mv one.old one-0001 && cd one-0001 && mv log log.old && mkdir -p log/000000 &&
    mv experiment.conf conf.old"
# fs.protected_hardlinks only permits hard links to files that one may write to
victim sh -c "chmod -R g+w '$group/two-0001/log' '$group/two-0001/experiment.conf'"
# shellcheck disable=SC2238
attacker sh -c "umask 0; cd '$group/one-0001' && ln ../two-0001/experiment.conf experiment.conf && ln ../two-0001/log/000000/* log/000000/" 2>ln
is "$(cat ln)" "" "the group may make hard links"
nothing_runs "hard links of the entries and the file of another one of the victim's" "$changed" \
    victim timeout 100 dl continue --trials=3 --local "$e"
attacker sh -c "umask 2; mkdir '$group/three-0001' && cd '$group/three-0001' && mkdir -p log/000000 trials workers &&
    ln ../two-0001/experiment.conf experiment.conf && ln ../two-0001/log/000000/* log/000000/"
nothing_runs "the same in a new folder" "$first" victim timeout 100 dl continue --trials=3 --local "$group/three-0001"

# the pack of the first 256 entries, which dl reads instead of them
made packed
attacker sh -c "umask 0; cd '$group' && cp -r packed-0001 other-0001"
e=$group/other-0001
new_conf
attacker sh -c "umask 0; cd '$e' && mv log log.2 && mv log.2 log && exec /usr/bin/python3 '$forge' '$e' \
    \"line['id'] = 'ef' * 16; line['dir'] = '$work/evil'; line['digest'] = '$(digest "$e/experiment.conf")'\""
attacker sh -c "for i in \$(seq 270); do '$putevent' '$e' '{\"op\": \"label\", \"label\": \"l'\$i'\"}'; done" >/dev/null 2>&1
[ -e "$e/log/000000.pack" ] && [ -d "$e/log/000001" ]
ok $? "the attacker has a log with a pack"
attacker sh -c "umask 0; cp '$e/log/000000.pack' '$group/packed-0001/log/' && cp -r '$e/log/000001' '$group/packed-0001/log/' &&
    cp '$e/experiment.conf' '$group/packed-0001/x' && mv -f '$group/packed-0001/x' '$group/packed-0001/experiment.conf'"
e=$group/packed-0001
nothing_runs "a pack with another first entry" "$changed" victim timeout 100 dl resume --local "$e"

# ---- changes between check and use

# a job accepts only the configuration that it was submitted with
made queued
victim dl continue --trials=3 --detach "$e" >out 2>&1
pin=$(sed -n 's/^DL_PIN=//p' "$(find "$state" -name job.sh)")
like "$pin" '^[0-9a-f]{64}$' "a job has the pin of what the user agreed to"
new_conf
nothing_runs "a task that was to go on" "has changed since this worker was submitted" \
    victim env DL_PIN="$pin" SLURM_ARRAY_JOB_ID=77 SLURM_ARRAY_TASK_ID=1 timeout 100 dl requeue -- "$e" 75

# dl reproduce waits for an allocation
made ranks
rm -rf "$e"
DL_FREEZE=0 victim dl run --no-workers --dir "$group" --set 'name="ranks"' --set 'resources.ranks_per_node=2' good/v.conf >made 2>&1
victim "$putevent" "$e" '{"op": "begin", "trial": 1, "length": 1, "x": [0.5], "owner": "w"}'
victim "$putevent" "$e" '{"op": "result", "trial": 1, "attempt": 1, "length": 1, "metric": 1}'
cat >bin/salloc <<'SALLOC'
#!/bin/sh
while [ "$1" != reproduce ]; do last=$1; shift; done
: >"$CALLS.asked"
while [ ! -e "$CALLS.granted" ]; do sleep 0.1; done
SLURM_JOB_ID=5 exec "$last" "$@"
SALLOC
chmod 755 bin/salloc
rm -f "$CALLS.granted" "$CALLS.asked" "$group/ran"
victim sh -c "timeout 100 dl reproduce '$e' 1 >'$CALLS.out' 2>&1 </dev/null; echo \$? >'$CALLS.status'" &
wait_for 60 test -e "$CALLS.asked"
new_conf
victim touch "$CALLS.granted"
wait_for 60 test -s "$CALLS.status"
is "$(cat "$CALLS.status") $(grep -c 'has changed since' "$CALLS.out") $(ls "$group/ran" 2>/dev/null)" "2 1 " \
    "what changed while dl waited for an allocation does not run"

# between the creation of an experiment and of its record
rm -rf "$group"/[a-z]*-0001 "$group"/[a-z]*.old "$group/ran" "$state"
cat >race.py <<'RACE'
import os, sys
group, evil = sys.argv[1:]
os.umask(0)
with open(evil) as f:
    text = f.read()
done = set()
print("ready", flush=True)
while not os.path.exists(group + "/over"):
    for name in os.listdir(group):
        path = os.path.join(group, name)
        try:
            if name in done or name.endswith("x") or not os.path.exists(path + "/log/000000/00000001"):
                continue
            with open(path + "/x", "w") as f:
                f.write(text)
            os.rename(path + "/x", path + "/experiment.conf")
            done.add(name)
        except OSError:
            pass
RACE
sed "s|^entrypoint.*|entrypoint = \"id -u >$group/ran; dl log loss=1\";|" s.conf >evil/evil.conf
attacker /usr/bin/python3 "$work/race.py" "$group" "$work/evil/evil.conf" >race.out &
wait_for 60 grep -q ready race.out
# shellcheck disable=SC2034
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    DL_FREEZE=0 victim timeout 100 dl run --no-workers --dir "$group" --set 'name="race"' good/v.conf >>race.said 2>&1
done
attacker touch "$group/over"
wait
is "$(find "$state" -name pin -exec grep -l "^owner $attacker_id" {} + | wc -l)" 0 "what others put there during creation is not recorded as trusted"
done_testing
