#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Values in a group's experiment that would become part of a command line or path of the user who works with it.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/groups.sh"

e=$group/evil-0001
mkdir bin
for command in scancel squeue sbatch scontrol; do
    printf '#!/bin/sh\necho "%s $*" >>"$CALLS"\n' $command >bin/$command
done
chmod 755 bin bin/*
CALLS=$victim_home/calls
PATH=$work/bin:$PATH
export CALLS PATH

# The attacker adds an event to the log, and the victim runs dl COMMAND, which must fail: refuses NAME EVENT COMMAND...
refuses () {
    name=$1
    event=$2
    shift 2
    case_of evil
    rm -f "$CALLS"
    attacker "$putevent" "$e" '{"op": "continue", "by": "u", "max_trials": 9}' >/dev/null 2>&1
    attacker "$putevent" "$e" "$event" >/dev/null 2>&1
    runs 5 "$name: the experiment is damaged" victim timeout 60 dl "$@"
    like "$(cat out)" "^dl: $e/log/000000/[0-9]*: the value of \"$member\" is not one" "one line says so"
    is "$(cat "$CALLS" 2>/dev/null)" "" "and nothing is started"
}

member=job
for job in --user="$victim_id" -u 1,2 "1 2" 12_ 12_3_4 "12;" "12;--user" "12;a b" "*" 12abc; do
    refuses "job $job" "{\"op\": \"submit\", \"by\": \"u\", \"job\": \"$job\", \"first\": 1, \"last\": 2}" kill "$e"
done
member=host
for host in "n1 --wrap=x" --help "n1,n2" "n[1-9]"; do
    refuses "host $host" "{\"op\": \"exclude\", \"by\": \"u\", \"host\": \"$host\", \"why\": \"w\"}" resume "$e"
done
member=slots
refuses "slots" '{"op": "scale", "by": "u", "workers": 1, "slots": "1_1 --x"}' scale 1 "$e"
member=owner
refuses "owner" '{"op": "begin", "by": "u", "trial": 3, "length": 1, "x": [0.5], "owner": "../../../../etc/passwd"}' show "$e"

# values that dl itself writes are accepted
case_of good
attacker "$putevent" "$e" '{"op": "continue", "by": "u", "max_trials": 9}'
attacker "$putevent" "$e" '{"op": "submit", "by": "u", "job": "12", "first": 1, "last": 2}'
attacker "$putevent" "$e" '{"op": "submit", "by": "u", "job": "13_4;cluster", "first": 1, "last": 2}'
victim dl show "$e" >out 2>&1
like "$(cat out)" '^job 13_4;cluster: ' "a job id must be a job id"

# more workers than any machine can run
case_of many
attacker "$putevent" "$e" '{"op": "continue", "by": "u", "max_trials": 9}'
attacker "$putevent" "$e" '{"op": "scale", "by": "u", "workers": 1000000000}'
victim timeout 200 prlimit --nproc=300 dl resume --local "$e" >out 2>&1
is "$? $(grep -c '^dl: .*: 16 of the 1000000000 workers that its log requests: its group may write there' out)" "0 1" "a billion workers"
case_of less
attacker "$putevent" "$e" '{"op": "continue", "by": "u", "max_trials": 9}'
attacker "$putevent" "$e" '{"op": "scale", "by": "u", "workers": -5}'
victim timeout 200 dl resume --local "$e" >out 2>&1
is "$? $(grep -c ', 1 worker (local)' out)" "0 1" "fewer than none"

# a forged file of a worker
attacker sh -c "printf '%s\n%020d\n' '{\"slot\":\"local-1-1 --x\",\"host\":\"n1\"}' 7 >'$e/workers/0123456789abcdef0123456789abcdef'"
runs 0 "an invalid file of a worker does not keep dl from reading the experiment" victim dl show "$e"
like "$(cat out)" "^dl: $e/workers/0123456789abcdef.*: no worker has such a slot" "and is reported"
done_testing
