#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# The communicator across nodes: how the ranks find each other, and MPI as its back end.
. "$srcdir/tests/lib.sh"
need_cluster
meet=$builddir/tests/runtime/comm/meet
hosts_up meet --nodes=2 --cpus=8 --plugin="$PLUGIN"
unset RANK WORLD_SIZE MASTER_ADDR DL_COMM_ADDRESS DL_COMM_BOOTSTRAP DL_COMM_BACKEND

step () { # step WANTED NAME ARGUMENT...: run a step on two nodes, and check the line of each rank
    want=
    for r in 0 1 2 3; do want="$want$r of 4 by $1: 10 "; done
    what=$2
    shift 2
    is "$(timeout 300 srun -Q -N2 -n4 "$@" 2>&1 | sort | tr '\n' ' ')" "$want" "$what"
}
offered=$(srun --mpi=list 2>&1)
step "tcp over native" "with --dl" --dl=torch "$meet"
step "tcp over native" "another framework's" --dl=jax "$meet"
step "tcp over native" "without" --mpi=none "$meet"
step "tcp over native" "cyclic ranks" --mpi=none --distribution=cyclic "$meet"
case $offered in
*pmi2*) step "pmi over native" "over PMI" --mpi=pmi2 "$meet" ;;
*) skip "over PMI" "Slurm has no mpi/pmi2" ;;
esac
pmix=
case $offered in *pmix*) pmix=1 ;; esac
if [ -n "$pmix" ] && grep -q 'pmix=yes' "$builddir/config.log"; then
    step "pmix over native" "over PMIx" --mpi=pmix "$meet"
    step "pmix over native" "rank 0 is late" --mpi=pmix sh -c '[ $PMIX_RANK != 0 ] || sleep 1; exec "$0"' "$meet"
else
    skip "over PMIx" "no PMIx"
    skip "rank 0 is late" "no PMIx"
fi

# ---- a missing rank is named, with its host
# long enough for the other ranks, even on a busy machine
export DL_COMM_TIMEOUT=10
missing () { # missing RANK PATTERN NAME
    out=$(timeout 300 srun -Q -N2 -n4 --mpi=none sh -c '[ $SLURM_PROCID != $1 ] || exit 0; exec "$0"' "$meet" "$1" 2>&1)
    like "$out" "$2" "$3"
    is "$(echo "$out" | grep -c "$2")" 3 "on all of the others"
}
missing 3 '1 of 4 ranks did not connect within 10 s: 3 .n2.' "a rank that does not come is named"
missing 0 'rank 0 has published no address within 10 s: ~/.slurm-dl/' "rank 0, too"
unset DL_COMM_TIMEOUT

