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

/* ---- cases ---- */

static struct CMUnitTest unit_cases[64];
static size_t unit_count;

static inline void add_case (struct CMUnitTest c)
{
    if (unit_count == COUNT (unit_cases))
        abort ();
    unit_cases[unit_count++] = c;
}

/* Define a case: CASE (NAME) { BODY }.  Cases run in the order of their lines. */
#define CASE(f) CASE_WITH (f, NULL, NULL)
#define CASE_WITH(f, setup, teardown)                                                              \
    static void f (void **state);                                                                  \
    __attribute__ ((constructor (1000 + __LINE__))) static void add_##f (void)                     \
    {                                                                                              \
        add_case ((struct CMUnitTest){ #f, f, setup, teardown, NULL });                            \
    }                                                                                              \
    static void f (void **state)

/* Run all cases. */
static inline int run_cases (CMFixtureFunction setup, CMFixtureFunction teardown)
{
    return _cmocka_run_group_tests ("tests", unit_cases, unit_count, setup, teardown);
}
#define RUN_CASES()                                                                                \
    int main (void)                                                                                \
    {                                                                                              \
        return run_cases (NULL, NULL);                                                             \
    }

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
