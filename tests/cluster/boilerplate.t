#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root
# The scripts of doc/boilerplate.md give each rank the same settings in the form that sites document and with the plugin.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/spank/variant.sh"
need_cluster
need_hosts
command -v bash >/dev/null || skip_all "no bash"
mkdir nccl.d bin
try_cluster boiler --hosts --nodes=2 --plugin="$PLUGIN nccl_dir=$work/nccl.d" || skip_all "no network namespaces"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT OMP_NUM_THREADS

block () { # block LABEL: print the page's code block with this label
    sed -n "/^<!-- $1 -->/,/^\`\`\`\$/p" "$srcdir/doc/boilerplate.md" | sed '/^<!--/d; /^```/d'
}
for part in ranks torchrun network; do
    for when in before after; do
        { echo '#!/bin/bash'; block "$when $part"; } >$part.$when
        [ "$(wc -l <$part.$when)" -ge 2 ]
        ok $? "the page has $part, $when: $(($(wc -l <$part.$when) - 1)) lines"
    done
done
block "profile network" >nccl.d/site.conf

# stand-ins for Python and torchrun, which print the settings that they find
program bin/python <<'END'
echo "$SLURM_PROCID: $RANK/$WORLD_SIZE $LOCAL_RANK $MASTER_ADDR port ${MASTER_PORT:-none} net $NCCL_SOCKET_IFNAME $NCCL_CROSS_NIC $NCCL_NET $FI_CXI_DISABLE_HOST_REGISTER"
END
program bin/torchrun <<'END'
nnodes=$PET_NNODES nproc=$PET_NPROC_PER_NODE host=$PET_MASTER_ADDR
for a; do
    case $a in
    --nnodes=*) nnodes=${a#*=} ;;
    --nproc_per_node=*) nproc=${a#*=} ;;
    --rdzv_endpoint=*) host=${a#*=} host=${host%:*} ;;
    esac
done
echo "$SLURM_PROCID: $nnodes nodes, $nproc processes, at $host"
END
ranks () { # ranks PART WHEN [OPTION]...: run PART.WHEN under salloc; its sorted output is in PART.WHEN.ranks
    script=$1.$2
    shift 2
    PATH=$work/bin:$PATH timeout 300 salloc -Q "$@" bash "$script" >"$script.out" 2>&1 </dev/null
    sort "$script.out" >"$script.ranks"
}
for shape in "-N2 -n4 --ntasks-per-node=2" "-N2 -n3" "-N2 -n4 -m cyclic" "-N1 -n2 -w n2"; do
    for when in before after; do
        ranks ranks $when $shape -c1
    done
    case $shape in -N1*) addr='s/ \(n2\|127.0.0.1\) / HERE /' ;; *) addr= ;; esac # one node needs no network
    is "$(sed "s/port .*//; $addr" ranks.after.ranks)" "$(sed "s/port .*//; $addr" ranks.before.ranks)" "$shape: each rank gets the same"
    is "$(wc -l <ranks.after.ranks) $(sed 's/.*port \([0-9]*\).*/\1/' ranks.after.ranks | sort -u | grep -c .)" "$(echo "$shape" | sed 's/.*-n\([0-9]\).*/\1/') 1" "all ranks, and one port"
done
ranks torchrun before -N2
ranks torchrun after -N2
is "$(cat torchrun.after.ranks)" "$(cat torchrun.before.ranks)" "torchrun: each node gets the same"
is "$(wc -l <torchrun.after.ranks)" 2 "on both nodes"
ranks network before -n2
ranks network after -n2
is "$(sed 's/.*net/net/' network.after.ranks)" "$(sed 's/.*net/net/' network.before.ranks)" "the profile: each rank gets the same"
like "$(cat network.after.ranks)" '^1: .*net hsn 1 AWS Libfabric 1$' "all of it"

# ---- the tests that the page names exist
for t in $(grep -o '[a-z]*\.t\b' "$srcdir/doc/boilerplate.md" | sort -u); do
    [ -n "$(find "$srcdir/tests" -name "$t" -o -name "${t%.t}.c")" ]
    ok $? "tests/$t"
done
done_testing
