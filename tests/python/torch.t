#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the Python package with PyTorch: models, optimizer moments, random numbers, loaders, and a kill in mid-epoch
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/python/site.sh"
case $CFLAGS in *sanitize*) skip_all "slow under sanitizers" ;; esac
need_package numpy h5py torch
tap parts $python "$here/parts.py"
tap killed $python "$here/killed.py"
done_testing
