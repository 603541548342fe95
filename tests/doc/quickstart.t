#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# contrib/quickstart: the commands that the demo suggests work as printed; the summary of a test run.
. "$srcdir/tests/lib.sh"
for function in say quoted next_commands results note_times count_suite report is_unbuilt; do
    eval "$(sed -n "/^$function ()/,/^}/p" "$srcdir/contrib/quickstart")"
done

# ---- the demo in a folder whose name needs quotes
place="$work/a user's tree/build"
mkdir -p "$place/installed/bin" "$place/demo"
ln -s "$builddir/launcher/dl" "$place/installed/bin/dl"
cp "$srcdir"/contrib/examples/own/* "$place/demo"
cat >"$place/demo/digits.conf" <<'END'
name = "digits"; entrypoint = "echo loss={lr}";
metrics = { pattern = "loss={loss}"; };
searcher = { name = "random"; metric = "loss"; max_trials = 3; };
hyperparameters = { lr = { type = "float"; minval = 0.0; maxval = 1.0; }; };
END
(cd "$place/demo" && timeout 300 dl run --local digits.conf) >out 2>&1
ok $? "a sweep"
next_commands "$place/installed/bin/dl" "$place/demo/digits-0001" "$place/demo/own.conf" >next
grep '^    ' next | sed 's/^    //' >commands
is "$(wc -l <commands)" 3 "three commands"
mkdir elsewhere
typed () { # typed N: run command N in another folder, with a minimal PATH and environment
    (cd elsewhere && env -i HOME="$work/elsewhere" PATH=/usr/bin:/bin timeout 300 sh -c "$(sed -n "$1p" ../commands)" 2>&1)
}
out=$(typed 1)
is "$? $(echo "$out" | grep -c ' completed  *1 ')" "0 3" "show prints the trials"
out=$(typed 2)
is "$? $(find elsewhere -name "*.html" | wc -l)" "0 1" "report writes a page"
like "$out" "\.html" "and prints its name"
out=$(typed 3)
is $? 0 "the user's own script runs"
like "$out" '^own: completed ' "to its end"
like "$(sed -n 3p commands)" "own\.conf'$" "and is a file to edit"

# ---- the summary of a test run: skips are not failures; the longest tests
build=$work/build
mkdir -p "$build/test/tests"
counted () ( # in a subshell, so that its counters do not change this test's
    # shellcheck disable=SC2034
    passed=0 failed=0 skipped=0 unsteady='' end='' start=$(date +%s)
    : >"$build/times"
    count_suite "$build/test"
    report
)
touch -d '1 minute ago' "$build/test/began"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    printf ':test-result: PASS\n:test-result: PASS\n:test-result: SKIP\n' >"$build/test/tests/t$i.trs"
    printf 'ok 1\n# %d s, 1 s of processor time\n' $((i * 10)) >"$build/test/tests/t$i.log"
done
counted >said
is "$?" 0 "no failure"
is "$(tail -n 1 said)" "24 passed, 0 failed, 12 skipped" "the closing line"
is "$(grep -c ' s of processor time  test/tests/t' said)" 10 "ten tests"
like "$(sed -n '/longest/{n;p}' said)" '^ *120 s, +1 s of processor time  test/tests/t12\.t$' "the longest one first"
printf ':test-result: FAIL\n' >>"$build/test/tests/t1.trs"
counted >said
is "$? $(tail -n 1 said)" "1 24 passed, 1 failed, 12 skipped" "a failure"

# ---- if something was not built, its tests are missing, and that is a failure
unbuilt () { # unbuilt LINE: print 0 if make's output LINE means that something was not built
    echo "$1" >"$build/test/check.out"
    is_unbuilt "$build/test"
    echo $?
}
is "$(unbuilt 'make[3]: *** [Makefile:10171: test-suite.log] Error 1')$(unbuilt 'make: *** [Makefile:12674: check-plain] Error 2')$(unbuilt '')" 111 \
    "failed tests have been built"
is "$(unbuilt 'make[2]: *** [Makefile:9422: tests/fuzz/x.o] Error 1')$(unbuilt 'fatal: making test-suite.log: failed to create x.trs')" 00 "a test that was not built is reported"

# ---- tests that need root
printf '#!/bin/sh\n# needs: root\necho 1..1; echo ok 1\n' >rooted.t
printf '#!/bin/sh\n# needs: root in part\necho 1..1; echo ok 1\n' >partly.t
if [ "$(id -u)" -eq 0 ]; then
    like "$("$srcdir/tests/limit" sh rooted.t)" '^ok 1$' "root runs the tests that need root"
else
    is "$("$srcdir/tests/limit" sh rooted.t)" "1..0 # SKIP needs root: make check-root" "tests that need root are skipped, with the reason"
fi
like "$("$srcdir/tests/limit" sh partly.t)" '^ok 1$' "tests that partly need root run"
missing=$(cd "$srcdir" && grep -lE '^(need_hosts|hosts_up|\. .*/users\.sh|\[ "\$\(id -u\)" -eq 0 \] \|\| skip_all)' tests/*/*.t | xargs grep -L '^# needs: root$')
is "$missing" "" "each root-only test says so in its first lines"
done_testing
