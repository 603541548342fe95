#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Another user of the machine tries to join as a rank: the real ranks meet, and ignore the attacker's messages.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/ranks.sh"
victim test -x "$meet" || skip_all "other users may not run $meet"

# Run a rank of two as one of the users, with a timeout and with variables of a Slurm step, which both users know.
rank () { # rank USER NUMBER SECONDS [NAME=VALUE...]
    who=$1
    number=$2
    seconds=$3
    shift 3
    $who timeout 300 env SLURM_JOB_ID=77 SLURM_STEP_ID=0 RANK="$number" WORLD_SIZE=2 DL_COMM_ADDRESS="127.0.0.1:$port" \
        DL_COMM_TIMEOUT="$seconds" DL_COMM_SHARED=0 "$@" "$meet" 2>&1
}
hosts () { # hosts [NAME=VALUE...]: start rank 0, and wait until it listens
    port=$(free_port)
    rank victim 0 100 "$@" >0.out &
    zero=$!
    wait_for 60 listens "$port"
}
comes () { # comes NAME [NAME=VALUE...]: start rank 1, and check that both meet
    name=$1
    shift
    rank victim 1 100 "$@" >1.out
    wait "$zero"
    is "$(cat 0.out 1.out)" "$both" "$name"
    is "$(grep -c "$(printf '\033')" 0.out 1.out | sed 's/.*://' | sort -u)" 0 "and no escape sequence is printed"
}

# ---- the attacker is rank 1, with the same program and the same environment
hosts
like "$(rank attacker 1 3)" 'rank 0 did not answer at 127\.0\.0\.1:[0-9]+ within 3 s' "another user is not rank 1"
like "$(rank attacker 1 3 DL_SECRET=0123456789abcdef0123456789abcdef)" \
    "within 3 s: the process that listens there does not know this step's secret" "nor with a secret of their own"
comes "the real one is"
is "$(ls -A "$victim_home/.slurm-dl")" "" "no secret is left behind"
hosts DL_SECRET=00112233445566778899aabbccddeeff
rank attacker 1 3 DL_SECRET=00112233445566778899aabbccddeefe >/dev/null
is $? 1 "nor with one flipped bit"
comes "with the secret in the environment" DL_SECRET=00112233445566778899aabbccddeeff

# ---- the old protocol, whose key anybody could compute
step="SLURM_JOB_ID=77 SLURM_STEP_ID=0"
hosts
attacker timeout 100 env $step python3 "$network" join "$port" 1 2 >join.out &
wait_for 60 grep -q . join.out
is "$(cat join.out)" "sent away" "a silent rank 1 is not admitted"
comes "and delays nobody"
wait
hosts
rm join.out
attacker timeout 100 env $step python3 "$network" join "$port" 1 2 '\033]0;owned\007\033[2J' >join.out &
wait_for 60 grep -q . join.out
comes "a forged failure is not heard"
wait

# ---- the attacker listens at rank 0's port
port=$(free_port)
attacker timeout 60 python3 "$network" host "$port" '\033]0;owned\007\033[2J' >host.out 2>&1 &
fake=$!
wait_for 60 grep -q ready host.out
rank victim 1 4 >1.out
like "$(cat 1.out)" 'rank 0 did not answer at' "an impostor of rank 0 is not believed"
is "$(grep -c "$(printf '\033')" 1.out)" 0 "and prints nothing"
rank victim 1 4 DL_SECRET=00112233445566778899aabbccddeeff >1.out
is "$(grep -c "$(printf '\033')" 1.out)" 0 "nor if the secret is in the environment"
end "$fake"

# ---- replay of a recorded connection
secret=DL_SECRET=00112233445566778899aabbccddeeff
hosts "$secret"
zero_port=$port
port=$(free_port)
attacker timeout 100 python3 "$network" record "$port" "$zero_port" "$attacker_home/said" >record.out 2>&1 &
recorder=$!
wait_for 60 grep -q ready record.out
comes "a rank that goes through another user's relay" "$secret"
end "$recorder"
hosts "$secret"
like "$(attacker timeout 100 python3 "$network" replay "$port" "$attacker_home/said")" '^said [0-9]{3} bytes: sent away' "replaying its messages admits nobody"
comes "and the real one comes" "$secret"

# ---- idle connections
hosts
attacker timeout 100 python3 "$network" idle "$port" "$(often 500 3000)" 60 >idle.out 2>&1 &
idle=$!
wait_for 60 grep -q . idle.out
comes "with many idle connections"
end "$idle"

# ---- no secret is available
port=$(free_port)
rank victim 0 100 HOME=/nonexistent >0.out
is $? 1 "ranks do not meet without a secret"
like "$(cat 0.out)" 'there is no secret for the ranks: .*srun --dl=torch, or set DL_SECRET' "and the message says what to do"
rank victim 0 100 DL_SECRET=secret >0.out
like "$(cat 0.out)" 'DL_SECRET is not 32 hexadecimal digits: ' "an invalid secret is reported"
is "$(grep -c 'DL_SECRET=' 0.out)" 0 "but not printed"

# ---- folders and links of other users
shared_folder "$work/group"
planted () { # planted NAME: check that rank 0 rejects the planted folder
    rank victim 0 3 HOME="$work/group" >0.out
    like "$(cat 0.out)" 'there is no secret for the ranks' "$1"
    attacker rm -rf "$work/group/.slurm-dl"
}
attacker mkdir -m 777 "$work/group/.slurm-dl"
planted "another user's folder is not taken"
attacker ln -s "$attacker_home" "$work/group/.slurm-dl"
planted "nor a link"
done_testing
