/* SPDX-License-Identifier: Apache-2.0 */
/* Check the group "searcher" of an experiment file. */
#include "launcher/config/search_settings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/keys.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/points.h"
#include "launcher/config/resources.h"
#include "launcher/config/setting.h"
#include "launcher/config/space.h"
#include "launcher/sys/alloc.h"
#include "runtime/base/nearest_word.h"

/* Find a searcher by name.  Returns NULL if there is none. */
static const struct searcher_kind *searcher_kind_of (const char *name)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        if (!strcmp (k->name, name))
            return k;
    return NULL;
}

/* ---- names ---- */

/* Names of searchers in other programs. */
static const char *const other_searchers[][2] = {
    { "bayes", "gp" },
    { "bayesian", "gp" },
    { "botorch", "gp" },
    { "optuna", "tpe" },
    { "hyperopt", "tpe" },
    { "random_search", "random" },
    { "grid_search", "grid" },
    { "qmc", "sobol" },
    { "cma-es", "cmaes" },
    { "evolution", "cmaes" },
    { "successive_halving", "halving" },
    { "sha", "halving" },
    { "adaptive", "adaptive_asha" },
    { "population", "pbt" },
    { NULL, NULL },
};

/* 'what' is "searcher" or "sampler". */
static int check_kind (struct origin origin, const char *what, const char *name, struct problems *p)
{
    const char *names[64] = { 0 };
    const char *meant;
    char list[512] = "";
    size_t n = 0;

    if (!name || searcher_kind_of (name))
        return 0;
    for (const struct searcher_kind *k = searcher_kinds; k->name && n < 63; k++)
        names[n++] = k->name;
    for (size_t i = 0; i < n; i++)
        snprintf (list + strlen (list), sizeof (list) - strlen (list), "%s%s", i ? ", " : "",
                  names[i]);
    meant = other_word (name, other_searchers) ?: nearest_word (name, names);
    problem_at (p, origin, "unknown %s \"%s\"; %s%s%s", what, name,
                meant ? "did you mean \"" : "there are ", meant ? meant : list, meant ? "\"?" : "");
    return -1;
}

static int read_mode (struct experiment *e, config_t *cf, struct problems *p)
{
    static const char *const modes[] = { "aggressive", "standard", "conservative", NULL };

    for (int i = 0; modes[i]; i++)
        if (!strcmp (modes[i], e->search->mode)) {
            e->search->config.mode = (enum search_mode)i;
            return 0;
        }
    problem_at (p, origin_of_key (cf, "searcher.mode"),
                "'searcher.mode' must be \"aggressive\", \"standard\" or \"conservative\"%s",
                !strcmp (e->search->mode, "min") || !strcmp (e->search->mode, "max")
                    ? "; did you mean 'searcher.smaller_is_better'?"
                    : "");
    return -1;
}

/* ---- metrics ---- */

static enum summary summary_of (const char *name)
{
    static const char *const names[] = {
        [SUMMARY_LAST] = "last",
        [SUMMARY_BEST] = "best",
        [SUMMARY_MIN] = "min",
        [SUMMARY_MAX] = "max",
    };
    size_t i = 0;

    while (i < sizeof (names) / sizeof (*names) && strcmp (names[i], name))
        i++;
    return (enum summary)i;
}

static void read_summary (struct experiment *e, config_t *cf, struct problems *p)
{
    size_t n = 0;
    bool known = true;
    bool last = true;

    while (e->metric->summaries && e->metric->summaries[n])
        n++;
    for (size_t i = 0; i < OBJECTIVES_MAX && n > 0; i++) {
        e->metric->summary[i] = summary_of (e->metric->summaries[n == 1 ? 0 : i % n]);
        known = known && e->metric->summary[i] <= SUMMARY_MAX;
        last = last && e->metric->summary[i] == SUMMARY_LAST;
    }
    if (!known)
        problem_at (p, origin_of_key (cf, "searcher.summary"),
                    "'searcher.summary' must be \"last\", \"best\", \"min\" or "
                    "\"max\" (a mean is 'searcher.mean_of_last' = N)");
    else if (n > 1 && n != e->metric->n)
        problem_at (p, origin_of_key (cf, "searcher.summary"),
                    "'searcher.summary' has %zu values and 'searcher.metric' %zu", n, e->metric->n);
    else if (e->metric->mean_of_last && !last)
        problem_at (p, origin_of_key (cf, "searcher.mean_of_last"),
                    "'searcher.mean_of_last' and 'searcher.summary' cannot be used together: leave "
                    "one out");
    for (size_t i = 0; e->metric->mean_of_last && i < OBJECTIVES_MAX; i++)
        e->metric->summary[i] = SUMMARY_MEAN;
    if (!isnan (e->metric->goal) && e->metric->n > 1)
        problem_at (p, origin_of_key (cf, "searcher.goal"), "'searcher.goal' is for one metric");
}

static bool is_repeated (char *const *list, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp (list[k], list[i]))
            return true;
    return false;
}

