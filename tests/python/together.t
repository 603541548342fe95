#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the ranks of a communicator from Python: arrays, PyTorch, a script that was written for Horovod
. "$srcdir/tests/lib.sh"
python=${DL_TEST_PYTHON:-/usr/bin/python3}
. "$srcdir/tests/python/site.sh"
need_package numpy
export OMP_NUM_THREADS=1
preload_sanitizers
port=$((10000 + $$ % 2000 * 5))

# Run a script as so many ranks; rank 0's lines of TAP are counted.
together () { # together NAME RANKS SCRIPT [ARGUMENT...]
    name=$1
    ranks=$2
    shift 2
    mkdir -p "$work/$name"
    cd "$work/$name" || exit 1
    # below those that the kernel gives away, and below contrib/minicluster's
    port=$((port + 1))
    pids=
    rank=0
    while [ $rank -lt "$ranks" ]; do
        RANK=$rank WORLD_SIZE=$ranks DL_COMM_ADDRESS=127.0.0.1:$port timeout 300 $python "$@" >out.$rank 2>err.$rank &
        pids="$pids $!"
        rank=$((rank + 1))
    done
    bad=0
    for pid in $pids; do
        wait "$pid" || bad=$((bad + 1))
    done
    count_tap "$name" <out.0
    is $bad 0 "$name: $ranks ranks end well"
    [ $bad -eq 0 ] || tail -n 4 err.* | sed 's/^/# /'
    cd "$work" || exit 1
}

together one 1 "$here/together.py"
together three 3 "$here/together.py" abort
together late 2 "$here/late.py"
if $python -c 'import torch' 2>/dev/null; then
    case $CFLAGS in
    *sanitize*) skip "PyTorch" "slow under sanitizers" ;;
    *)
        together parallel 2 "$here/parallel.py" "$work/store"
        together hvd2 2 "$here/hvdcalls.py"
        together hvd3 3 "$here/hvdcalls.py"
        sed 's/import horovod.torch as hvd/import slurmdl.hvd as hvd/' "$here/hvdscript.py" >"$work/script.py"
        together script 2 "$work/script.py" "$srcdir/contrib/examples/digits/digits.csv.gz"
        ;;
    esac
else
    skip "PyTorch" "no python3-torch"
fi

# ---- three ranks, of which one dies; the others go on
mkdir elastic
rank=0
for _ in 0 1 2; do
    DL_ELASTIC_DIR=$work/elastic DL_ELASTIC_MIN=2 DL_ELASTIC_SETTLE=10 DL_ELASTIC_START=3 timeout 300 $python "$here/elastic.py" 60 7 >elastic.$rank 2>elastic.$rank.err &
    rank=$((rank + 1))
done
wait
is "$(cat elastic.[0-2])" "learned the same
learned the same" "a rank dies, and the others learn the same"
like "$(cat elastic.*.err)" 'going on with those that are left' "they say so"
if $python -c 'import torch' 2>/dev/null; then
    DL_ELASTIC_DIR=$work/elastic timeout 300 $python "$here/elastic.py" 60 7 >elastic.late 2>&1
    is "$?: $(cat elastic.late)" "0: slurmdl: no place for this rank: the training has ended" "Horovod's: who comes too late ends, and runs nothing"
fi
[ "$(grep -c same elastic.[0-2] | grep -c ':1')" -eq 2 ] || tail -n 3 elastic.*.err | sed 's/^/# /'
done_testing
