#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random faults in dl search-server sessions and in experiment files: dl must end in time and print only its own messages.
. "$srcdir/tests/lib.sh"
command -v python3 >/dev/null || skip_all "no python3"

seed=${DL_TEST_SEED:-1}
cases=${DL_FUZZ_CASES:-$(often 120 5000)}
for what in server file; do
    python3 "$srcdir/tests/launcher/fuzz.py" $what "$cases" "$seed" >out 2>&1
    ok $? "$what: $cases cases of seed $seed"
    sed 's/^not ok/# bad:/; s/^\([^#]\)/# \1/' out
    like "$(cat out)" '^# [0-9]+ cases, [1-9][0-9]* of them without a fault$' "$what: some of them without a fault"
done
done_testing
