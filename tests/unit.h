/* SPDX-License-Identifier: Apache-2.0 */
/* What unit tests need: common headers, cmocka, and main(). */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* cmocka gives each test a state, which few of ours have. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define COUNT(a) (sizeof (a) / sizeof (*(a)))

/* ---- a case that cannot be run here ---- */

/* cmocka prints "not ok" for its skip(), which is a failure in TAP: ours is the
 * only one that compiles. */
#undef skip
#pragma GCC poison skip _skip

/* In the function of a case: it ends here, and counts as skipped. */
#define SKIP_CASE(why)                                                                             \
    do {                                                                                           \
        skip_case (__func__, why);                                                                 \
        return;                                                                                    \
    } while (0)

/* What cmocka runs, and prints the names of. */
static struct CMUnitTest *unit_cases;
static size_t unit_count;

static inline void skip_case (const char *name, const char *why)
{
    for (size_t i = 0; i < unit_count; i++)
        if (!strcmp (unit_cases[i].name, name)) {
            char *said = malloc (strlen (name) + strlen (why) + 16);
            assert_non_null (said);
            sprintf (said, "%s # SKIP %s", name, why);
            unit_cases[i].name = said;
            return;
        }
    fail_msg ("%s is no case", name);
}

static inline int run_cases (const struct CMUnitTest *cases, size_t n, CMFixtureFunction setup,
                             CMFixtureFunction teardown)
{
    if (!(unit_cases = malloc (n * sizeof (*cases))))
        return 1;
    memcpy (unit_cases, cases, n * sizeof (*cases));
    unit_count = n;
    return _cmocka_run_group_tests ("tests", unit_cases, n, setup, teardown);
}
#undef cmocka_run_group_tests
#define cmocka_run_group_tests(cases, setup, teardown)                                             \
    run_cases (cases, COUNT (cases), setup, teardown)
#undef cmocka_run_group_tests_name

/* The end of a test: main(), which runs the cases of a table. */
#define RUN_TESTS(tests)                                                                           \
    int main (void)                                                                                \
    {                                                                                              \
        return cmocka_run_group_tests (tests, NULL, NULL);                                         \
    }
