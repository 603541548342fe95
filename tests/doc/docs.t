#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples in the manuals work.
. "$srcdir/tests/lib.sh"

# ---- slurmdl(3): the example compiles, trains and saves
sed -n '/^\.SH EXAMPLE/,/^\.fi/p' "$srcdir/doc/slurmdl.3" | sed '/^\./d; s/\\-/-/g' >prog.c
${CC:-cc} ${CFLAGS:-} -Wall -Wextra -Werror -I"$srcdir/runtime" prog.c -L"$builddir/runtime/.libs" -lslurmdl \
    -Wl,-rpath,"$builddir/runtime/.libs" -o prog >out 2>&1
ok $? "the example of slurmdl(3) compiles"
sed 's/^/# /' out
./prog
ok $? "and runs"
holds "and saves" [ -f slurmdl/a.1/ckpt/00000100.h5 ]

# ---- formats.md: the reader in Python
if /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    sed -n '/^    import h5py/,/^$/p' "$srcdir/doc/formats.md" | sed 's/^    //; s/training_loss/loss/; s/"metrics.h5"/"slurmdl\/a.1\/metrics.h5"/' >read.py
    like "$(/usr/bin/python3 read.py)" '^\[ *1 +2 +3' "the reader of formats.md works"
else
    skip "the reader of formats.md" "no python3-h5py"
fi

# ---- the header and the manual have the same functions
grep -o 'slurmdl_[a-z_]* (' "$srcdir/runtime/slurmdl.h" | grep -v 'slurmdl_\(metrics\|checkpoint\|row\)' | tr -d ' (' | sort -u >header
grep -o 'slurmdl_[a-z_]* ([^3]' "$srcdir/doc/slurmdl.3" | sed 's/ (.*//' | sort -u >manual
is "$(cat manual)" "$(cat header)" "slurmdl(3) has the functions of slurmdl.h"

grep -o 'slurmdl_[a-z_]* (' "$srcdir/runtime/slurmdl_comm.h" | tr -d ' (' | sort -u >header
sed -n '/^\.SH SYNOPSIS/,/^\.SH DESC/p' "$srcdir/doc/slurmdl_comm.3" | grep -o 'slurmdl_[a-z_]* (' | tr -d ' (' | sort -u >manual
is "$(cat manual)" "$(cat header)" "slurmdl_comm(3) has the functions of slurmdl_comm.h"

# ---- slurmdl_comm(3): the example compiles, and runs as a single rank
sed -n '/^\.SH EXAMPLE/,/^\.fi/p' "$srcdir/doc/slurmdl_comm.3" | sed '/^\./d; /^The mean/d; s/\\-/-/g; s/\\e/\\/g' >mean.c
${CC:-cc} ${CFLAGS:-} -Wall -Wextra -Werror -I"$srcdir/runtime" mean.c -L"$builddir/runtime/.libs" -lslurmdl-comm \
    -Wl,-rpath,"$builddir/runtime/.libs" -o mean >out 2>&1
ok $? "the example of slurmdl_comm(3) compiles"
sed 's/^/# /' out
is "$(env -u RANK -u WORLD_SIZE -u SLURM_PROCID ./mean)" "rank 0 of 1: 0" "and runs"

# ---- the experiment of dl-experiment(5)
sed -n '/^\.nf/,/^\.fi/p; /^\.fi/q' "$srcdir/doc/dl-experiment.5" | sed '/^\./d; s/\\-/-/g' >exp.conf
touch train.py
runs 0 "the example of dl-experiment(5) is accepted" dl run --dry-run exp.conf
sed 's/^/# /' out

sed -n '/^A part of the file above in YAML/,/^\.fi/p' "$srcdir/doc/dl-experiment.5" | sed '1d; /^\./d; s/\\-/-/g' >exp.yaml
runs 0 "so is the YAML one" dl run --dry-run exp.yaml
sed 's/^/# /' out

