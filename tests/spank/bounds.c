/* SPDX-License-Identifier: Apache-2.0 */
/* Site policy on options of any kind: bounds, lists, defaults and conditions. */
#include <regex.h>

#include "spank/context.h"
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

/* Stand-in option table: unlike ours, these options take numbers. */
const struct plugin_option plugin_options[] = {
    [0 ... PLUGIN_OPTIONS - 1] = { "dl-seconds", "N", "", NULL, any, true, "10" },
};

int option_check (int row, const char *value, char *why, size_t size)
{
    return plugin_options[row].check (value, why, size);
}

static const struct {
    const char *argument;
    const char *value;
    int taken; /* whether the value is allowed; -1: the argument is invalid */
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

CASE (all_cases)
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

CASE (a_default_keeps_to_the_bounds)
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
    const char *fallback; /* the default, with "seconds=30" after the condition */
    int bounded;          /* whether "max_seconds=40" after the condition applies */
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

CASE (all_conditions)
{
    struct site_policy p;

    for (size_t i = 0; i < COUNT (conditions); i++) {
        char *arguments[] = { (char *)conditions[i].when, "seconds=30", "max_seconds=40" };
        char why[WHY_SIZE];
        told = 0;
        policy_read (&p, conditions[i].facts, 3, arguments, reject);
        assert_int_equal (told, 0);
        assert_string_equal (p.fallback[0], conditions[i].fallback);
        assert_int_equal (policy_check (&p, 0, "50", why, sizeof (why)),
                          conditions[i].bounded ? -1 : 0);
    }
}

CASE (wrong_conditions)
{
    static const char *const wrong[] = {
        "when=gpu",
        "when=gpus:1",
        "when=partition:",
        "when=ai",
        "when=user:me",
        "when=gpus:no;",
        "when=qos:a;;qos:b",
        "when=qos:a;qos:b",
        "when=;",
        "when=partition:ai,default=auto",
    };
    char *of_the_site[] = { "when=qos:long", "dl=/x" };
    struct site_policy p;

    for (size_t i = 0; i < COUNT (wrong); i++) {
        char *argument = (char *)wrong[i];
        told = 0;
        policy_read (&p, &gpus, 1, &argument, reject);
        assert_int_equal (told, 1);
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

/* ---- wrong arguments in all combinations ---- */

static const struct step_facts *const steps[] = { &gpus, &cpus };

/* Whether the default of 'seconds' applies to this step. */
static bool acts (char **arguments, int n, const struct step_facts *facts)
{
    struct site_policy p;

    policy_read (&p, facts, n, arguments, NULL);
    return *p.fallback[0];
}

static bool matches (const char *pattern, const char *text)
{
    regex_t r;
    bool rv;

    assert_int_equal (regcomp (&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
    rv = regexec (&r, text, 0, NULL, 0) == 0;
    regfree (&r);
    return rv;
}

/* A second implementation of conditions, for the two steps above. */
static bool may_act (const char *when, const struct step_facts *facts)
{
    static const char all[] =
        "^((partition:[^,:;=]+(,[^,:;=]+)*|account:[^,:;=]+(,[^,:;=]+)*|qos:[^,"
        ":;=]+(,[^,:;=]+)*|gpus:(yes|no|any))(;|$))*$";
    bool has = facts->gpus == ANSWER_YES;

    return matches (all, when) && !matches (";$", when)
           && (has || matches ("(^|;)gpus:(no|any)(;|$)", when))
           && !matches (has ? "(^|;)gpus:no(;|$)" : "(^|;)gpus:yes(;|$)", when)
           && (!strstr (when, "partition:") || matches ("partition:([^;]*,)?ai(,|;|$)", when))
           && (!strstr (when, "account:") || matches ("account:([^;]*,)?ml(,|;|$)", when))
           && (!strstr (when, "qos:") || (has && matches ("qos:([^;]*,)?long(,|;|$)", when)));
}

/* Drop, double, swap and replace each letter of each condition. */
CASE (a_typo_never_widens_a_condition)
{
    static const char *const right[] = {
        "gpus:yes",
        "gpus:no",
        "gpus:any",
        "partition:ai",
        "partition:x,ai;gpus:any",
        "account:ml;qos:long",
        "gpus:no;partition:ai,x;account:ml",
        "qos:long;gpus:yes",
    };
    static const char other[] = ":;,=yno1 YA-.";
    char when[128], *line[] = { when, "seconds=30" };
    int n = 0;

    for (size_t i = 0; i < COUNT (right); i++)
        for (size_t at = 0; at < strlen (right[i]); at++)
            for (size_t how = 0; how < 3 + strlen (other); how++) {
                char text[100];
                size_t len = strlen (right[i]);
                memcpy (text, right[i], len + 1);
                if (how == 0) {
                    memmove (text + at, text + at + 1, len - at);
                } else if (how == 1) {
                    memmove (text + at + 1, text + at, len - at + 1);
                } else if (how == 2 && at + 1 < len) {
                    text[at] = right[i][at + 1];
                    text[at + 1] = right[i][at];
                } else if (how > 2) {
                    text[at] = other[how - 3];
                }
                snprintf (when, sizeof (when), "when=%s", text);
                for (size_t k = 0; k < COUNT (steps); k++, n++)
                    if (acts (line, 2, steps[k])
                        && (!*text ? steps[k] != &gpus : !may_act (text, steps[k])))
                        fail_msg ("'%s' acts in step %zu", text, k);
            }
    assert_true (n > 3000);
}

/* The effect of an argument on those after it. A WRONG argument is ignored, but
 * then no default applies either.
 */
static const struct {
    const char *text;
    enum { LEAVES, RESTRICTS, ENDS, WRONG } what;
    /* RESTRICTS: whether defaults and bounds apply in a step with GPUs and in
     * one without */
    bool fallback[2], bound[2];
} words[] = {
    /* clang-format off */
    { "when=",                     RESTRICTS, { true, false },  { true, true } },
    { "when=gpus:yes",             RESTRICTS, { true, false },  { true, false } },
    { "when=gpus:any",             RESTRICTS, { true, true },   { true, true } },
    { "when=gpus:no",              RESTRICTS, { false, true },  { false, true } },
    { "when=partition:ai",         RESTRICTS, { true, false },  { true, true } },
    { "when=partition:x",          RESTRICTS, { false, false }, { false, false } },
    { "when=gpus:true",            ENDS },
    { "when=gpus:Yes",             ENDS },
    { "when=gpus:",                ENDS },
    { "when=partion:ai",           ENDS },
    { "when=partition:",           ENDS },
    { "when=partition:ai,gpus:no", ENDS },
    { "when=?",                    ENDS },
    { "when",                      ENDS },
    { "wen=partition:x",           ENDS },
    { "partition:x",               ENDS },
    { "=",                         ENDS },
    { "deny_second=1",             ENDS },
    { "min_seconds=x",             WRONG },
    { "max_seconds=5s",            WRONG },
    { "options=dl-second",         WRONG },
    { "dl=bin/dl",                 WRONG },
    { "nccl_dir=",                 WRONG },
    { "dl=/bin/dl",                LEAVES },
    { "allow_seconds=30",          LEAVES },
    { "min_seconds=2",             LEAVES },
    /* clang-format on */
};

static bool is_of_the_site (const char *text)
{
    return !strncmp (text, "dl=", 3) || !strncmp (text, "nccl_dir=", 9)
           || !strncmp (text, "options=", 8);
}

/* Whether the default should apply. An argument for the whole site, such as dl=,
 * is wrong after a condition. */
static bool is_expected (const size_t *row, size_t n, const struct step_facts *f)
{
    size_t kind = f->gpus == ANSWER_YES ? 0 : 1;
    bool fallback = kind == 0, bound = true, late = false, wrong = false;

    for (size_t i = 0; i < n; i++) {
        const char *text = words[row[i]].text;
        if (words[row[i]].what == RESTRICTS) {
            fallback = words[row[i]].fallback[kind];
            bound = words[row[i]].bound[kind];
        } else if (words[row[i]].what == ENDS) {
            fallback = bound = false;
        } else if (is_of_the_site (text)) {
            wrong = wrong || late || words[row[i]].what == WRONG;
        } else if (words[row[i]].what == WRONG) {
            wrong = wrong || bound;
        }
        late = late || (!strncmp (text, "when=", 5) && text[5]);
    }
    return fallback && !wrong;
}

CASE (invalid_words_in_all_combinations)
{
    size_t row[3];

    for (size_t i = 0; i < COUNT (words) * COUNT (words) * COUNT (words); i++) {
        char *line[4] = { NULL, NULL, NULL, "seconds=30" };
        size_t rest = i;
        for (int k = 0; k < 3; k++, rest /= COUNT (words)) {
            row[k] = rest % COUNT (words);
            line[k] = (char *)words[row[k]].text;
        }
        for (size_t s = 0; s < COUNT (steps); s++)
            if (acts (line, 4, steps[s]) != is_expected (row, 3, steps[s]))
                fail_msg ("%s %s %s seconds=30: step %zu", line[0], line[1], line[2], s);
    }
}

RUN_CASES ()
