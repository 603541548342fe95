#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank unpickles nothing that another rank sends, unless the caller passes trust=True.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
need_package numpy
preload_sanitizers
port=$((20000 + $$ % 2000 * 5))
RAN=$work/ran
export RAN OMP_NUM_THREADS=1

RANK=1 WORLD_SIZE=2 DL_COMM_ADDRESS=127.0.0.1:$port timeout 300 $python "$srcdir/tests/attacks/wire.py" >evil.out 2>&1 &
pid=$!
RANK=0 WORLD_SIZE=2 DL_COMM_ADDRESS=127.0.0.1:$port timeout 300 $python "$srcdir/tests/attacks/wire.py" >out 2>err
status=$?
count_tap ranks <out
is $status 0 "the rank succeeds" || tail -5 err
[ $status -eq 0 ] || { sed 's/^/# /' err evil.out | tail -20; kill $pid; }
wait $pid
is "$(grep -rlE 'pickle\.loads|allow_pickle|weights_only=False' "$srcdir/contrib/python/slurmdl" --include='*.py' | sed 's,.*/slurmdl/,,' | sort | xargs)" \
    "message.py tensors.py trust.py" "only files that ask first unpickle"
# allowed: the source of a function in the pinned experiment.conf, and annotations of a function that the caller passes
is "$(grep -rlE '(^|[^.a-z_])(eval|exec)\(' "$srcdir/contrib/python/slurmdl" --include='*.py' | sed 's,.*/slurmdl/,,' | sort | xargs)" \
    "source.py space.py" "only the user's own text is evaluated"
done_testing
