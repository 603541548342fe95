#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/unit.h: SKIP_CASE() skips a case without failing the test, and cmocka's own skip() does not compile.
. "$srcdir/tests/lib.sh"

echo '#include <cmocka.h>' | ${CC:-cc} -include stdarg.h -include stddef.h -include stdint.h -include setjmp.h -xc -E - >/dev/null 2>&1 ||
    skip_all "no cmocka"

compile () { # compile NAME <BODY OF A CASE
    {
        printf '#include "tests/unit.h"\nCASE (other)\n{\n}\nCASE (here)\n{\n'
        cat
        printf '}\nRUN_CASES ()\n'
    } >"$1.c"
    # shellcheck disable=SC2086
    ${CC:-cc} ${CFLAGS:-} -I"$srcdir" "$1.c" -lcmocka -o "$1" >"$1.out" 2>&1
}

compile ours <<'END'
    SKIP_CASE ("no such machine");
    fail ();
END
ok $? "SKIP_CASE() compiles"
sed 's/^/# /' ours.out
is "$(./ours 2>/dev/null | grep '^ok')" "ok 1 - other
ok 2 - here # SKIP no such machine" "and skips a case, with the reason"
./ours >/dev/null 2>&1
is $? 0 "with status 0"

compile theirs <<'END'
    skip ();
END
is $? 1 "cmocka's skip() does not compile"
like "$(cat theirs.out)" 'poisoned "?skip' "because it is poisoned"

compile helper <<'END'
    skip_case ("elsewhere", "no reason");
END
./helper >/dev/null 2>&1
is $? 1 "only a case can be skipped"
done_testing
