/* SPDX-License-Identifier: Apache-2.0 */
/* What a site's bounds and lists do to options of any kind. */
#include "spank/check.h"
#include "spank/policy.h"
#include "tests/unit.h"

static int told;

static void reject (const char *arg, const char *why)
{
    told++;
}

static const struct step_facts with_gpus = { .gpus = ANSWER_YES };

static int any (const char *value, char *why, size_t size)
{
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

    for (size_t i = 0; i < COUNT (cases); i++) {
        char *argument = (char *)cases[i].argument;
        char why[WHY_SIZE] = "";
        int rv;
        told = 0;
        policy_read (&p, &with_gpus, 1, &argument, reject);
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

    told = 0;
    policy_read (&p, &with_gpus, 2, good, reject);
    assert_string_equal (p.fallback[0], "30");
    assert_int_equal (told, 0);
    policy_read (&p, &with_gpus, 2, bad, reject);
    assert_string_equal (p.fallback[0], "");
    assert_int_equal (told, 1);
}

static const struct step_facts gpus = { ANSWER_YES, true, "ai", "ml", "long" };
static const struct step_facts cpus = { ANSWER_NO, true, "ai", "ml", "" };
static const struct step_facts unknown = { .gpus = ANSWER_UNKNOWN };

static const struct {
    const char *when;
    const struct step_facts *facts;
    const char *fallback; /* of "seconds=30" after it */
    int bounded;          /* by "max_seconds=40" after it */
} conditions[] = {
    /* clang-format off */
    { "when=",                          &gpus,    "30", 1 },
    { "when=",                          &cpus,    "",   1 },
    { "when=",                          &unknown, "30", 1 },
    { "when=gpus:any",                  &cpus,    "30", 1 },
    { "when=gpus:no",                   &cpus,    "30", 1 },
    { "when=gpus:no",                   &gpus,    "",   0 },
    { "when=gpus:yes",                  &cpus,    "",   0 },
    { "when=partition:x,ai",            &gpus,    "30", 1 },
    { "when=partition:ai",              &cpus,    "",   1 },
    { "when=partition:a",               &gpus,    "",   0 },
    { "when=partition:ai;account:ml",   &gpus,    "30", 1 },
    { "when=partition:ai;account:x",    &gpus,    "",   0 },
    { "when=qos:long",                  &gpus,    "30", 1 },
    { "when=qos:long;gpus:any",         &cpus,    "",   0 },
    { "when=partition:ai",              &unknown, "30", 0 },
    /* clang-format on */
};

static void all_conditions (void **state)
{
    struct site_policy p;

    for (size_t i = 0; i < COUNT (conditions); i++) {
        char *arguments[] = { (char *)conditions[i].when,
                              "seconds=30",
                              "max_seconds=40" };
        char why[WHY_SIZE];
        told = 0;
        policy_read (&p, conditions[i].facts, 3, arguments, reject);
        assert_int_equal (told, 0);
        assert_string_equal (p.fallback[0], conditions[i].fallback);
        assert_int_equal (policy_check (&p, 0, "50", why, sizeof (why)),
                          conditions[i].bounded ? -1 : 0);
    }
}

static void wrong_conditions (void **state)
{
    static const char *const wrong[] = {
        "when=gpu",     "when=gpus:1",   "when=partition:",   "when=ai",
        "when=user:me", "when=gpus:no;", "when=qos:a;;qos:b",
    };
    char *of_the_site[] = { "when=qos:long", "dl=/x" };
    struct site_policy p;

    for (size_t i = 0; i < COUNT (wrong); i++) {
        char *argument = (char *)wrong[i];
        told = 0;
        policy_read (&p, &gpus, 1, &argument, reject);
        assert_int_equal (told, strcmp (argument, "when=gpus:no;") != 0);
    }
    told = 0;
    policy_read (&p, &gpus, 2, of_the_site, reject);
    assert_int_equal (told, 1);
    for (size_t n = 255; n <= 256; n++) {
        char text[300], *argument = text;
        snprintf (text, sizeof (text), "when=qos:%0*d", (int)n - 4, 1);
        told = 0;
        policy_read (&p, &gpus, 1, &argument, reject);
        assert_int_equal (told, n == 256);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test (all_cases),
    cmocka_unit_test (a_default_keeps_to_the_bounds),
    cmocka_unit_test (all_conditions),
    cmocka_unit_test (wrong_conditions),
};

RUN_TESTS (tests)
