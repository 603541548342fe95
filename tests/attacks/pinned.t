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
    like "$(cat out)" "$pattern" "$name: one line says why, and how to accept it"
    holds "$name: nothing of it runs" [ ! -e "$group/ran" ]
}

is "$(find "$victim_home/$state" -type d ! -perm 700; find "$victim_home/$state" -type f ! -perm 600)" "" "the records are private"
is "$(find "$victim_home/$state" -name pin | wc -l)" 1 "there is one record"
like "$(head -1 "$group/s-0001/log/000000/00000001")" "\"id\":\"[0-9a-f]{32}\",\"digest\":\"$(sha256sum <"$group/s-0001/experiment.conf" | cut -c 1-64)\"" "the log's first entry has the digest"

case_of same
runs 0 "what the user started continues without a question" victim timeout 100 dl continue --local --trials=3 "$e"

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
runs 0 "--trust accepts it" victim timeout 100 dl continue --trust --trials=3 --local "$e"
like "$(cat out)" '^dl:   entrypoint: "echo trained; : .x.; dl log loss=1" -> "id -u >' "it prints what has changed"
like "$(cat out)" "^dl:   owner: \"$victim_id\" -> \"$attacker_id\"" "and who owns it"
is "$(cat "$group/ran")" "$victim_id" "and runs"
runs 0 "and asks no more" victim timeout 100 dl continue --trials=4 --local "$e"

case_of searcher
attacker sh -c "umask 0; sed 's|\"random\"|\"sobol\"|' '$e/experiment.conf' >'$e/new' && mv -f '$e/new' '$e/experiment.conf'"
for option in '' --trust; do
    victim timeout 100 dl resume --local $option "$e" >out 2>&1 </dev/null
    like "$(cat out)" '^dl:   searcher.name: "random" -> "sobol"$' "another searcher, dl resume $option: one line says what changed"
done

# the first time that a user runs another user's experiment
case_of join
rm "$group/ran"
is_refused "another user's experiment" "its trials would run, as you, what experiment.conf of user $victim_id says, in the folder" \
    attacker timeout 100 dl continue --trials=3 --local "$e"
attacker timeout 100 script -qec "dl continue --trials=3 --local $e" /dev/null >out 2>&1 <<'ANSWER'
n
ANSWER
like "$(cat out)" 'Run it\? \[y/N\]' "on a terminal dl asks"
is "$(grep -c '"op":"result"' "$e"/log/000000/* | awk -F: '{ n += $2 } END { print n }')" 2 "answer no: nothing runs"
attacker timeout 100 script -qec "dl continue --trials=3 --local $e" /dev/null >out 2>&1 <<'ANSWER'
y
ANSWER
is "$(cat "$e"/log/000000/* | grep -c '"op":"result"')" 3 "answer yes: it runs"
runs 0 "looking at it asks nothing" attacker dl show "$e"

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
is "$(tail -1 "$CALLS")" "$record/job.sh" "nobody else can write where the script is"
is "$(grep -A 1 -e --output "$CALLS" | head -1)" "--output=$record/%A_%a.log" "nor where the output is"
attacker "$putevent" "$e" '{"op": "submit", "by": "u", "job": "4711", "first": 1, "last": 2}'
# a colleague's experiment with the id of the user's own experiment
attacker sh -c "umask 2; cp -r '$e' '$group/forged-0001'"
PATH=$work/bin:$PATH victim dl kill "$group/forged-0001" >out 2>&1
PATH=$work/bin:$PATH victim dl rm --force "$group/forged-0001" >>out 2>&1
is "$(cat "$CALLS.scancel" 2>/dev/null)" "" "a log with another experiment's id does not cancel that one's jobs"
[ -f "$record/pin" ] && [ -f "$record/job-77" ]
ok $? "nor does removing it remove that one's record"
PATH=$work/bin:$PATH victim dl kill "$e" >out 2>&1
is "$(cat "$CALLS.scancel")" "-- 77" "another job of the user that somebody put into the log is not cancelled"

# ids that are not valid
attacker sh -c "umask 2; cp -r '$group/s-0001' '$group/notebooks-0001'"
victim sh -c 'umask 77; mkdir "$HOME/$1/notebooks" && echo token >"$HOME/$1/notebooks/token"' sh "$state"
for id in "" . notebooks; do
    attacker /usr/bin/python3 "$srcdir/tests/attacks/forge.py" "$group/notebooks-0001" "line['id'] = '$id'"
    victim dl show "$group/notebooks-0001" >out 2>&1
    is "$? $(grep -c 'the value of "id" is not one' out)" "5 1" "an invalid id: '$id'"
done
victim dl rm --force "$group/notebooks-0001" >>out 2>&1
is "$(cat "$victim_home/$state/notebooks/token")" token "nothing else beside the records is removed"

victim dl rm "$e" >out 2>&1
rm -rf "$group"/[a-r]* "$group"/taken-0001
victim dl rm s-0001 --dir "$group" >out 2>&1
is "$(find "$victim_home/$state" -type f -name pin | wc -l)" 0 "dl rm removes the record, too"
done_testing
