/* SPDX-License-Identifier: Apache-2.0 */
/* Common headers, cmocka and main() for unit tests. */
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

/* cmocka passes a state to each test; few of ours use it. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define COUNT(a) (sizeof (a) / sizeof (*(a)))

/* ---- skipping a case ---- */

/* cmocka's skip() prints "not ok", which TAP counts as a failure, so it does not
 * compile: use SKIP_CASE(). */
#undef skip
#pragma GCC poison skip _skip

/* Return from the function of a case, and report the case as skipped. */
#define SKIP_CASE(why)                                                                             \
    do {                                                                                           \
        skip_case (__func__, why);                                                                 \
        return;                                                                                    \
    } while (0)

/* A copy of the cases, because skip_case() changes names. */
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

/* Define main(), which runs the cases of a table. */
#define RUN_TESTS(tests)                                                                           \
    int main (void)                                                                                \
    {                                                                                              \
        return cmocka_run_group_tests (tests, NULL, NULL);                                         \
    }
