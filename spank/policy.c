/* SPDX-License-Identifier: Apache-2.0 */
/* The site's policy: the arguments of the plugin's line in plugstack.conf. */
#include "spank/policy.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/nearest_word.h"
#include "spank/context.h"

#define DEFAULT_NCCL_DIR SYSCONFDIR "/slurm-dl/nccl.d"
#define DEFAULT_COMMAND  BINDIR "/dl"

enum { KEY_SIZE = 64, NUMBER_DIGITS = 9 };

/* Condition of the arguments that follow an invalid condition, or follow an unknown
 * argument that may have been meant as one.
 */
static const char never[] = "?";

/* ---- values ---- */

/* The field that an argument sets. */
struct target {
    const struct site_policy *policy;
    int row; /* row of plugin_options, or -1 */
    void *field;
    size_t size;
};

typedef int take_f (struct target t, const char *value, char *why, size_t size);

static int take_policy_text (struct target t, const char *value, char *why, size_t size)
{
    if (strnlen (value, t.size) >= t.size) {
        snprintf (why, size, "too long");
        return -1;
    }
    memcpy (t.field, value, strlen (value) + 1);
    return 0;
}

static int take_path (struct target t, const char *value, char *why, size_t size)
{
    if (*value != '/') {
        snprintf (why, size, "not an absolute path");
        return -1;
    }
    return take_policy_text (t, value, why, size);
}

static int take_policy_number (struct target t, const char *value, char *why, size_t size)
{
    size_t digits = strspn (value, "0123456789");

    if (digits == 0 || value[digits] || digits > NUMBER_DIGITS) {
        snprintf (why, size, "not a number");
        return -1;
    }
    if (plugin_options[t.row].words) {
        snprintf (why, size, "--%s takes no number", plugin_options[t.row].name);
        return -1;
    }
    *(long *)t.field = strtol (value, NULL, 10);
    return 0;
}

/* Copy the first part of "A,B".  Returns the rest, or NULL after the last part. */
static const char *next_list_part (const char *list, char *part, size_t size)
{
    size_t len;

    if (!list)
        return NULL;
    len = strcspn (list, ",");
    snprintf (part, size, "%.*s", (int)len, list);
    return list + len;
}

static const char *rest_of_word (const char *end)
{
    return *end ? end + 1 : NULL;
}

static int option_row (const char *name)
{
    for (int i = 0; i < PLUGIN_OPTIONS; i++)
        if (!strcmp (plugin_options[i].name, name))
            return i;
    return -1;
}

static int take_options (struct target t, const char *value, char *why, size_t size)
{
    char name[KEY_SIZE];

    for (const char *l = value; (l = next_list_part (l, name, sizeof (name))); l = rest_of_word (l))
        if (option_row (name) < 0) {
            snprintf (why, size, "'%s' is not an option", name);
            return -1;
        }
    return take_policy_text (t, value, why, size);
}

static int take_policy_list (struct target t, const char *value, char *why, size_t size)
{
    char word[VALUE_MAX + 1];

    for (const char *l = value; (l = next_list_part (l, word, sizeof (word))); l = rest_of_word (l))
        if (plugin_options[t.row].words && option_check (t.row, word, why, size) < 0)
            return -1;
    return take_policy_text (t, value, why, size);
}

static int take_value (struct target t, const char *value, char *why, size_t size)
{
    if (t.row == PLUGIN_ROLES) {
        snprintf (why, size, "roles are set by each job");
        return -1;
    }
    if (!policy_has (t.policy, t.row)) {
        snprintf (why, size, "--%s is not in options=", plugin_options[t.row].name);
        return -1;
    }
    if ((t.row == PLUGIN_MONITOR || t.row == PLUGIN_DEBUG) && strcmp (value, "off")
        && !*t.policy->monitor_dir) {
        snprintf (why, size, "a default of monitor= or debug= needs monitor_dir=");
        return -1;
    }
    if (t.row == PLUGIN_MONITOR && word_listed (value, "park")) {
        snprintf (why, size, "a site default cannot end steps: use warn instead of park");
        return -1;
    }
    if (option_check (t.row, value, why, size) < 0
        || policy_check (t.policy, t.row, value, why, size) < 0)
        return -1;
    return take_policy_text (t, value, why, size);
}

