/* SPDX-License-Identifier: Apache-2.0 */
/* The log of an experiment replays with a later release: to every method the
 * same results bring the same decisions, by the rules that it began with.
 */
#include <inttypes.h>

#include "searcher/schedulers/schedulers.h"
#include "tests/searcher/params.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

/* One of each type, one alone in its range, and one that is not always there.
 */
static const double first[] = { 0 };
static const struct param params[] = {
    FLOAT ("x", 10, 20, 3),
    LOG ("lr", 10, -4, 0, 2),
    { .name = "layers",
      .type = PARAM_INT,
      .min = 2,
      .max = 64,
      .base = 2,
      .count = 2 },
    { .name = "drop",
      .type = PARAM_FLOAT,
      .max = 1,
      .step = 0.125,
      .count = 2 },
    { .name = "noise",
      .type = PARAM_FLOAT,
      .min = -3,
      .max = 3,
      .mean = 0.5,
      .deviation = 1,
      .count = 2 },
    CHOICE ("how", 3),
    { .name = "momentum",
      .type = PARAM_FLOAT,
      .max = 1,
      .count = 2,
      .when = "how",
      .when_values = first,
      .when_count = 1 },
    INT ("one", 4, 4, 1),
};
enum { N = COUNT (params) };

/* ---- what a trial finds ---- */

/* Rounded, so that the last bit of a point is no other result. */
static double loss (const struct sweep *w, long trial, int64_t length)
{
    const double *x = w->x[trial];
    double sum = fabs (x[0] - 13) / 10 + fabs (log10 (x[1]) + 2) / 3
                 + (x[2] - 20) * (x[2] - 20) / 2000 + fabs (x[3] - 0.25)
                 + x[4] * x[4] / 9 + (x[5] == 1 ? 0.2 : 0)
                 + (isnan (x[6]) ? 0.1 : x[6] * x[6]) + 1.0 / (double)length;

    return round (sum * 1000) / 1000;
}

static void losses (const struct sweep *w, long trial, double *values)
{
    values[0] = loss (w, trial, 1);
    values[1] = round (w->x[trial][0] * 100) - 10 * w->x[trial][3];
    values[2] = w->x[trial][2];
}

static bool fails (const struct sweep *w, long trial, int segment)
{
    return trial % 11 == 5 && segment == 2 - (trial & 1);
}

static bool rejects (const struct sweep *w, long trial, int segment)
{
    return (trial % 13 == 6 && segment == 1)
           || (trial % 13 == 8 && segment == 2);
}

static double seconds (const struct sweep *w, long trial)
{
    return 1 + w->x[trial][2];
}

/* ---- searches ---- */

/* A search that is given more to do when it has come so far. */
static bool extend_later (struct sweep *w)
{
    if (w->n_events == 50)
        searcher_extend (&w->s, w->config.max_trials ? 36 : 0, 0, 0);
    return true;
}

static bool lengthen_later (struct sweep *w)
{
    if (w->n_events == 70)
        searcher_extend (&w->s, 0, 45, 0);
    return true;
}

static const double points[2][N] = { { 12, 0.01, 8, 0.5, 1, 0, 0.25, 4 },
                                     { 19, 0.1, 4, 1, -1, 2, NAN, 4 } };
static const double known_values[] = { 1.5, 1200, 8 };
static const struct search_known known[] = {
    { (const double[]){ 11, 0.001, 16, 0, 0, 1, NAN, 4 }, known_values },
    { (const double[]){ 14, 0.02, 32, 0.125, 2, 0, 0.5, 4 }, known_values + 1 },
    { (const double[]){ 17, 1, 3, 0.75, 1, 0, 0.75, 4 },
      (const double[]){ NAN, 1, 1 } },
};

enum { ALONE, CROWD, EARLIER, OBJECTIVES, LONGER, PAIR, VARIANTS };

static const struct sweep variants[VARIANTS] = {
    [ALONE] = { .config = { .smaller_is_better = true }, .workers = 1 },
    [CROWD] = { .config = { .smaller_is_better = true,
                            .constraint = "drop < 0.9 && layers * x < 900",
                            .mode = SEARCH_STANDARD,
                            .repeats = 2 },
                .workers = 5,
                .fails = fails,
                .rejects = rejects,
                .shuffle = 9 },
    [EARLIER] = { .config = { .sampler = "gp",
                              .points = *points,
                              .npoints = 2,
                              .known = known,
                              .nknown = COUNT (known),
                              .max_concurrent = 3,
                              .mode = SEARCH_CONSERVATIVE,
                              .cost_aware = true },
                  .seconds = seconds,
                  .shuffle = 4,
                  .more = extend_later },
    [OBJECTIVES] = { .config = { .smaller_is_better = true,
                                 .objectives = 3,
                                 .larger = { [1] = true } },
                     .metrics = losses,
                     .fails = fails,
                     .workers = 2 },
    [LONGER] = { .config = { .sampler = "tpe",
                             .smaller_is_better = true,
                             .max_seconds = 3500 },
                 .seconds = seconds,
                 .fails = fails,
                 .workers = 3,
                 .shuffle = 5,
                 .more = lengthen_later },
    [PAIR] = { .config = { .objectives = 2,
                           .points = *points,
                           .npoints = 2,
                           .constraint = "x > 11" },
               .metrics = losses,
               .workers = 3,
               .shuffle = 8 },
};