# ---- dl-job(1): each file and each command of its examples
cat >split.awk <<'END'
/^\.SH / { on = $2 == "EXAMPLES" }
/^\.fi/ { block = 0 }
block {
    if (!file)
        file = sprintf ("%02d.%s", ++n, /^name = / ? "conf" : /^import / ? "py" : "sh")
    print >file
}
/^\.nf/ { block = on; file = "" }
END
mkdir jobs
(
    cd jobs && touch train.py mnist.py && printf '#!/bin/sh\n' >ring && chmod +x ring
    sed 's/\\-/-/g; s/\\e/\\/g' "$srcdir/doc/dl-job.1" | awk -f ../split.awk
    sed -i 's/^dl job /&--dry-run /' ./*.sh
)
is "$(find jobs -name '*.conf' | wc -l) $(find jobs -name '*.sh' | wc -l)" "7 7" "the examples of dl-job(1): files and commands"
for file in jobs/*.conf jobs/*.sh; do
    case $file in *.conf) set -- dl job --dry-run "${file#*/}" ;; *) set -- sh -e "${file#*/}" ;; esac
    (cd jobs && "$@") >out 2>&1
    ok $? "$(sed -n '/^name = "\(.*\)";/s//\1/p; /^dl job/p' "$file" | head -1) is accepted"
    sed 's/^/# /' out
done

# ---- README.md: links and examples
readme=$srcdir/README.md
for file in "$readme" "$srcdir"/doc/*.md; do
    grep -oE '\]\([^)#:]+\)' "$file" | tr -d ']()' | while read -r link; do
        [ -e "${file%/*}/$link" ] || echo "${file##*/}: $link"
    done
done >missing
is "$(cat missing)" "" "the targets of links in the README and doc/*.md exist"
grep -oE '\b(dl|slurmdl)[a-z_-]*\([1-8]\)' "$readme" "$srcdir/doc/cookbook.md" | sed 's/.*://' | sort -u | tr '(' . | tr -d ')' | while read -r page; do
    [ -f "$srcdir/doc/$page" ] || [ -f "$builddir/doc/$page" ] || echo "$page"
done >missing
is "$(cat missing)" "" "so do the pages that they name"
section () { # section HEADING: print the first block of code below it
    awk -v heading="## $1" '$0 == heading { on = 1; next } /^## / { on = 0 } on && /^    / { block = 1; print substr ($0, 5) }
        on && block && !/^    / && NF { exit }' "$readme"
}
mkdir script
section "An unmodified script" >script/readme.conf
touch script/digits.py
(cd script && dl run --dry-run readme.conf) >out 2>&1
ok $? "the experiment of the README is accepted"
sed 's/^/# /' out
{
    echo '#include <stdint.h>
static double train (int64_t epoch, double lr) { return (double)epoch * lr; }
int main (void) {
    float weights[4] = { 0 }; uint64_t n = 4; int64_t epoch = 0; struct slurmdl_error err;'
    section C | sed '/^#include/d'
    echo '    return 0; }'
} >body.c
{ section C | grep '^#include'; cat body.c; } >readme.c
${CC:-cc} ${CFLAGS:-} -Wall -Wextra -Werror -I"$srcdir/runtime" readme.c -L"$builddir/runtime/.libs" -lslurmdl \
    -Wl,-rpath,"$builddir/runtime/.libs" -o readme >out 2>&1
ok $? "the program of the README compiles"
sed 's/^/# /' out
DL_LENGTH=3 DL_RUN_DIR=$work/readme.run ./readme
ok $? "and runs"
section Python >readme.py
python3 -c 'import ast, sys; ast.parse(open("readme.py").read())'
ok $? "the Python program is valid Python"

# ---- ARCHITECTURE.md: the files that its walks name define the functions
sed -n '/^<!-- walk -->/,/^<!-- .walk -->/p' "$srcdir/doc/ARCHITECTURE.md" | grep -o '`[^`]*`' | tr -d '`' | while read -r word; do
    case $word in
    */*.c | */*.py) file=$word ;;
    *'()') grep -qE "^([a-z].*[ *])?${word%()} ?\\(" "$srcdir/$file" || echo "$file has no $word" ;;
    esac
