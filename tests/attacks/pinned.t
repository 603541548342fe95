#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# dl runs commands from a group's experiment only for a user who has started it, or has agreed to run it.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/groups.sh"
state=.local/state/slurm-dl

# another member changes the command of the next trials
evil () {
    attacker sh -c "umask 0; sed 's|^entrypoint.*|entrypoint = \"id -u >$work/group/ran; dl log loss=1\";|' '$e/experiment.conf' >'$e/new' && mv -f '$e/new' '$e/experiment.conf'"
    rm -f "$group/ran"
}

is_refused () { # is_refused NAME PATTERN COMMAND...: check that it is refused with this message, and that nothing runs
    name=$1
    pattern=$2
    shift 2
    runs 2 "$name is refused" "$@"
    like "$(cat out)" "$pattern" "$name: a line says why, and how it is taken"
    [ ! -e "$group/ran" ]
    ok $? "$name: nothing of it runs"
}

is "$(find "$victim_home/$state" -type d ! -perm 700; find "$victim_home/$state" -type f ! -perm 600)" "" "the records are the user's alone"
is "$(find "$victim_home/$state" -name pin | wc -l)" 1 "there is one"
like "$(head -1 "$group/s-0001/log/000000/00000001")" "\"id\":\"[0-9a-f]{32}\",\"digest\":\"$(sha256sum <"$group/s-0001/experiment.conf" | cut -c 1-64)\"" "the log's first entry has the digest"

case_of same
runs 0 "what the user has started himself goes on without a question" victim timeout 100 dl continue --local --trials=3 "$e"

case_of evil
evil
changed="^dl: $e: what its trials run as you has changed since you last started it: see experiment.conf of user $attacker_id.* use --trust to agree"
for command in 'continue --trials=3' 'fork'; do
    is_refused "$command after a change" "$changed" victim timeout 100 dl $command --local "$e"
done
attacker sh -c "umask 0; mv '$e/experiment.conf' '$e/x' && cp '$e/x' '$e/experiment.conf'"
is_refused "worker after a change" "$changed" victim timeout 100 dl worker "$e"
case_of owner
attacker sh -c "umask 0; cp '$e/experiment.conf' '$e/new' && mv -f '$e/new' '$e/experiment.conf'"
is_refused "another owner of the same file" "see experiment.conf of user $attacker_id" victim timeout 100 dl continue --trials=3 --local "$e"

# a change between the submission of a worker and its start
case_of later
evil
is_refused "a worker that was submitted before" "has changed since this worker was submitted" \
    victim env DL_PIN=0123 timeout 100 dl worker "$e"

case_of taken
evil
runs 0 "with --trust it is taken" victim timeout 100 dl continue --trust --trials=3 --local "$e"
like "$(cat out)" '^dl:   entrypoint: "echo trained; : .x.; dl log loss=1" -> "id -u >' "which says what has changed"
like "$(cat out)" "^dl:   owner: \"$victim_id\" -> \"$attacker_id\"" "and whose it is"
is "$(cat "$group/ran")" "$victim_id" "and runs"
runs 0 "from then on without a question" victim timeout 100 dl continue --trials=4 --local "$e"

case_of searcher
attacker sh -c "umask 0; sed 's|\"random\"|\"sobol\"|' '$e/experiment.conf' >'$e/new' && mv -f '$e/new' '$e/experiment.conf'"
for option in '' --trust; do
    victim timeout 100 dl resume --local $option "$e" >out 2>&1 </dev/null
    like "$(cat out)" '^dl:   searcher.name: "random" -> "sobol"$' "another searcher, dl resume $option: a line says what has changed"
done

# the first time that a user runs another user's experiment
case_of join
rm "$group/ran"
is_refused "another user's experiment" "its trials would run, as you, what experiment.conf of user $victim_id says, in the folder" \
    attacker timeout 100 dl continue --trials=3 --local "$e"
attacker timeout 100 script -qec "dl continue --trials=3 --local $e" /dev/null >out 2>&1 <<'ANSWER'
n
ANSWER
like "$(cat out)" 'Run it\? \[y/N\]' "on a terminal it is asked"
is "$(grep -c '"op":"result"' "$e"/log/000000/* | awk -F: '{ n += $2 } END { print n }')" 2 "no: nothing runs"
attacker timeout 100 script -qec "dl continue --trials=3 --local $e" /dev/null >out 2>&1 <<'ANSWER'
y
ANSWER
is "$(cat "$e"/log/000000/* | grep -c '"op":"result"')" 3 "yes: it does"
attacker dl show "$e" >/dev/null 2>&1
is $? 0 "to look needs no answer"

# the batch script and the workers' output, which Slurm opens by name
mkdir bin
cat >bin/sbatch <<'SBATCH'
#!/bin/sh
printf '%s\n' "$@" >"$CALLS"
echo 77
SBATCH
printf '#!/bin/sh\necho "$*" >>"$CALLS.scancel"\n' >bin/scancel
chmod 755 bin bin/*
case_of slurm
CALLS=$victim_home/calls
export CALLS
PATH=$work/bin:$PATH runs 0 "workers are submitted" victim dl continue --trust --trials=3 --detach "$e"
record=$(dirname "$(find "$victim_home/$state" -name pin | head -1)")
is "$(tail -1 "$CALLS")" "$record/job.sh" "the script is where nobody else may write"
is "$(grep -A 1 -e --output "$CALLS" | head -1)" "--output=$record/%A_%a.log" "and the output"
attacker "$putevent" "$e" '{"op": "submit", "by": "u", "job": "4711", "first": 1, "last": 2}'
# a colleague's experiment with the id of the user's own experiment
attacker sh -c "umask 2; cp -r '$e' '$group/forged-0001'"
PATH=$work/bin:$PATH victim dl kill "$group/forged-0001" >out 2>&1
PATH=$work/bin:$PATH victim dl rm --force "$group/forged-0001" >>out 2>&1
is "$(cat "$CALLS.scancel" 2>/dev/null)" "" "a log with the id of another experiment does not cancel the jobs of that"
[ -f "$record/pin" ] && [ -f "$record/job-77" ]
ok $? "nor does its removal take the record of that"
PATH=$work/bin:$PATH victim dl kill "$e" >out 2>&1
is "$(cat "$CALLS.scancel")" "-- 77" "another job of the user, which somebody put into the log, is not cancelled"

# ids that are not valid
attacker sh -c "umask 2; cp -r '$group/s-0001' '$group/notebooks-0001'"
victim sh -c 'umask 77; mkdir "$HOME/$1/notebooks" && echo token >"$HOME/$1/notebooks/token"' sh "$state"
for id in "" . notebooks; do
    attacker /usr/bin/python3 "$srcdir/tests/attacks/forge.py" "$group/notebooks-0001" "line['id'] = '$id'"
    victim dl show "$group/notebooks-0001" >out 2>&1
    is "$? $(grep -c 'the value of "id" is not one' out)" "5 1" "an id that is none: '$id'"
done
victim dl rm --force "$group/notebooks-0001" >>out 2>&1
is "$(cat "$victim_home/$state/notebooks/token")" token "nor is what else lies beside the records removed"

victim dl rm "$e" >out 2>&1
rm -rf "$group"/[a-r]* "$group"/taken-0001
victim dl rm s-0001 --dir "$group" >out 2>&1
is "$(find "$victim_home/$state" -type f -name pin | wc -l)" 0 "dl rm removes the record, too"
done_testing