# ---- the secret of a step
secrets=$(timeout 300 srun -Q -N2 -n4 --dl=torch sh -c 'echo $DL_SECRET' | sort -u)
like "$secrets" '^[0-9a-f]{32}$' "all tasks of a step have a secret"
is "$(echo "$secrets" | wc -l)" 1 "the same"
[ "$secrets" != "$(timeout 300 srun -Q -n1 --dl=torch sh -c 'echo $DL_SECRET')" ]
ok $? "the next step has another"
het=$(timeout 300 srun -Q --dl=torch -N1 -n1 -w n1 sh -c 'echo $DL_SECRET' : -N1 -n1 -w n2 sh -c 'echo $DL_SECRET' | sort | uniq -c)
like "$het" '^ *2 [0-9a-f]{32}$' "components of a heterogeneous job have the same"
inner=$(timeout 300 srun -Q -n1 --dl=torch sh -c 'echo $DL_SECRET; srun -Q --overlap -n1 sh -c "echo \${DL_SECRET-none}"
    srun -Q --overlap -n1 --dl=torch sh -c "echo \$DL_SECRET"')
is "$(echo "$inner" | sed -n 2p)" none "a step in it does not inherit it"
is "$(echo "$inner" | grep -cE '^[0-9a-f]{32}$')/$(echo "$inner" | sort -u | wc -l)" 2/3 "and has its own"
kept () {
    ls -A "${HOME:-/root}/.slurm-dl" 2>/dev/null
}
before=$(kept)
step "tcp over native" "without the environment" --export=NONE --dl=torch "$meet"
step "tcp over native" "nor the plugin" --export=NONE --mpi=none "$meet"
is "$(kept)" "$before" "and no secret is left"
is "$(timeout 300 srun -Q -n1 --dl=torch sh -c 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" "\n" |
    awk "index (\$0, ENVIRON[\"DL_SECRET\"]) { n++ } END { print n + 0 }"')" 0 "it is on no command line"

# ---- MPI as the back end
DL_BACKEND_DIR=$builddir/runtime/.libs
export DL_BACKEND_DIR OMPI_MCA_btl_vader_single_copy_mechanism=none
export DL_COMM_BACKEND=mpi
# avoid the bridges of other clusters on this machine, which may disappear during the test
[ -n "$hosts" ] || export OMPI_MCA_btl_tcp_if_include=lo
if [ -n "$pmix" ] && [ -f "$DL_BACKEND_DIR/slurmdl-mpi.so" ]; then
    step "pmix over mpi" "MPI: all types and sizes" --mpi=pmix "$meet" all
    hung=$(FAKE_MPI=hang DL_COMM_TIMEOUT=10 LD_PRELOAD=$builddir/tests/fakes/.libs/mpi.so timeout 300 srun -Q -n4 --mpi=pmix "$meet" 2>&1)
    like "$hung" 'mpi: rank [0-9] has waited for 10 s for the others' "a rank that does not join a communicator"
    device=$builddir/tests/runtime/comm/mpidevice
    if [ -x "$device" ]; then
        for can in cuda host; do
            [ $can = cuda ] && way=without || way=through
            said=$(FAKE_MPI=$can DL_BACKEND_DIR=$builddir/tests/fakes/gpu/mpi/.libs LD_PRELOAD=$builddir/tests/fakes/.libs/mpi.so \
                timeout 300 srun -Q -N2 -n4 --mpi=pmix "$device" 2>&1 | sort -u)
            is "$said" "right, $way the host" "device memory $way the host"
        done
    else
        skip "device memory without the host" "no headers of CUDA"
        skip "device memory through the host" "no headers of CUDA"
    fi
    DL_BACKEND_DIR=$builddir/tests/fakes/parts/.libs step "pmix over mpi" "and in many parts" --mpi=pmix "$meet" parts
    out=$(timeout 300 srun -Q -n2 --mpi=none "$meet" 2>&1)
    like "$out" 'the step has no PMI: start it with srun --mpi=pmix' "a step without PMI says so"
    export WORLD_SIZE=2 DL_COMM_ADDRESS=127.0.0.1:$((10000 + $$ % 10000))
    mkdir -p "$work/its" # two TMPDIRs: Open MPI processes that start at once race to make its folder there, and one fails
    RANK=1 TMPDIR=$work/its timeout 300 "$meet" >"$work/one" 2>&1 &
    out=$(RANK=0 timeout 300 "$meet" 2>&1)
    wait $!
    unset WORLD_SIZE DL_COMM_ADDRESS
    like "$out" 'ranks 0 and 1 are both rank 0 of MPI' "so does MPI that does not know the others"
else
    skip "MPI: all types and sizes" "no MPI or PMIx"
    skip "a rank that does not join a communicator" "no MPI or PMIx"
    skip "device memory without the host" "no MPI or PMIx"
    skip "device memory through the host" "no MPI or PMIx"
    skip "and in many parts" "no MPI or PMIx"
    skip "a step without PMI says so" "no MPI or PMIx"
    skip "MPI that does not know the others" "no MPI or PMIx"
fi
DL_COMM_BACKEND=none
out=$(timeout 300 srun -Q -n2 --mpi=none "$meet" 2>&1)
like "$out" "'none' is not a back end: native, mpi or nccl" "an unknown back end"
done_testing
