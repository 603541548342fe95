#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Python package: called directly, with unmodified scripts, and as a wheel.  DL_TEST_PYTHON names another interpreter
# for packages that Debian does not have (TensorBoard, Lightning, transformers, Keras, scikit-learn, mypy).
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy h5py

# ---- direct calls
if preload_sanitizers; then
    tap core $python "$here/core.py"
    tap arrays $python "$here/arrays.py"
    done_testing
fi
cat >"$work/lazy.py" <<'END'
import importlib, sys, slurmdl

def loaded():
    maps = open("/proc/self/maps").read()
    return [m for m in ("_slurmdl", "_slurmdl_comm") if f"slurmdl.{m}" in sys.modules or f"/{m}.so" in maps]

print(*loaded())
importlib.import_module("slurmdl.comm")
print(*loaded())
print(slurmdl.comm.Comm.__mro__[1].__module__, slurmdl.Error is slurmdl._slurmdl.Error)
END
is "$($python "$work/lazy.py")" "_slurmdl
_slurmdl _slurmdl_comm
slurmdl._slurmdl_comm True" "import slurmdl does not load the communicator"
tap core $python "$here/core.py"
tap arrays $python "$here/arrays.py"
tap faults $python "$here/faults.py"
tap capture $python "$here/capture.py"

# ---- several ranks, then restored by another number of ranks
for ranks in 3 2; do
    rank=0
    rm -f ranks.out
    while [ $rank -lt $ranks ]; do
        RANK=$rank WORLD_SIZE=$ranks timeout 300 $python "$here/ranks.py" 12 &
        rank=$((rank + 1))
    done >>ranks.out 2>&1
    wait
    is "$(grep -c ": step $((4 - ranks)), stopped at" ranks.out)" $ranks "$ranks ranks: one checkpoint for all"
    is "$(sed 's/.*://' ranks.out | sort -u | wc -l)" 1 "$ranks ranks: all stop at the same step"
    [ "$(grep -c stopped ranks.out)" -eq $ranks ] || sed 's/^/# /' ranks.out
done

# ---- the file of a killed rank is still there when the next run starts
slab='
import numpy, slurmdl
run = slurmdl.init("killed")
run.protect_shard("x", numpy.ones(2), (4,), (2 * run.rank,))
run.save(1)
'
RANK=1 WORLD_SIZE=2 $python -c "$slab" 2>/dev/null &
pid=$!
wait_for 300 sh -c 'ls killed/.ranks.*/hello.1'
kill -9 $pid
wait $pid 2>/dev/null
sleep 2
RANK=0 WORLD_SIZE=2 timeout 300 $python -c "$slab" &
pid=$!
sleep 1
RANK=1 WORLD_SIZE=2 timeout 300 $python -c "$slab"
status=$?
wait $pid
is "$? $status" "0 0" "a killed rank is not mistaken for one of the next run"

# ---- a wheel
mkdir wheel unpacked
if $python -m pip --version >/dev/null 2>&1; then
    env -u PYTHONPATH CFLAGS="-O0 -g0" $python -m pip --disable-pip-version-check wheel -q --no-deps --no-index -w wheel "$package"
else
    (cd "$package" && env -u PYTHONPATH CFLAGS="-O0 -g0" $python -c 'import backend, sys; backend.build_wheel(sys.argv[1])' "$work/wheel")
fi >wheel.out 2>&1
is $? 0 "a wheel is built from the tree, without a network"
$python -m zipfile -e wheel/*.whl unpacked
is "$(PYTHONPATH=unpacked $python -c 'import slurmdl; slurmdl.init("w").log("a", 1, 1); print(slurmdl.__file__)')" \
    "$work/unpacked/slurmdl/__init__.py" "and works"

# ---- packages that Debian does not have
if [ -n "$DL_TEST_PYTHON" ]; then
    cp "$package"/slurmdl/*.pyi "$package"/slurmdl/py.typed "$work/site/slurmdl"
    tap other-core "$DL_TEST_PYTHON" "$here/core.py"
    tap other-arrays "$DL_TEST_PYTHON" "$here/arrays.py"
    tap other-parts "$DL_TEST_PYTHON" "$here/parts.py"
    tap other-pieces "$DL_TEST_PYTHON" "$here/sharded.py" 4:pieces 3:some 2:optimizers 2:alone
    tap other-sharded "$DL_TEST_PYTHON" "$here/sharded.py"
    tap other-capture "$DL_TEST_PYTHON" "$here/capture.py"
    # a requested stop stays set for the whole process, so each framework needs its own process
    for framework in lightning transformers keras sklearn; do
        tap $framework "$DL_TEST_PYTHON" "$here/frameworks.py" $framework
    done
    if "$DL_TEST_PYTHON" -m mypy --version >/dev/null 2>&1; then
        is "$(cd site && "$DL_TEST_PYTHON" -m mypy --strict --cache-dir="$work/mypy" slurmdl/*.py slurmdl/det/*.py slurmdl/export/*.py slurmdl/imports/*.py slurmdl/hvd/*.py slurmdl/_slurmdl*.pyi 2>&1 | tail -1 | sed 's/ in [0-9]* source files//')" \
            "Success: no issues found" "mypy --strict"
    fi
else
    skip "other frameworks" "DL_TEST_PYTHON is not set"
fi
done_testing
