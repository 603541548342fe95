#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the Python package: by hand, with PyTorch, with scripts that know nothing of it, in a sweep; DL_TEST_PYTHON: another
# interpreter, for what Debian does not have (TensorBoard, Lightning, transformers, Keras, scikit-learn, mypy)
. "$srcdir/tests/lib.sh"
trap 'rm -rf "$work"' EXIT
python=/usr/bin/python3
package=$srcdir/contrib/python
here=$srcdir/tests/python
[ -f "$builddir/contrib/python/.libs/_slurmdl.so" ] || skip_all "no Python headers (python3-dev)"
$python -c 'import numpy, h5py' 2>/dev/null || skip_all "no python3-numpy, python3-h5py"
unset DL_DIR DL_ATTEMPT_DIR DL_RUN_DIR DL_LENGTH RANK WORLD_SIZE
mkdir "$work/site" "$work/site/slurmdl"
cp -r "$package"/slurmdl/*.py "$package"/slurmdl/hvd "$work/site/slurmdl"
cp "$builddir"/contrib/python/.libs/_slurmdl*.so "$work/site/slurmdl"
PYTHONPATH=$work/site:$here
PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE

# Run a script that speaks TAP in a folder of its own, and count its lines.
tap () { # tap NAME COMMAND...
    name=$1
    shift
    mkdir -p "$work/$name"
    (cd "$work/$name" && timeout "${limit:-300}" "$@") >"$work/$name.out" 2>"$work/$name.err"
    status=$?
    while IFS= read -r line; do
        case $line in
        "ok - "*" # SKIP "*) skip "${line#ok - }" "see there" ;;
        "ok - "*) ok 0 "$name: ${line#ok - }" ;;
        "not ok - "*) ok 1 "$name: ${line#not ok - }" ;;
        *) echo "# $line" ;;
        esac
    done <"$work/$name.out"
    is "$status" 0 "$name: ends"
    [ "$status" -eq 0 ] || tail -5 "$work/$name.err" | sed 's/^/# /'
}

# ---- by hand
case $CFLAGS in
*sanitize*)
    # an interpreter that is not built with it wants it first
    LD_PRELOAD=$($CC -print-file-name=libasan.so):$($CC -print-file-name=libubsan.so)
    ASAN_OPTIONS=detect_leaks=0
    export LD_PRELOAD ASAN_OPTIONS
    tap core $python "$here/core.py"
    tap arrays $python "$here/arrays.py"
    done_testing
    ;;
esac
cat >"$work/lazy.py" <<'END'
import importlib, sys, slurmdl

def loaded():
    maps = open("/proc/self/maps").read()
    return [m for m in ("_slurmdl", "_slurmdl_comm", "_slurmdl_ps") if f"slurmdl.{m}" in sys.modules or f"/{m}.so" in maps]

print(*loaded())
for name in ("comm", "ps"):
    importlib.import_module("slurmdl." + name)
    print(*loaded())
print(slurmdl.comm.Comm.__mro__[1].__module__, slurmdl.Error is slurmdl._slurmdl.Error)
END
is "$($python "$work/lazy.py")" "_slurmdl
_slurmdl _slurmdl_comm
_slurmdl _slurmdl_comm _slurmdl_ps
slurmdl._slurmdl_comm True" "import slurmdl loads neither the communicator nor the parameter server"
tap core $python "$here/core.py"
tap arrays $python "$here/arrays.py"
tap server $python "$here/server.py"
tap capture $python "$here/capture.py"

# ---- several ranks, and then another number of them
cd "$work" || exit 1
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

# ---- the word of a rank that was killed is still there when the next run begins
slab='
import numpy, slurmdl
run = slurmdl.init("killed")
run.protect_shard("x", numpy.ones(2), (4,), (2 * run.rank,))
run.save(1)
'
RANK=1 WORLD_SIZE=2 $python -c "$slab" 2>/dev/null &
pid=$!
wait_for 100 sh -c 'ls killed/.ranks.*/hello.1'
kill -9 $pid
wait $pid 2>/dev/null
sleep 2
RANK=0 WORLD_SIZE=2 timeout 300 $python -c "$slab" &
pid=$!
sleep 1
RANK=1 WORLD_SIZE=2 timeout 300 $python -c "$slab"
status=$?
wait $pid
is "$? $status" "0 0" "it is not taken for one of the next run's ranks, which comes later"

# ---- PyTorch: killed in mid-epoch, the training goes on as if nothing had been
if $python -c 'import torch' 2>/dev/null; then
    tap parts $python "$here/parts.py"
    tap sharded $python "$here/sharded.py" 4:pieces 3:some
    for workers in 0 2; do
        whole=$($python "$here/train.py" "whole$workers" 4 $workers 0 2>/dev/null | tail -1)
        $python "$here/train.py" "cut$workers" 4 $workers 0.2 >/dev/null 2>&1 &
        pid=$!
        wait_for 100 ls "cut$workers/a.1/ckpt/00000014.h5"
        kill -9 $pid
        wait $pid 2>/dev/null
        $python "$here/train.py" "cut$workers" 4 $workers 0 >cut.out 2>/dev/null
        like "$(head -1 cut.out)" '^from (14|21|28|35|42) [0-3] [1-9]' "$workers workers: killed, it goes on in the middle of an epoch"
        is "$(tail -1 cut.out)" "$whole" "$workers workers: with the same weights, moments and random numbers"
        like "$whole" '^step 44 weights [0-9a-f]{64}$' "$workers workers: at the end"
    done