done >missing 2>&1
is "$(cat missing)" "" "the walks of ARCHITECTURE.md are correct"

# ---- security.md: every file that listens needs a row in its table
is "$(cd "$srcdir" && grep -rlE '\b(listen|listen_open|listen_open_range) \(|socketserver|HTTPServer|\.listen\(' --include='*.c' --include='*.py' runtime launcher spank contrib | sort | xargs)" \
    "launcher/heal/watch.c launcher/node/gather.c launcher/node/peers.c runtime/comm/bootstrap/node.c runtime/comm/bootstrap/step.c runtime/comm/bootstrap/tcp.c runtime/comm/elastic/membership.c runtime/comm/mesh/endpoint.c runtime/comm/net/listen.c spank/rollcall.c" \
    "security.md has all listeners"
# Its claims: each table row and each paragraph of guarantees names an existing test, as `FILE: CASE`.
reference='`[a-z][a-z0-9/_]*[.](t|c|py): [^`]*`'
grep -oE "$reference" "$srcdir/doc/security.md" | tr -d '`' | while IFS= read -r claim; do
    grep -qF -e "${claim#*: }" "$srcdir/tests/${claim%%: *}" 2>/dev/null || echo "$claim"
done >missing
is "$(cat missing)" "" "each test that security.md names exists"
is "$(awk -v reference="$reference" '!/^[|]/ { table = 0 } /[|] tests [|]$/ { table = 1; next } /^[|] ---/ { next } /^[|]/ && (!table || $0 !~ reference) { print FNR ": " substr ($0, 1, 60) }' \
    "$srcdir/doc/security.md")" "" "each row of its tables names one"

for file in "$srcdir"/tests/attacks/*.t; do
    grep -q "\b${file##*/}" "$srcdir/tests/attacks/README.md" || echo "${file##*/}"
done >missing
is "$(cat missing)" "" "tests/attacks/README.md has each test"

# ---- the repository: no state of an experiment, no large file
if git -C "$srcdir" -c safe.directory='*' ls-files -z >tracked 2>/dev/null && [ -s tracked ]; then
    is "$(tr '\0' '\n' <tracked | grep -E '(^|/)[.]dl-code/')" "" "no frozen code of an experiment is tracked"
    is "$(cd "$srcdir" && xargs -0 sh -c 'find "$@" -prune -size +2048' find <"$work/tracked" 2>/dev/null)" "" "and no file larger than 1 MB"
else
    skip "tracked files" "not a git repository"
fi

# ---- CONTRIBUTING.md: one name for one thing
is "$(cd "$srcdir" && grep -rhoE --include='*.[ch]' '^(struct|enum) [a-z_0-9]+ \{' searcher runtime launcher spank | sed 's/^[a-z]* //' | sort | uniq -d)" "" \
    "each struct and enum is defined once"

# ---- each nested list ends in its section; mandoc does not check that
is "$(awk '/^\.RS/ { d++ } /^\.RE/ { d-- } d < 0 || /^\.SH/ && d { print FILENAME ":" FNR; d = 0 }' "$srcdir"/doc/*.[1-8])" "" \
    "each .RS of the manuals has its .RE in its section"

# ---- no sentence is there twice, as after a merge that kept the old one beside the new one
cat >twice.awk <<'END'
FNR == 1 { split ("", at); last = ""; shown = 0 }
/^\.(nf|TS)/ || /^```/ && !shown { shown = 2 }
!shown && length && $0 == last && !/^\.RE/ { print FILENAME ":" FNR ": " $0 }
!shown && length > 30 && !/^[.|]|^    / {
    if (($0 in at) && FNR - at[$0] < 10 && $0 != last)
        print FILENAME ":" FNR ": " $0
    at[$0] = FNR
}
/^\.(fi|TE)/ || /^```/ && shown == 1 { shown = 0 }
shown == 2 { shown = 1 }
{ last = $0 }
END
is "$(cd "$srcdir" && awk -f "$work/twice.awk" doc/*.[1-8] doc/*.md ./*.md)" "" "no sentence of the manuals occurs twice"
done_testing