static void check_metrics (struct experiment *e, config_t *cf, struct problems *p)
{
    struct origin origin = origin_of_key (cf, "searcher.metric");

    e->metric->origin = origin;
    if (!e->metric->names)
        return;
    while (e->metric->names[e->metric->n])
        e->metric->n++;
    e->metric->name = e->metric->names[0];
    if (e->metric->n < 1 || e->metric->n > OBJECTIVES_MAX)
        problem_at (p, origin, "'searcher.metric' must be 1 to 8 metrics");
    for (size_t i = 0; i < e->metric->n; i++)
        if (!*e->metric->names[i] || strlen (e->metric->names[i]) > 63)
            problem_at (p, origin, "'searcher.metric' must be 1 to 63 bytes long");
        else if (is_repeated (e->metric->names, i))
            problem_at (p, origin, "'searcher.metric' has \"%s\" twice", e->metric->names[i]);
}

static void check_smaller (struct experiment *e, config_t *cf, struct problems *p)
{
    const struct bools *b = &e->metric->smaller;

    e->metric->smaller_is_given = config_lookup (cf, "searcher.smaller_is_better");

    if (b->n != 1 && (size_t)b->n != e->metric->n) {
        problem_at (p, origin_of_key (cf, "searcher.smaller_is_better"),
                    "'searcher.smaller_is_better' has %d values, but 'searcher.metric' has %zu",
                    b->n, e->metric->n);
        return;
    }
    e->search->config.objectives = (long)e->metric->n;
    e->search->config.smaller_is_better = b->value[0];
    for (size_t i = 0; i < e->metric->n && i < OBJECTIVES_MAX; i++)
        e->search->config.larger[i] = !b->value[b->n == 1 ? 0 : i];
}

/* ---- keys that only some searchers have ---- */

static const struct {
    const char *key;
    const char *users; /* searchers or samplers */
} some_have[] = {
    { "searcher.population", "cmaes, nsga2 and pbt" },
    { "searcher.min_length", "median and pbt" },
    { "searcher.cost_aware", "gp and auto" },
    { "searcher.command", "custom" },
};

static bool has_word (const char *text, const char *word)
{
    size_t n = word ? strlen (word) : 0;
    const char *at = text;

    if (n == 0)
        return false;
    while ((at = strstr (at, word))) {
        bool begins = at == text || strchr (" ('", at[-1]);
        if (begins && strchr (" ,):'", at[n]))
            return true;
        at += n;
    }
    return false;
}

static bool is_off (const config_setting_t *s)
{
    return config_setting_type (s) == CONFIG_TYPE_BOOL && !config_setting_get_bool (s);
}

static void check_users (const struct experiment *e, config_t *cf, struct problems *p)
{
    for (size_t i = 0; i < sizeof (some_have) / sizeof (*some_have); i++) {
        const config_setting_t *s = config_lookup (cf, some_have[i].key);
        if (!s || is_off (s) || problem_is_about (p, some_have[i].key)
            || has_word (some_have[i].users, e->search->searcher)
            || has_word (some_have[i].users, e->search->sampler))
            continue;
        problem_at (p, origin_of (s), "searcher \"%s\" does not use '%s' (%s): remove it",
                    e->search->searcher, some_have[i].key, some_have[i].users);
    }
}

static void searcher_needs_key (const struct experiment *e, config_t *cf, const char *key,
                                struct problems *p)
{
    if (!problem_is_about (p, key))
        problem_at (p, origin_of_key (cf, "searcher"), "searcher \"%s\" needs '%s'",
                    e->search->searcher, key);
}

static void check_needs (const struct experiment *e, config_t *cf, struct problems *p)
{
    int bits = searcher_kind_of (e->search->searcher)->needs;

    if (!strcmp (e->search->searcher, "custom") && (!e->search->command || !*e->search->command))
        searcher_needs_key (e, cf, "searcher.command", p);
    if (bits & NEED_MAX_TRIALS && e->search->config.max_trials == 0)
        searcher_needs_key (e, cf, "searcher.max_trials", p);
    if (!(bits & (NEED_MAX_TRIALS | CAN_MAX_TRIALS)) && e->search->config.max_trials > 0)
        problem_at (p, origin_of_key (cf, "searcher.max_trials"),
                    "searcher \"%s\" sets the number of trials itself: "
                    "leave 'searcher.max_trials' out",
                    e->search->searcher);
}

/* ---- the searcher's own checks ---- */

/* Find the key that a message of the searcher is about. */
static struct origin origin_about (config_t *cf, const char *why)
{
    for (const struct key *k = experiment_keys; k->path; k++)
        if (!strncmp (k->path, "searcher.", 9) && has_word (why, k->path + 9)
            && config_lookup (cf, k->path))
            return origin_of_key (cf, k->path);
    return origin_of_key (cf, "searcher");
}