else
    skip "PyTorch" "no python3-torch"
fi

# ---- a sweep
cp "$srcdir"/contrib/examples/python/digits.* "$srcdir/contrib/examples/digits/digits.csv.gz" .
PATH=/usr/bin:$PATH timeout 300 dl run --local digits.conf >sweep.out 2>&1
is $? 0 "a sweep"
like "$(cat sweep.out)" '^best accuracy 0\.[89]' "dl sees the metric"
is "$(cat digits-slurmdl-0001/log/0*/0* | grep -c '"op":"fail"')" 0 "no trial failed"
again=$(find digits-slurmdl-0001/trials -path '*/a.2/log' | head -1)
[ -n "$again" ] && first=$(sed -n 's/^epoch \([0-9]*\) .*/\1/p;1q' "$again")
is "${first:-0}" 2 "a trial that was promoted goes on from its checkpoint"

# ---- one that is paused and goes on
sed 's/"digits-slurmdl"/"paused"/; s/"asha"/"random"/; s/max_trials = 16/max_trials = 2/; s/max_length = 9/max_length = 900/; s/heartbeat = 5/heartbeat = 1/
     /divisor/d; /max_rungs/d' digits.conf >paused.conf
PATH=/usr/bin:$PATH timeout 300 dl run --local paused.conf >paused.out 2>&1 &
pid=$!
one=paused-0001/trials/0001
wait_for 100 grep -q '^epoch 3 ' $one/a.1/log
dl pause paused >/dev/null
wait $pid
is $? 4 "a sweep is paused"
last=$(sed -n 's/^epoch \([0-9]*\) .*/\1/p' $one/a.1/log | tail -1)
[ "${last:-900}" -lt 900 ]
ok $? "should_stop() ended the trainer after epoch $last"
PATH=/usr/bin:$PATH timeout 300 dl resume --local paused >resumed.out 2>&1
is $? 0 "it is resumed"
is "$(sed -n 's/^epoch \([0-9]*\) .*/\1/p' $one/a.2/log | sed -n '1p;$p' | xargs)" "$((last + 1)) 900" "the trainer goes on with the next epoch"
is "$(cat paused-0001/log/0*/0* | grep -c '"op":"fail"')" 0 "no trial failed"

# ---- a wheel
mkdir wheel unpacked
if $python -m pip --version >/dev/null 2>&1; then
    env -u PYTHONPATH CFLAGS=-O0 $python -m pip --disable-pip-version-check wheel -q --no-deps --no-index -w wheel "$package"
else
    (cd "$package" && env -u PYTHONPATH CFLAGS=-O0 $python -c 'import backend, sys; backend.build_wheel(sys.argv[1])' "$work/wheel")
fi >wheel.out 2>&1
is $? 0 "a wheel is built from the tree, without a network"
$python -m zipfile -e wheel/*.whl unpacked
is "$(PYTHONPATH=unpacked $python -c 'import slurmdl; slurmdl.init("w").log("a", 1, 1); print(slurmdl.__file__)')" \
    "$work/unpacked/slurmdl/__init__.py" "and works"

# ---- what Debian does not have
if [ -n "$DL_TEST_PYTHON" ]; then
    cp "$package"/slurmdl/*.pyi "$package"/slurmdl/py.typed "$work/site/slurmdl"
    tap other-core "$DL_TEST_PYTHON" "$here/core.py"
    tap other-arrays "$DL_TEST_PYTHON" "$here/arrays.py"
    tap other-parts "$DL_TEST_PYTHON" "$here/parts.py"
    limit=1200
    tap other-pieces "$DL_TEST_PYTHON" "$here/sharded.py" 4:pieces 3:some 2:optimizers 2:alone
    tap other-sharded "$DL_TEST_PYTHON" "$here/sharded.py"
    limit=
    tap other-capture "$DL_TEST_PYTHON" "$here/capture.py"
    # a stop that was requested stays so for the process
    for framework in lightning transformers keras sklearn; do
        tap $framework "$DL_TEST_PYTHON" "$here/frameworks.py" $framework
    done
    if "$DL_TEST_PYTHON" -m mypy --version >/dev/null 2>&1; then
        is "$(cd site && "$DL_TEST_PYTHON" -m mypy --strict --cache-dir="$work/mypy" slurmdl/*.py slurmdl/hvd/*.py slurmdl/_slurmdl*.pyi 2>&1 | tail -1 | sed 's/ in [0-9]* source files//')" \
            "Success: no issues found" "mypy --strict"
    fi
else
    skip "other frameworks" "DL_TEST_PYTHON is not set"
fi
done_testing