static int take_when (struct target t, const char *value, char *why, size_t size)
{
    (void)t;
    return condition_check (value, why, size);
}

/* ---- the table ---- */

#define OWN(field)                                                                                 \
    offsetof (struct site_policy, field), sizeof (((struct site_policy *)NULL)->field)
#define EACH(field) OWN (field[0])

/* Which steps an argument without when= applies to. */
enum argument_scope {
    OF_ALL,
    OF_STEPS, /* steps with GPUs: a default affects no others */
    OF_SITE   /* all steps; when= is not allowed */
};

/* The only list of arguments (a test compares dl-spank(8) with it), in the order in
 * which they are read: a default looks up its profile in nccl_dir.
 */
static const struct argument {
    const char *name;   /* NULL: not for --dl */
    const char *prefix; /* prefix of the NAME in --dl-NAME; NULL: not for single options */
    take_f *take;
    size_t offset, size;
    enum argument_scope scope;
} policy_arguments[] = {
    /* clang-format off */
    { "when",     NULL,     take_when,    OWN (unused),   OF_ALL },
    { "dl",       NULL,     take_path,    OWN (command),  OF_SITE },
    { "nccl_dir", NULL,     take_path,    OWN (nccl_dir), OF_SITE },
    { "monitor_dir", NULL,  take_path,    OWN (monitor_dir), OF_SITE },
    { "options",  NULL,     take_options, OWN (options),  OF_SITE },
    { "allow",    "allow_", take_policy_list,    EACH (allow),   OF_ALL },
    { "deny",     "deny_",  take_policy_list,    EACH (deny),    OF_ALL },
    { NULL,       "min_",   take_policy_number,  EACH (min),     OF_ALL },
    { NULL,       "max_",   take_policy_number,  EACH (max),     OF_ALL },
    { "default",  "",       take_value,   EACH (fallback), OF_STEPS },
    /* clang-format on */
};

enum { ARGUMENTS = sizeof (policy_arguments) / sizeof (*policy_arguments) };

/* ---- reading ---- */

/* The row of plugin_options that a key for this row of the table names; -1 if the
 * key belongs to another row.
 */
static int match_key (const struct argument *a, const char *key)
{
    size_t n = a->prefix ? strlen (a->prefix) : 0;

    if (a->name && !strcmp (key, a->name))
        return PLUGIN_FRAMEWORK;
    if (!a->prefix || strncmp (key, a->prefix, n))
        return -1;
    for (int i = 0; i < PLUGIN_OPTIONS; i++)
        if (!strncmp (plugin_options[i].name, "dl-", 3)
            && !strcmp (plugin_options[i].name + 3, key + n))
            return i;
    return -1;
}

/* The row of the table for 'arg', or -1. */
static int find_argument (const char *arg, int *row)
{
    char key[KEY_SIZE];
    size_t n = strcspn (arg, "=");

    if (!arg[n] || n >= sizeof (key))
        return -1;
    memcpy (key, arg, n);
    key[n] = '\0';
    for (int k = 0; k < ARGUMENTS; k++)
        if ((*row = match_key (&policy_arguments[k], key)) >= 0)
            return k;
    return -1;
}

/* The condition that applies to av[i], or "". */
static const char *condition_of (char **av, int i)
{
    int row;

    while (i-- > 0)
        if (!strncmp (av[i], "when=", 5))
            return av[i] + 5;
        else if (find_argument (av[i], &row) < 0)
            return never;
    return "";
}

static bool follows_when (char **av, int i)
{
    while (i-- > 0)
        if (!strncmp (av[i], "when=", 5) && av[i][5])
            return true;
    return false;
}

/* A default that may apply counts until a node knows better.  A limit does not. */
static bool argument_holds (const struct argument *a, const struct step_facts *facts,
                            const char *condition)
{
    enum answer holds = condition_holds (condition, facts, a->scope == OF_STEPS);

    return holds == ANSWER_YES || (holds == ANSWER_UNKNOWN && a->scope == OF_STEPS);
}

/* Set no default from an argument that was not understood. */
static void no_default (struct site_policy *p, const struct argument *a, int row)
{
    for (int i = 0; i < PLUGIN_OPTIONS; i++)
        if (i == row || a->scope == OF_SITE)
            p->no_default[i] = true;
}

