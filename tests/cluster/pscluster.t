#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# a parameter server by srun --dl=ps: C and Python, and a server that is killed; a Horovod script by --dl=torch
. "$srcdir/tests/lib.sh"
need_cluster
cluster_up ps --nodes=2 --cpus=4 --plugin="$PLUGIN dl=$builddir/launcher/dl"
embedding=$builddir/contrib/examples/ps/embedding
data=$srcdir/contrib/examples/digits/digits.csv.gz
DL_PS_TIMEOUT=60
export embedding data DL_PS_TIMEOUT

# Workers whose accuracy is at least so much (guessing has 0.1), of the lines of the program.
good () { awk -v least="$1" '$NF >= least && $1 == "worker" {n++} END {print n + 0}'; }
# without sync the weights are as old as the machine is busy
late=0.5

out=$(timeout 900 srun --dl=ps --dl-roles=ps:1,worker:* -N2 -n4 "$embedding" "$data" 2>err)
is $? 0 "one server, three workers, async"
is "$(echo "$out" | good $late)" 3 "all workers have learnt"
sed 's/^/# /' err
echo "$out" | sed 's/^/# /'

sync=$(DL_PS_MODE=sync timeout 900 srun --dl=ps --dl-roles=ps:2,worker:* -N2 -n4 "$embedding" "$data" 2>err | sort)
is "$(echo "$sync" | good 0.85)" 2 "two servers, sync"
sed 's/^/# /' err

# the second server kills itself on the way, and the scheduler takes its place
cat >lose.sh <<'END'
"$embedding" "$data" &
pid=$!
if [ "$DL_ROLE$DL_ROLE_INDEX" = ps1 ]; then
    while [ ! -e slow ]; do
        # the first save, of which the file soon goes again
        for f in slurmdl/ps.*/*.server-1.*; do [ -e "$f" ] && : >slow; done
        kill -0 $pid 2>/dev/null || break
        sleep 0.01
    done
    kill -9 $pid
    wait $pid
    echo "status $?"
    exit 0
fi
wait $pid
END
lost=$(DL_PS_MODE=sync DL_PS_SAVE_EVERY=20 timeout 900 srun --dl=ps --dl-roles=scheduler:1,ps:2,worker:* -N2 -n5 sh lose.sh 2>err | sort)
is "$(echo "$lost" | grep status)" "status 137" "a server is killed on the way"
is "$(echo "$lost" | grep worker)" "$sync" "and the workers learn the same as without"
sed 's/^/# /' err

python=/usr/bin/python3
if [ -f "$builddir/contrib/python/.libs/_slurmdl.so" ] && $python -c 'import numpy' 2>/dev/null; then
    mkdir -p site/slurmdl
    cp "$srcdir"/contrib/python/slurmdl/*.py "$builddir"/contrib/python/.libs/_slurmdl*.so site/slurmdl
    out=$(PYTHONPATH=$work/site timeout 900 srun --dl=ps --dl-roles=ps:1,worker:* -N2 -n3 $python "$srcdir/contrib/examples/ps/embedding.py" "$data" 2>err)
    is "$(echo "$out" | good $late)" 2 "the same in Python"
    sed 's/^/# /' err
else
    skip "the same in Python" "no python3-dev or python3-numpy"
fi

# two ranks on one node, one on the other
if [ -d site ] && $python -c 'import torch' 2>/dev/null; then
    cp -r "$srcdir/contrib/python/slurmdl/hvd" site/slurmdl
    sed 's/import horovod.torch as hvd/import slurmdl.hvd as hvd/' "$srcdir/tests/python/hvdscript.py" >script.py
    out=$(PYTHONPATH=$work/site OMP_NUM_THREADS=1 timeout 900 srun --dl=torch -N2 -n3 $python script.py "$data" --epochs=4 2>err)
    like "$out" '^ok - accuracy' "a script for Horovod, with the import changed, by srun --dl=torch"
    sed 's/^/# /' err
else
    skip "a script for Horovod" "no python3-torch"
fi
done_testing