static bool takes_sampler (const struct searcher_kind *kind)
{
    return kind->needs & (NEED_MAX_TRIALS | CAN_MAX_TRIALS)
           && kind->needs & (HAS_RUNGS | HAS_REPORTS);
}

/* What a method does not take is left out. */
static void set_up (struct sweep *w, const struct searcher_kind *kind)
{
    struct search_config *c = &w->config;
    bool in_part = kind->needs & (HAS_RUNGS | HAS_REPORTS) && !w->metrics;

    c->name = kind->name;
    c->seed = 5;
    c->max_length = in_part ? 30 : 1;
    c->divisor = 3;
    c->max_rungs = 4;
    c->max_trials = kind->needs & NEED_MAX_TRIALS ? 28 : 0;
    if (!takes_sampler (kind))
        c->sampler = NULL;
    c->population = kind->scheduler == &schedule_population ? 6 : 8;
    c->min_length = 6;
    if (kind->needs & HAS_REPORTS || kind->scheduler == &schedule_population)
        c->repeats = 0;
    if (kind->needs & NEED_GRID_COUNT)
        c->npoints = 0;
    w->report = kind->needs & HAS_REPORTS ? 3 : 0;
    w->params = params;
    w->n = N;
    w->metric = loss;
}

/* FNV-1a of the decisions; values to six digits. */
static void mix (uint32_t *hash, double value)
{
    char text[32];

    snprintf (text, sizeof (text), "%.6g", value);
    for (const char *p = text; *p; p++)
        *hash = (*hash ^ (unsigned char)*p) * 16777619u;
}

static uint32_t decisions (const struct sweep *w)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < w->n_events; i++) {
        const struct event *e = w->events + i;
        mix (&hash, e->what);
        mix (&hash, (double)e->op.trial);
        mix (&hash, (double)e->op.length);
        mix (&hash, (double)e->op.from);
        mix (&hash, e->progress);
        for (int k = 0; k < N && e->what == EVENT_BEGIN && e->op.fresh; k++)
            mix (&hash, e->x[k]);
    }
    return hash;
}

/* ---- what each method decided when its rules were made ---- */

