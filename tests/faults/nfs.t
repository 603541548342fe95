#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs: root in part
# Run dl on a file system that behaves like NFS, and on one that hangs. On some systems only root may open /dev/fuse.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/faults/benches.sh"
fuse_is_here || skip_all "no libfuse3-dev, /dev/fuse or fusermount3, or this user has no name"

begin model nfs.py "$builddir/tests/faults/nfs" --model
begin nfs nfs.py "$builddir/tests/faults/nfs" --trials="$(often 40 2000)" --seed="$seed"

# ---- dl check with a TMPDIR that hangs
mkdir under hung
"$builddir/tests/faults/nfs" -o backing="$work/under" hung >/dev/null 2>&1 &
nfs=$!
wait_for 300 mountpoint -q hung
kill -STOP $nfs
start=$(date +%s)
out=$(TMPDIR=$work/hung timeout 300 dl check)
is $? 79 "a file system that hangs"
like "$out" "TMPDIR: no answer for 8 s at .*/hung" "is reported"
[ $(($(date +%s) - start)) -le 250 ]
ok $? "in time"
kill -CONT $nfs
umount hung 2>/dev/null || fusermount3 -u hung
kill $nfs 2>/dev/null

finish model "the model of NFS"
finish nfs "three clients of one server"
done_testing
