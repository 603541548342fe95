/* SPDX-License-Identifier: Apache-2.0 */
/* The log of an experiment replays with a later release: to every method the
 * same results bring the same decisions, by the rules that it began with.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "searcher/schedulers/schedulers.h"
#include "tests/searcher/params.h"
#include "tests/searcher/sweep.h"

#define COUNT(a) (sizeof (a) / sizeof ((a)[0]))

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
    (void)w;
    return trial % 11 == 5 && segment == 2 - (trial & 1);
}

static bool rejects (const struct sweep *w, long trial, int segment)
{
    (void)w;
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
    int rules; /* 0: all */
    uint32_t decisions[VARIANTS];
} table[] = {
    { "auto", 1, { 0x39c34663, 0xde8db080, 0xcef2cbd5, 0x8ae5571f, 0x85665434, 0x1fe046c9 } },
    { "auto", 2, { 0x39c34663, 0xd82fa9cb, 0xcef2cbd5, 0x8ae5571f, 0x85665434, 0x1fe046c9 } },
    { "single", 0, { 0xfbd2bc39, 0x1f0a0d0c, 0, 0, 0xdf02bbe2, 0 } },
    { "grid", 0, { 0x2e20c75c, 0xcf2a5d04, 0x7d9bfb9c, 0, 0xd3b668ef, 0 } },
    { "random", 0, { 0xb7682773, 0x21f7b776, 0x411d5e6b, 0xa6b82eb4, 0x5bdf97e1, 0x32b73686 } },
    { "sobol", 0, { 0x6bb1138a, 0xe4a7b43e, 0xfda3b9ec, 0xb8f2719b, 0x038502b5, 0x06f35622 } },
    { "lhs", 0, { 0x62c9b91f, 0xc4611424, 0xa4e499ba, 0x2c9e68c8, 0x29bc599d, 0x0d10b342 } },
    { "tpe", 0, { 0x4e182066, 0x8d8dab24, 0x17fc48c7, 0x93d2d7ee, 0x43cd58e6, 0xb215e0c3 } },
    { "gp", 0, { 0xa52a1751, 0x08cf004c, 0xc9609385, 0x8ae5571f, 0xc724a7bf, 0x1fe046c9 } },
    { "cmaes", 0, { 0xb5a73395, 0x9a9f6944, 0xdc9900fe, 0, 0x8b36e265, 0 } },
    { "nsga2", 0, { 0x10fbe85b, 0x34c47c52, 0x0c179a95, 0x96a0b950, 0xe986bdad, 0x085baa5e } },
    { "asha", 1, { 0xe1d92a9d, 0xa52fdce8, 0xcef2cbd5, 0, 0x85665434, 0 } },
    { "asha", 2, { 0xe1d92a9d, 0xe07ebd9a, 0xcef2cbd5, 0, 0x85665434, 0 } },
    { "adaptive_asha", 1, { 0xe1d92a9d, 0x5ddbedb5, 0x6e898ceb, 0, 0x85665434, 0 } },
    { "adaptive_asha", 2, { 0xe1d92a9d, 0x2e278c08, 0x6e898ceb, 0, 0x85665434, 0 } },
    { "stopping_asha", 1, { 0xb422f9f4, 0xcac85be9, 0xbd287ca5, 0, 0x0cdac738, 0 } },
    { "stopping_asha", 2, { 0xac18ed19, 0xaa100596, 0x16a5fe68, 0, 0xf236bb56, 0 } },
    { "adaptive_stopping", 1, { 0xb422f9f4, 0xffe2ec1d, 0x37a30cb1, 0, 0x0cdac738, 0 } },
    { "adaptive_stopping", 2, { 0xac18ed19, 0xf8b10784, 0x37a30cb1, 0, 0xf236bb56, 0 } },
    { "pasha", 1, { 0x8e886ff1, 0x0b150eff, 0x56fa2761, 0, 0x451ad522, 0 } },
    { "pasha", 2, { 0x8e886ff1, 0xe5a6a51c, 0x56fa2761, 0, 0x451ad522, 0 } },
    { "halving", 0, { 0x5854faab, 0xb7609d44, 0x9237dafb, 0, 0x735a7d49, 0 } },
    { "hyperband", 0, { 0x8f3ef381, 0x6f597402, 0xb212e0c5, 0, 0x69d4515d, 0 } },
    { "async_hyperband", 1, { 0x76e103c4, 0xdb65cf4e, 0x6650fa1c, 0, 0x4bfcc491, 0 } },
    { "async_hyperband", 2, { 0x76e103c4, 0x55d948e7, 0x6650fa1c, 0, 0x4bfcc491, 0 } },
    { "bohb", 0, { 0x3ef1915f, 0x2fb5c5b0, 0xb212e0c5, 0, 0x69d4515d, 0 } },
    { "median", 1, { 0x765083b0, 0x6c6155a7, 0x51ff059a, 0, 0x45063da1, 0 } },
    { "median", 2, { 0x765083b0, 0xdd2f6878, 0x51ff059a, 0, 0x45063da1, 0 } },
    { "pbt", 0, { 0x19c79b8b, 0xc0ffb40d, 0xc63b54e1, 0, 0x969db7bc, 0 } },
    { "custom", 0, { 0xb7682773, 0x21f7b776, 0x411d5e6b, 0, 0x5bdf97e1, 0 } },
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
    const struct expected *row = table;

    while (row < table + COUNT (table)
           && (strcmp (row->name, name) || (row->rules && row->rules != rules)))
        row++;
    assert_true (row < table + COUNT (table));
    return row;
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

    (void)state;
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (int rules = k->needs & (HAS_RUNGS | HAS_REPORTS)
                             ? SEARCH_RULES_FIRST
                             : SEARCH_RULES_NOW;
             rules <= SEARCH_RULES_NOW;
             rules++)
            changed += count_changed (k, rules);
    assert_int_equal (changed, 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test (test_replays) };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
