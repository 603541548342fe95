#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run each fuzzer in tests/fuzz/list over its corpus: valid inputs, and inputs that once broke the parser
. "$srcdir/tests/lib.sh"
here=$srcdir/tests/fuzz
TMPDIR=$work
export TMPDIR LSAN_OPTIONS="suppressions=$here/leaks:print_suppressions=0:${LSAN_OPTIONS:-}"

names=$(sed -n 's/^\([a-z]*\) |.*/\1/p' "$here/list")
is "$names" "$(cd "$here/corpus" && ls)" "each fuzzer of the list has a corpus, and each corpus a fuzzer"
is "$(cd "$here" && for f in *.c; do echo "${f%.c}"; done | grep -vx -e fuzz -e main)" "$names" "and each harness a row"
for name in $names; do
    if [ ! -x "$builddir/tests/fuzz/$name" ]; then
        skip "$name" "not built here"
        continue
    fi
    timeout 300 "$builddir/tests/fuzz/$name" "$here/corpus/$name" >"$work/out" 2>&1
    status=$?
    is "$status" 0 "$name: $(tail -n 1 "$work/out" | tr -d '#')"
    # if the parser rejects the whole corpus, the corpus is outdated and tests nothing
    grep -q '^# \([0-9]*\) inputs, \1 refused' "$work/out"
    is $? 1 "$name: some are accepted"
    [ $status -eq 0 ] || tail -n 40 "$work/out" | sed 's/^/# /'
done
done_testing
