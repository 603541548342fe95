#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# communicators in Python: arrays, PyTorch, and a Horovod script
. "$srcdir/tests/lib.sh"
python=${DL_TEST_PYTHON:-/usr/bin/python3}
. "$srcdir/tests/python/site.sh"
need_package numpy
preload_sanitizers

cat >worlds <<END
one 1 $here/together.py
three 3 $here/together.py abort
late 2 $here/late.py
END
if ! has torch; then
    skip "PyTorch" "no python3-torch"
else
    case $CFLAGS in
    *sanitize*) skip "PyTorch" "slow under sanitizers" ;;
    *)
        sed 's/import horovod.torch as hvd/import slurmdl.hvd as hvd/' "$here/hvdscript.py" >script.py
        cat >>worlds <<END
torch
parallel 2 $here/parallel.py $work/store
hvd2 2 $here/hvdcalls.py
hvd3 3 $here/hvdcalls.py
byhand 2 $here/byhand.py
alone 1 $here/byhand.py
lost 3 $here/byhand.py lost
script 2 $work/script.py $srcdir/contrib/examples/digits/digits.csv.gz
END
        ;;
    esac
fi
tap ranks $python "$here/forked.py" <worlds

# ---- one of three ranks dies, and the others continue
mkdir elastic
cat >elastic.py <<'END'
import os, sys
from forked import start
try:
    import torch
except ImportError:
    pass
few = dict(DL_ELASTIC_MIN="2", DL_ELASTIC_SETTLE="10", DL_ELASTIC_START="3")
for pid in [start(sys.argv[1:], f"elastic.{r}", f"elastic.{r}.err", **few) for r in range(3)]:
    os.waitpid(pid, 0)
if "torch" in sys.modules:
    sys.exit(os.waitpid(start(sys.argv[1:], "elastic.late", "elastic.late.err"), 0)[1])
END
DL_ELASTIC_DIR=$work/elastic $python elastic.py "$here/elastic.py" 60 7
status=$?
is "$(cat elastic.[0-2])" "learned the same
learned the same" "a rank dies, and the others get the same error"
like "$(cat elastic.*.err)" 'continuing with the remaining ranks' "the others print that they continue"
[ ! -f elastic.late ] || is "$status: $(cat elastic.late elastic.late.err)" "0: slurmdl: this rank is not needed: the training has ended" \
    "Horovod's: a rank that is too late ends, and runs nothing"
[ "$(grep -c same elastic.[0-2] | grep -c ':1')" -eq 2 ] || tail -n 3 elastic.*.err | sed 's/^/# /'
done_testing