/* A method that decides otherwise needs rules of its own: enum search_rules. */
/* clang-format off */
static const struct expected {
    const char *name;
    int rules; /* from these on, up to those of the next row; 0: from the first */
    uint32_t decisions[VARIANTS];
} table[] = {
    { "auto", 1, { 0xc6d301f9, 0xf76b1dc4, 0xd25c2644, 0x8a8963bc, 0x9b77a3b3, 0xf75a7c88 } },
    { "auto", 2, { 0xc6d301f9, 0x32123db8, 0xd25c2644, 0x8a8963bc, 0x9b77a3b3, 0xf75a7c88 } },
    { "single", 0, { 0xfbd2bc39, 0x1f0a0d0c, 0, 0, 0xdf02bbe2, 0 } },
    { "grid", 0, { 0x2e20c75c, 0xcf2a5d04, 0x7d9bfb9c, 0, 0xd3b668ef, 0 } },
    { "random", 0, { 0x3aec5cbe, 0x9971a283, 0x2f9c207d, 0xe0a6ee0b, 0x74088574, 0x568c31d8 } },
    { "sobol", 0, { 0xc83dd294, 0x89084377, 0x0d5a08a1, 0x36420a07, 0x7b8cfa7a, 0x31873f5c } },
    { "lhs", 0, { 0x4a88cbfa, 0xa875f9eb, 0x664965ae, 0xd31815d5, 0x356a8d5e, 0x695014d5 } },
    { "tpe", 0, { 0xe4a00f7f, 0xdb5f0a49, 0xaea1c5fc, 0xf3352d88, 0x1848284c, 0xa46eacc3 } },
    { "gp", 0, { 0x0b95dae1, 0x8746b6c1, 0x927b9efa, 0x8a8963bc, 0xbb06d157, 0xf75a7c88 } },
    { "cmaes", 0, { 0x581caf3b, 0x3867040b, 0x56edf507, 0, 0xbebe5b95, 0 } },
    { "nsga2", 0, { 0x6fea6551, 0xd3eedb17, 0x7c4dbefa, 0x0c062115, 0x8b55c179, 0x355b3203 } },
    { "asha", 1, { 0x9ba633e2, 0xf4831edc, 0xd25c2644, 0, 0x9b77a3b3, 0 } },
    { "asha", 2, { 0x9ba633e2, 0x1fb2a239, 0xd25c2644, 0, 0x9b77a3b3, 0 } },
    { "adaptive_asha", 1, { 0x9ba633e2, 0x4f2210ac, 0x85e97172, 0, 0x9b77a3b3, 0 } },
    { "adaptive_asha", 2, { 0x9ba633e2, 0xc8aabf9c, 0x85e97172, 0, 0x9b77a3b3, 0 } },
    { "stopping_asha", 1, { 0x3911da03, 0x29e388a7, 0x7858e85b, 0, 0xb9ad80b4, 0 } },
    { "stopping_asha", 2, { 0xc73605a4, 0xbaee051a, 0xd70347f6, 0, 0xd0a80476, 0 } },
    { "adaptive_stopping", 1, { 0x3911da03, 0x0f676599, 0xdc4a8436, 0, 0xb9ad80b4, 0 } },
    { "adaptive_stopping", 2, { 0xc73605a4, 0x84a16077, 0xb81d65e4, 0, 0xd0a80476, 0 } },
    { "pasha", 1, { 0xcd00e84f, 0x489719e4, 0x83f6cc28, 0, 0xa1062e34, 0 } },
    { "pasha", 2, { 0xcd00e84f, 0xd835bc05, 0x83f6cc28, 0, 0xa1062e34, 0 } },
    { "halving", 0, { 0xa9b8362b, 0x72a9a95d, 0x0f9711dd, 0, 0x6f08d750, 0 } },
    { "hyperband", 0, { 0x8f3ef381, 0x6f597402, 0xb212e0c5, 0, 0x69d4515d, 0 } },
    { "async_hyperband", 1, { 0x76e103c4, 0xdb65cf4e, 0x6650fa1c, 0, 0x4bfcc491, 0 } },
    { "async_hyperband", 2, { 0x76e103c4, 0x55d948e7, 0x6650fa1c, 0, 0x4bfcc491, 0 } },
    { "bohb", 0, { 0x3ef1915f, 0x2fb5c5b0, 0xb212e0c5, 0, 0x69d4515d, 0 } },
    { "median", 1, { 0x97234513, 0xfc7d26f4, 0xbf62c2f3, 0, 0x3383c590, 0 } },
    { "median", 2, { 0x97234513, 0x77664412, 0xbf62c2f3, 0, 0x3383c590, 0 } },
    { "pbt", 0, { 0x19c79b8b, 0xc0ffb40d, 0xc63b54e1, 0, 0x969db7bc, 0 } },
    { "pbt", 3, { 0xd08f2af9, 0x80aa7747, 0x36f727ad, 0, 0xcbbdf7a3, 0 } },
    { "custom", 0, { 0x3aec5cbe, 0x9971a283, 0x2f9c207d, 0, 0x74088574, 0 } },
};
/* clang-format on */

static uint32_t replay (const struct searcher_kind *kind, int rules, int i)
{
    struct sweep w = variants[i];
    uint32_t hash;
    int at;

    set_up (&w, kind);
    w.config.rules = rules;
    if (searcher_check (&w.config, w.params, w.n, &at))
        return 0;
    sweep_run (&w);
    hash = decisions (&w);
    sweep_free (&w);
    return hash;
}

static const struct expected *find (const char *name, int rules)
{
    const struct expected *found = NULL;

    for (const struct expected *row = table; row < table + COUNT (table); row++)
        if (!strcmp (row->name, name) && row->rules <= rules)
            found = row;
    assert_non_null (found);
    return found;
}

/* How many searches decide otherwise. */
static int count_changed (const struct searcher_kind *kind, int rules)
{
    const struct expected *row = find (kind->name, rules);
    int changed = 0;

    for (int i = 0; i < VARIANTS; i++) {
        uint32_t hash = replay (kind, rules, i);
        if (hash == row->decisions[i])
            continue;
        print_message ("%s, rules %d, search %d: 0x%08" PRIx32 "\n",
                       kind->name,
                       rules,
                       i,
                       hash);
        changed++;
    }
    return changed;
}

static void test_replays (void **state)
{
    int changed = 0;

    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (int rules = k->needs & (HAS_RUNGS | HAS_REPORTS)
                             ? SEARCH_RULES_FIRST
                         : strcmp (k->name, "pbt") ? SEARCH_RULES_NOW
                                                   : SEARCH_RULES_FIRST;
             rules <= SEARCH_RULES_NOW;
             rules++)
            changed += count_changed (k, rules);
    assert_int_equal (changed, 0);
}

static const struct CMUnitTest tests[] = { cmocka_unit_test (test_replays) };

RUN_TESTS (tests)
