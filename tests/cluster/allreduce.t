#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# The all-reduce examples across nodes: MPI under PMIx, the bootstrap over TCP and PMIx.
. "$srcdir/tests/lib.sh"
programs=$builddir/contrib/examples/allreduce
need_cluster
hosts_up sum --nodes=2 --plugin="$PLUGIN"

want="rank 0: hello from rank 0 of 4 rank 1: hello from rank 0 of 4 rank 2: hello from rank 0 of 4 rank 3: hello from rank 0 of 4 "
is "$(timeout 300 srun --dl=torch -N2 -n4 "$programs/spread-check" | sort | tr '\n' ' ')" "$want" "bytes of rank 0 reach every rank over TCP"
pmix=
srun --mpi=list 2>&1 | grep -q pmix && pmix=1
if [ -n "$pmix" ] && grep -q 'pmix=yes' "$builddir/config.log"; then
    is "$(timeout 300 srun --mpi=pmix -N2 -n4 "$programs/spread-check" | sort | tr '\n' ' ')" "$want" "and over PMIx, without --dl"
else
    skip "bootstrap over PMIx" "no PMIx"
fi
is "$(timeout 300 srun -N2 -n4 --mpi=none "$programs/spread-check" 2>"$work/err" | sort | tr '\n' ' ')" "$want" "and with neither"

if [ -x "$programs/allreduce-mpi" ] && [ -n "$pmix" ]; then
    out=$(OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none \
        timeout 300 srun --mpi=pmix -N2 -n4 "$programs/allreduce-mpi" 2>"$work/err")
    is $? 0 "MPI: the sums are right"
    sed 's/^/# /' "$work/err" | head -5
    like "$out" '^MPI, 4 ranks' "MPI: four ranks"
    is "$(echo "$out" | grep -c 'GB/s')" 5 "MPI: every size"
else
    skip "MPI" "not built, or no PMIx"
fi
if [ -x "$programs/allreduce-nccl" ] && ! ls /dev/nvidia0 >/dev/null 2>&1; then
    out=$(timeout 300 srun --dl=torch -n2 "$programs/allreduce-nccl" 2>&1)
    [ $? -ne 0 ]
    ok $? "NCCL without a GPU fails"
    like "$out" 'allreduce: rank [01]: cudaGetDeviceCount' "and says why"
else
    skip "NCCL without a GPU" "not built, or there is a GPU"
fi
done_testing
