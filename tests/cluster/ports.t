#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Ranks on two nodes without a shared home directory find each other through srun, while another user holds all predictable ports.
. "$srcdir/tests/lib.sh"
need_hosts
need_cluster
meet=$builddir/tests/runtime/comm/meet
for v in $(env | sed -n 's/^\(DL_COMM[A-Z_]*\)=.*/\1/p') DL_SECRET SLURM_DL_BOARD RANK WORLD_SIZE MASTER_ADDR MASTER_PORT SLURM_EXPORT_ENV; do unset "$v"; done
try_cluster ports --nodes=2 --cpus=8 --hosts --plugin="$PLUGIN" || skip_all "no network namespaces here"
dir=${SLURM_CONF%/*}
mkdir home.n1 home.n2
cat >own <<END
#!/bin/sh
# use a home directory that only this node has
HOME=$work/home.\$SLURMD_NODENAME exec "\$@"
END
chmod 755 own
export DL_COMM_TIMEOUT=100

meeting () { # meeting NUMBER NAME COMMAND...: check that NUMBER ranks meet
    want=
    for r in $(seq 0 $(($1 - 1))); do want="$want$r of $1 by tcp over native: $(($1 * ($1 + 1) / 2)) "; done
    what=$2
    shift 2
    is "$(timeout 300 "$@" 2>err | grep ' of ' | sort | tr '\n' ' ')" "$want" "$what" || sed 's/^/# /' err
}
posted () {
    find home.n1 home.n2 -type f
}

# ---- another user holds the ports that Slurm reserves, and those derived from a job ID, on each node
range=$(scontrol show config | sed -n 's/^MpiParams *= ports=//p')
squatters=
squat () { # squat RANGE: hold these ports on each node as another user
    for k in 1 2; do
        PATH=/usr/bin:/bin nsenter -t "$(cat "$dir/run/slurmd-n$k.pid")" -n setpriv --reuid=65534 --regid=65534 --clear-groups \
            python3 "$srcdir/tests/attacks/board.py" squat "$1" >"squat.$1.$k" 2>&1 &
        squatters="$squatters $!"
        wait_for 120 grep -q holds "squat.$1.$k"
    done
}
setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$srcdir/tests/attacks/board.py" || skip_all "other users may not read $srcdir"
squat 20768-32767
squat "$range"
is "$(cat squat.20768-32767.* | grep -cE '^holds 1[12][0-9]{3}$')" 2 "another user holds all ports derived from a job's number"
is "$(cat squat."$range".* | grep -c holds)" 2 "and $range, which Slurm reserves"
meeting 4 "from a login node" srun -Q -N2 -n4 --dl=torch ./own "$meet"
meeting 4 "cyclic ranks, another framework" srun -Q -N2 -n4 -m cyclic --dl=tf ./own "$meet"
cat >order <<END
n2
n1
n1
END
meeting 3 "rank 0 is not on the first host" env SLURM_HOSTFILE=order srun -Q -n3 -m arbitrary --dl=torch ./own "$meet"
meeting 2 "two components of a step" srun -Q --dl=torch -N1 -n1 -w n1 ./own "$meet" : -N1 -n1 -w n2 ./own "$meet"
sbatch -Q -W -N2 -n4 -o batch.out --wrap "srun -Q --dl=torch ./own $meet" >/dev/null 2>&1
is "$(grep -c 'of 4 by tcp over native: 10' batch.out)" 4 "an srun in a batch job" || sed 's/^/# /' batch.out
meeting 2 "an srun in a step" srun -Q -N2 -n2 --dl=torch sh -c "[ \$SLURM_PROCID != 0 ] || srun -Q --overlap -N2 -n2 --dl=torch ./own $meet"
meeting 4 "the step's ranks, twice" srun -Q -N2 -n4 --dl=torch ./own sh -c '"$0" >/dev/null && exec "$0"' "$meet"
like "$(timeout 300 srun -Q -N2 -n2 --dl=torch ./own "$builddir/launcher/dl" check 2>&1)" 'dl: check: .*2 nodes, 2 ranks' "dl check by hand has one verdict"
# srun's variables do not reach these ranks, so they need a shared home directory for their notice
meeting 4 "--export=NONE: by the notice" srun -Q -N2 -n4 --dl=torch --export=NONE "$meet"
out=$(timeout 300 srun -Q -N2 -n2 --dl=torch --export=NONE /usr/bin/env DL_COMM_TIMEOUT=5 ./own "$meet" 2>&1)
like "$out" 'rank 0 has published no address within 5 s: ~/\.slurm-dl/.*; without DL_SECRET all ranks need the same home directory' "--export=NONE and no common home: dl reports what is missing"
is "$(posted)" "" "no notice is left"

# ---- rank 0 cannot listen
out=$(DL_COMM_PORTS=$range timeout 300 srun -Q -N2 -n2 --dl=torch ./own "$meet" 2>&1)
is "$(echo "$out" | grep -c 'rank 0 (n1) cannot listen: no port to listen on: Address already in use')" 2 "both ranks learn at once why rank 0 cannot listen" || echo "$out" | sed 's/^/# /'
for s in $squatters; do kill "$s"; done
wait

# ---- no plugin, but a DL_SECRET of the user's: the ranks meet at the step's port, or at the port that the user names
DL_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export DL_SECRET
meeting 4 "a secret of the user's and no option of the plugin: at the step's port" srun -Q -N2 -n4 --mpi=none ./own "$meet"
first=${range%-*}
meeting 4 "at the port that the user has named" env DL_COMM_ADDRESS=n1:$((first + 50)) srun -Q -N2 -n4 --mpi=none ./own "$meet"
unset DL_SECRET
unharmed
done_testing
