#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# A process next to srun has rank 0's address for ranks that do not see its notice. Another user floods that process, lies to it
# or in its place, and holds each port that he can guess; the ranks of the step meet all the same.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/attacks/users.sh"
. "$srcdir/tests/attacks/ranks.sh"
[ -f "$PLUGIN" ] || skip_all "the plugin was not built"
stub=$builddir/tests/fakes/spank
board=$srcdir/tests/attacks/board.py
for f in "$meet" "$stub" "$PLUGIN"; do victim test -r "$f" || skip_all "other users may not read $f"; done
for r in 0 1; do victim mkdir "$victim_home/$r"; done

# The step that srun starts.  Each rank has its own home directory; both wait for the file go.
cat >"$work/step" <<'END'
#!/bin/sh
rank () {
    SLURM_PROCID=$1 HOME=$HOME/$1 timeout 300 "$meet" $what >"$HOME/$1.out" 2>&1
}
export SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2 SLURM_NODEID=0 \
    SLURM_GTIDS=0,1 SLURMD_NODENAME=n1 SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 SLURM_STEP_RESV_PORTS="$reserved" DL_COMM_SHARED=0 \
    DL_COMM_TIMEOUT="${seconds:-100}"
echo "${SLURM_DL_BOARD-none}" >"$HOME/board"
[ -z "$elsewhere" ] || export SLURM_DL_BOARD="$elsewhere"
echo >"$HOME/ready"
until [ -e "$HOME/go" ]; do sleep 0.1; done
FAKE_PROBE= SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_STEP_NUM_NODES=1 "$stub" "$PLUGIN" 0 dl=torch >"$HOME/task.out" 2>&1
rank 0 &
zero=$!
rank 1
echo "1: $?" >"$HOME/status"
wait $zero
echo "0: $?" >>"$HOME/status"
END
chmod 755 "$work/step"
srun () { # srun [NAME=VALUE...]: start it and its step, and wait until the step is ready
    (cd "$victim_home" && rm -f go ready board status 0.out 1.out)
    victim timeout 400 env meet="$meet" stub="$stub" PLUGIN="$PLUGIN" reserved="$range" FAKE_PROBE="$work/step" "$@" "$stub" "$PLUGIN" local dl=torch >srun.out 2>&1 &
    launched=$!
    wait_for 60 test -e "$victim_home/ready"
    port=$(sed 's/ .*//' "$victim_home/board")
    token=$(sed 's/.* //' "$victim_home/board")
}
go () {
    victim touch "$victim_home/go"
}
met () { # met NAME: let the ranks start, and check that they meet
    go
    wait "$launched"
    is "$(cat "$victim_home/0.out" "$victim_home/1.out")" "$both" "$1" || sed 's/^/# /' srun.out "$victim_home/status"
}
beside_srun () { # whether the process next to srun listens
    listens "$port"
}
gone () {
    ! beside_srun
}

# ---- the attacker holds each port that he can guess: those that Slurm reserved, and the 12,000 that a job ID may map to
range=21000-21005
attacker timeout 400 python3 "$board" squat 20768-32767 >squat.out 2>&1 &
squatter=$!
wait_for 120 grep -q holds squat.out
like "$(cat squat.out)" '^holds 1[12][0-9]{3}$' "another user holds the ports that follow from the job, and those that Slurm reserved"
srun
met "ranks without a common folder meet through srun"
end "$squatter"
holds "the process beside srun ends with it" wait_for 60 gone

# ---- an attacker without the token
srun
is "$(attacker python3 "$board" ask "$port" 0123456789abcdef0123456789abcdef get x)" "" "a caller with another token gets nothing"
is "$(attacker python3 "$board" long "$port" 1000000)" "closed" "a line without an end is not read for ever"
is "$(attacker python3 "$board" ask "$port" "$token" get 00112233445566778899aabbccddeeff)" "" "nothing that was not posted can be read"
met "and the ranks meet"

# ---- a flood of connections, silent and others, as fast as possible
srun
flooders=
for i in 1 2 3 4 5 6; do
    attacker timeout 300 python3 "$network" flood "$port" "$(often 20000 200000)" 100 100 >flood.$i 2>&1 &
    flooders="$flooders $!"
    wait_for 60 grep -q ready flood.$i
done
met "ranks meet during a flood"
holds "a flood does not keep the process alive after srun" wait_for 60 gone
for i in $flooders; do end "$i"; done

# ---- the attacker answers in place of the process next to srun
for lie in failure address garbage silence; do
    rm -f lie.out
    attacker timeout 300 python3 "$board" lie $lie >lie.out 2>&1 &
    liar=$!
    wait_for 60 grep -q '^port' lie.out
    srun seconds=6 elsewhere="$(sed -n 's/^port //p' lie.out) 0123456789abcdef0123456789abcdef"
    go
    wait "$launched"
    like "$(cat "$victim_home/1.out")" 'rank 0 (did not answer|has published no address) .*within 6 s' "$lie: nobody is led astray"
    is "$(grep -c "owned\|$(printf '\033')" "$victim_home/1.out")" 0 "and nothing of it is printed"
    end "$liar"
done

# ---- rank 0 cannot listen: the other rank reports why at once
squat=$(free_port)
rm squat.out
attacker timeout 400 python3 "$board" squat "$squat-$squat" >squat.out 2>&1 &
squatter=$!
wait_for 120 grep -q holds squat.out
srun DL_COMM_PORTS="$squat-$squat" seconds=200
go
wait "$launched"
like "$(cat "$victim_home/1.out")" 'rank 0 \(n1\) cannot listen: no port to listen on: Address already in use' "srun also reports why rank 0 cannot listen"
end "$squatter"
is "$(find "$victim_home"/[01]/.slurm-dl -type f)" "" "no notice is left behind"
done_testing