static void check_with_searcher (const struct experiment *e, const struct search_config *config,
                                 config_t *cf, struct problems *p)
{
    struct search_mistake at;
    const char *why = searcher_check (config, e->space->params, e->space->nparams, &at);

    if (why && at.param >= 0) {
        const struct hparam *h = hparam_find (e, e->space->params[at.param].name);
        problem_at (p, h->origin, "hyperparameter '%s': %s", h->path, why);
    } else if (why)
        problem_at (p, origin_about (cf, why), "searcher: %s", why);
}

/* ---- constraints ---- */

/* Write ": 'hiden'; did you mean 'hidden'?" for the name that begins at 'at'. */
static void name_hint (const struct experiment *e, const char *at, char *hint, size_t size)
{
    const char **words = xcalloc (e->space->nparams + 1, sizeof (*words));
    const char *meant;
    char name[128];

    at += *at == '`';
    snprintf (name, sizeof (name), "%.*s", (int)strcspn (at, " \t\n`<>=!&|()+-*/%^,"), at);
    for (size_t i = 0; i < e->space->nparams; i++)
        words[i] = e->space->params[i].name;
    meant = nearest_word (name, words);
    snprintf (hint, size, ": '%s'%s%s%s", name,
              DID_YOU_MEAN (meant, "'", "'", hparam_find (e, name) ? ", which is a constant" : ""));
    free (words);
}

static void check_constraint (const struct experiment *e, const char *text, struct origin origin,
                              struct problems *p)
{
    const struct search_config config = {
        .name = "random", .max_trials = 1, .max_length = 1, .constraint = text
    };
    struct search_mistake at;
    const char *why = searcher_check (&config, e->space->params, e->space->nparams, &at);
    char hint[512] = "";

    if (why && at.column && errno == ENOENT)
        name_hint (e, text + at.column - 1, hint, sizeof (hint));
    if (why && at.column)
        problem_at (p, origin, "searcher.constraint: column %d: %s%s", at.column, why, hint);
    else if (why)
        problem_at (p, origin, "searcher.constraint: %s", why);
}

/* Write "(a) && (b)". */
static char *join_constraints (char *const *list)
{
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    for (int i = 0; list[i]; i++)
        fprintf (f, list[1] ? "%s(%s)" : "%s%s", i ? " && " : "", list[i]);
    xclose_memstream (f);
    return text;
}

static void read_constraints (struct experiment *e, config_t *cf, struct problems *p)
{
    const config_setting_t *s = config_lookup (cf, "searcher.constraint");
    int before = p->count;

    if (!e->search->constraints || !e->search->constraints[0])
        return;
    for (int i = 0; e->search->constraints[i]; i++) {
        const config_setting_t *item =
            config_setting_get_string (s) ? s : config_setting_get_elem (s, (unsigned)i);
        check_constraint (e, e->search->constraints[i], origin_of (item), p);
    }
    e->search->constraint = join_constraints (e->search->constraints);
    if (p->count == before && e->search->constraints[1])
        check_constraint (e, e->search->constraint, origin_of (s), p);
    e->search->config.constraint = e->search->constraint;
}

/* ---- all ---- */

void search_check (struct experiment *e, config_t *cf, struct problems *p)
{
    int named =
        check_kind (origin_of_key (cf, "searcher.name"), "searcher", e->search->searcher, p);

    check_metrics (e, cf, p);
    if (p->count == 0)
        check_smaller (e, cf, p);
    if (check_kind (origin_of_key (cf, "searcher.sampler"), "sampler", e->search->sampler, p) < 0
        || named < 0 || read_mode (e, cf, p) < 0)
        return;
    read_summary (e, cf, p);
    check_users (e, cf, p);
    check_needs (e, cf, p);
    e->search->config.name = e->search->searcher;
    e->search->config.sampler = e->search->sampler;
    e->search->config.seed = (uint64_t)e->search->seed;
    e->search->warm_start_origin = origin_of_key (cf, "searcher.warm_start");
    e->search->config.max_seconds = experiment_max_seconds (e);
    /* each step relies on the checks of the previous one */
    if (p->count == 0)
        check_with_searcher (e, &e->search->config, cf, p);
    if (p->count == 0)
        read_constraints (e, cf, p);
    if (p->count == 0)
        points_read (e, cf, p);
    if (p->count == 0)
        check_with_searcher (e, &e->search->config, cf, p);
}

bool experiment_knows_length (const struct experiment *e)
{
    return e->search->length_is_given || e->search->config.max_length > 1;
}

long experiment_trials (const struct experiment *e)
{
    struct search_rung rungs[64];
    int n = searcher_preview (&e->search->config, e->space->params, e->space->nparams, rungs, 64);
    long trials = 0;

    for (int i = 0; i < n && i < 64; i++)
        trials += rungs[i].trials;
    return trials;
}

int experiment_needs (const struct experiment *e)
{
    const struct searcher_kind *k = searcher_kind_of (e->search->config.name);

    return k ? k->needs : 0;
}