/* Check arguments even if they do not apply here. */
static int read_argument (struct site_policy *p, const struct step_facts *facts, char **av, int i,
                          char *why)
{
    struct site_policy other;
    int row = 0;
    const struct argument *a = &policy_arguments[find_argument (av[i], &row)];
    bool here = a->scope == OF_SITE || argument_holds (a, facts, condition_of (av, i));
    struct target t = { .policy = p, .row = row, .size = a->size };

    t.field = (char *)(here ? p : &other) + a->offset + (size_t)row * a->size;
    if (a->scope == OF_SITE && follows_when (av, i))
        snprintf (why, WHY_SIZE, "it applies to all steps and must come before the first when=");
    else if (a->take (t, strchr (av[i], '=') + 1, why, WHY_SIZE) == 0) {
        if (here && a->scope == OF_STEPS && row == PLUGIN_FRAMEWORK)
            p->named = strstr (condition_of (av, i), "partition:") != NULL;
        return 0;
    }
    if (a->scope == OF_SITE || (here && a->take != take_when))
        no_default (p, a, row);
    return -1;
}

typedef void reject_f (const char *arg, const char *why);

/* 'unknown': there is no such argument.  An unknown argument or an invalid
 * condition also invalidates what follows.
 */
static void reject_argument (reject_f *reject, int ac, char **av, int i, const char *why,
                             bool unknown)
{
    char line[2 * WHY_SIZE];
    bool ends =
        (unknown || !strncmp (av[i], "when=", 5)) && i + 1 < ac && strncmp (av[i + 1], "when=", 5);

    snprintf (line, sizeof (line), "%s; ignored%s", why,
              ends ? "; the arguments after it, up to the next when=, apply to no step" : "");
    reject (av[i], line);
}

void policy_read (struct site_policy *p, const struct step_facts *facts, int ac, char **av,
                  reject_f *reject)
{
    char why[WHY_SIZE];
    int row;

    memset (p, 0, sizeof (*p));
    memcpy (p->nccl_dir, DEFAULT_NCCL_DIR, sizeof (DEFAULT_NCCL_DIR));
    memcpy (p->command, DEFAULT_COMMAND, sizeof (DEFAULT_COMMAND));
    for (int i = 0; reject && i < ac; i++)
        if (find_argument (av[i], &row) < 0)
            reject_argument (reject, ac, av, i, "no such argument", true);
    for (int k = 0; k < ARGUMENTS; k++)
        for (int i = 0; i < ac; i++)
            if (find_argument (av[i], &row) == k && read_argument (p, facts, av, i, why) < 0
                && reject)
                reject_argument (reject, ac, av, i, why, false);
    for (int i = 0; i < PLUGIN_OPTIONS; i++)
        if (p->no_default[i])
            *p->fallback[i] = '\0';
}

/* ---- what the policy allows ---- */

bool policy_has (const struct site_policy *p, int row)
{
    return !*p->options || word_listed (p->options, plugin_options[row].name);
}

static int check_policy_word (const struct site_policy *p, int row, const char *word, char *why,
                              size_t size)
{
    if (!strcmp (word, "off") || !strcmp (word, "none"))
        return 0;
    if (word_listed (p->deny[row], word))
        snprintf (why, size, "this site does not allow %s", p->deny[row]);
    else if (*p->allow[row] && !word_listed (p->allow[row], word))
        snprintf (why, size, "this site allows %s", p->allow[row]);
    else
        return 0;
    return -1;
}

static int check_policy_number (const struct site_policy *p, int row, const char *word, char *why,
                                size_t size)
{
    double x;
    char *end;

    if (!strchr ("0123456789.", *word))
        return 0;
    x = strtod (word, &end);
    if (end == word)
        return 0;
    if (p->min[row] && x < (double)p->min[row])
        snprintf (why, size, "this site allows %ld or more", p->min[row]);
    else if (p->max[row] && x > (double)p->max[row])
        snprintf (why, size, "this site allows %ld or less", p->max[row]);
    else
        return 0;
    return -1;
}

int policy_check (const struct site_policy *p, int row, const char *value, char *why, size_t size)
{
    char word[VALUE_MAX + 1];

    for (const char *l = value; (l = next_list_part (l, word, sizeof (word))); l = rest_of_word (l))
        if (check_policy_word (p, row, word, why, size) < 0
            || check_policy_number (p, row, word, why, size) < 0)
            return -1;
    return 0;
}
