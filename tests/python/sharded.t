#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sharded PyTorch models
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
case $CFLAGS in *sanitize*) skip_all "slow under sanitizers" ;; esac
need_package numpy h5py torch
tap sharded $python "$here/sharded.py" 4:pieces 3:some
done_testing
