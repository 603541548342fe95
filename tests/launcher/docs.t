#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# the examples of the manuals are true
. "$srcdir/tests/lib.sh"
cd "$work" || exit 1

# ---- slurmdl(3): the example compiles, trains, goes on
sed -n '/^\.SH EXAMPLE/,/^\.fi/p' "$srcdir/doc/slurmdl.3" | sed '/^\./d; s/\\-/-/g' >prog.c
# shellcheck disable=SC2086
${CC:-cc} ${CFLAGS:-} -Wall -Wextra -Werror -I"$srcdir/runtime" prog.c -L"$builddir/runtime/.libs" -lslurmdl \
    -Wl,-rpath,"$builddir/runtime/.libs" -o prog >out 2>&1
ok $? "the example of slurmdl(3) compiles"
sed 's/^/# /' out
./prog
ok $? "and runs"
[ -f slurmdl/a.1/ckpt/00000100.h5 ]
ok $? "and saves"

# ---- formats.md: the reader in Python
if /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    sed -n '/^    import h5py/,/^$/p' "$srcdir/doc/formats.md" | sed 's/^    //; s/training_loss/loss/; s/"metrics.h5"/"slurmdl\/a.1\/metrics.h5"/' >read.py
    like "$(/usr/bin/python3 read.py)" '^\[ *1 +2 +3' "the reader of formats.md reads"
else
    skip "the reader of formats.md" "no python3-h5py"
fi

# ---- every function of the header is in the manual, and the other way round
grep -o 'slurmdl_[a-z_]* (' "$srcdir/runtime/slurmdl.h" | grep -v 'slurmdl_\(metrics\|checkpoint\|row\)' | tr -d ' (' | sort -u >header
grep -o 'slurmdl_[a-z_]* ([^3]' "$srcdir/doc/slurmdl.3" | sed 's/ (.*//' | sort -u >manual
is "$(cat manual)" "$(cat header)" "slurmdl(3) has the functions of slurmdl.h"

for page in slurmdl_comm slurmdl_ps; do
    grep -o 'slurmdl_[a-z_]* (' "$srcdir/runtime/$page.h" | tr -d ' (' | sort -u >header
    sed -n '/^\.SH SYNOPSIS/,/^\.SH DESC/p' "$srcdir/doc/$page.3" | grep -o 'slurmdl_[a-z_]* (' | tr -d ' (' | sort -u >manual
    is "$(cat manual)" "$(cat header)" "$page(3) has the functions of $page.h"
done

# ---- slurmdl_comm(3): the example compiles, and is one rank
sed -n '/^\.SH EXAMPLE/,/^\.fi/p' "$srcdir/doc/slurmdl_comm.3" | sed '/^\./d; /^The mean/d; s/\\-/-/g; s/\\e/\\/g' >mean.c
# shellcheck disable=SC2086
${CC:-cc} ${CFLAGS:-} -Wall -Wextra -Werror -I"$srcdir/runtime" mean.c -L"$builddir/runtime/.libs" -lslurmdl-comm \
    -Wl,-rpath,"$builddir/runtime/.libs" -o mean >out 2>&1
ok $? "the example of slurmdl_comm(3) compiles"
sed 's/^/# /' out
is "$(env -u RANK -u WORLD_SIZE -u SLURM_PROCID ./mean)" "rank 0 of 1: 0" "and runs"

# ---- the experiment of dl-experiment(5)
sed -n '/^\.SH EXAMPLE/,/^\.fi/p' "$srcdir/doc/dl-experiment.5" | sed '/^\./d; s/\\-/-/g' >exp.conf
touch train.py
dl run --dry-run exp.conf >out 2>&1
ok $? "the example of dl-experiment(5) is accepted"
sed 's/^/# /' out

sed -n '/^A part of it in YAML/,/^\.fi/p' "$srcdir/doc/dl-experiment.5" | sed '1d; /^\./d; s/\\-/-/g' >exp.yaml
dl run --dry-run exp.yaml >out 2>&1
ok $? "and that in YAML"
sed 's/^/# /' out

# ---- ARCHITECTURE.md: the files of the walks have the functions
sed -n '/^<!-- walk -->/,/^<!-- .walk -->/p' "$srcdir/doc/ARCHITECTURE.md" | grep -o '`[^`]*`' | tr -d '`' | while read -r word; do
    case $word in
    */*.c | */*.py) file=$word ;;
    *'()') grep -qE "^([a-z].*[ *])?${word%()} ?\\(" "$srcdir/$file" || echo "$file has no $word" ;;
    esac
done >missing 2>&1
is "$(cat missing)" "" "the walks of ARCHITECTURE.md are true"

# ---- a list within a list ends where it should, which mandoc does not tell
is "$(awk '/^\.RS/ { d++ } /^\.RE/ { d-- } d < 0 || /^\.SH/ && d { print FILENAME ":" FNR; d = 0 }' "$srcdir"/doc/*.[1-8])" "" \
    "each .RS of the manuals has its .RE in its section"
done_testing
