/* SPDX-License-Identifier: Apache-2.0 */
/* What a site's bounds and lists do to options of any kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "spank/check.h"
#include "spank/policy.h"

static int told;

static int any (const char *value, char *why, size_t size)
{
    (void)value;
    (void)why;
    (void)size;
    return 0;
}

/* Options of another plugin, with numbers among their values. */
const struct plugin_option plugin_options[] = {
    [0 ... PLUGIN_OPTIONS
     - 1] = { "dl-seconds", "N", "", NULL, any, true, "10", 0 },
};

int option_check (int row, const char *value, char *why, size_t size)
{
    return plugin_options[row].check (value, why, size);
}

void plugin_complain (const char *fmt, ...)
{
    (void)fmt;
    told++;
}

spank_context_t spank_context (void)
{
    return S_CTX_LOCAL;
}

static const struct {
    const char *argument;
    const char *value;
    int taken; /* -1: the argument is wrong */
    const char *why;
} cases[] = {
    /* clang-format off */
    { "min_seconds=5",    "5",       1, "" },
    { "min_seconds=5",    "4.9",     0, "this site allows 5 or more" },
    { "min_seconds=5",    "10,4",    0, "this site allows 5 or more" },
    { "min_seconds=5",    "quick",   1, "" },
    { "min_seconds=5",    "off",     1, "" },
    { "min_seconds=5",    ".",       1, "" },
    { "max_seconds=5",    "5",       1, "" },
    { "max_seconds=5",    "6s",      0, "this site allows 5 or less" },
    { "max_seconds=5",    "1e9",     0, "this site allows 5 or less" },
    { "max_seconds=0",    "6",       1, "" },
    { "max_seconds=5s",   "6",      -1, "" },
    { "max_seconds=",     "6",      -1, "" },
    { "allow_seconds=10", "10",      1, "" },
    { "allow_seconds=10", "none",    1, "" },
    { "allow_seconds=10", "1",       0, "this site allows 10" },
    { "allow_seconds=10", "10,full", 0, "this site allows 10" },
    { "deny_seconds=a,b", "10,b",    0, "this site does not allow a,b" },
    { "deny_seconds=a,b", "c",       1, "" },
    { "seconds=30",       "1",       1, "" },
    /* clang-format on */
};

static void all_cases (void **state)
{
    struct site_policy p;

    (void)state;
    for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++) {
        char *argument = (char *)cases[i].argument;
        char why[WHY_SIZE] = "";
        int rv;
        told = 0;
        policy_read (&p, 1, &argument);
        rv = policy_check (&p, 0, cases[i].value, why, sizeof (why));
        assert_int_equal (told, cases[i].taken < 0);
        assert_int_equal (rv, cases[i].taken ? 0 : -1);
        assert_string_equal (why, cases[i].why);
    }
}

static void a_default_keeps_to_the_bounds (void **state)
{
    char *good[] = { "seconds=30", "min_seconds=5" };
    char *bad[] = { "seconds=3", "min_seconds=5" };
    struct site_policy p;

    (void)state;
    told = 0;
    policy_read (&p, 2, good);
    assert_string_equal (p.fallback[0], "30");
    assert_int_equal (told, 0);
    policy_read (&p, 2, bad);
    assert_string_equal (p.fallback[0], "");
    assert_int_equal (told, 1);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (all_cases),
        cmocka_unit_test (a_default_keeps_to_the_bounds),
    };

    return cmocka_run_group_tests_name ("bounds", tests, NULL, NULL);
}
