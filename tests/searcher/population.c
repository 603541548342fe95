/* SPDX-License-Identifier: Apache-2.0 */
/* Population based training: which trials end, which are cloned, and how clones differ. */
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

enum { GENERATION = 3, TRIALS = 1000 };

static const double adam[] = { 1 };

/* clang-format off */
static const struct param space[] = {
    { .name = "lr", .type = PARAM_LOG, .min = -5, .max = -1, .base = 10 },
    { .name = "optimizer", .type = PARAM_CATEGORICAL, .choices = 3 },
    { .name = "beta", .type = PARAM_FLOAT, .max = 1, .when = "optimizer",
      .when_values = adam, .when_count = 1 },
    { .name = "batch", .type = PARAM_INT, .min = 16, .max = 512, .base = 2 },
    { .name = "drop", .type = PARAM_FLOAT, .max = 0.5, .step = 0.1 },
    { .name = "shift", .type = PARAM_FLOAT, .min = -2, .max = -1 },
};
/* clang-format on */

static bool in_space (const double *x)
{
    double step = x[4] / 0.1;

    return x[0] >= 1e-5 * (1 - 1e-9) && x[0] <= 0.1 * (1 + 1e-9)
           && (x[1] == 0 || x[1] == 1 || x[1] == 2)
           && (x[1] == 1 ? x[2] >= 0 && x[2] <= 1 : isnan (x[2])) && x[3] >= 16 && x[3] <= 512
           && floor (x[3]) == x[3] && x[4] >= 0 && x[4] <= 0.5
           && fabs (step - floor (step + 0.5)) < 1e-9 && x[5] >= -2 && x[5] <= -1;
}

static double noisy (const struct sweep *w, long trial, int64_t length)
{
    uint64_t value = sweep_noise (w, trial, length, 300);

    return value < 6 ? NAN : trial % 5 + 0.01 * (double)value;
}

static bool first_refuses (const struct sweep *w, long trial, int segment)
{
    return segment == 1 && sweep_seldom (w, trial + 99, segment);
}

static struct sweep start (uint64_t seed)
{
    uint64_t r = seed;
    struct sweep w = { .config = { .name = "pbt",
                                   .seed = seed,
                                   .max_length = 20,
                                   .min_length = GENERATION,
                                   .smaller_is_better = seed % 2,
                                   .population = 4 + sweep_random (&r, 30),
                                   .max_concurrent = sweep_random (&r, 9) },
                       .params = space,
                       .n = COUNT (space),
                       .metric = noisy,
                       .fails = seed % 3 ? NULL : sweep_seldom,
                       .rejects = seed % 5 ? NULL : first_refuses,
                       .workers = sweep_random (&r, 12),
                       .shuffle = seed };

    return w;
}

/* ---- a reference model of replacements ---- */

static int rung_at (int64_t length)
{
    return (length - 1) / GENERATION;
}

static double small (const struct sweep *w, double value)
{
    return !isfinite (value) ? INFINITY : w->config.smaller_is_better ? value : -value;
}

/* The population, with each member's result per generation. */
struct crowd {
    double value[TRIALS][8]; /* NaN: none; a clone inherits those of its parent */
    bool gone[TRIALS];
    int own[TRIALS]; /* first generation that the trial trained itself */
    long due[TRIALS], first, last;
    long clones;
};

/* Return whether the trial is worse than three quarters of the population. */
static bool is_bad (const struct sweep *w, const struct crowd *c, long t, int g)
{
    long members = 1, better = 0;

    for (long u = 1; u <= w->trials; u++) {
        int at = g;
        while (at >= 0 && (isnan (c->value[u][at]) || isnan (c->value[t][at])))
            at--;
        if (u == t || at < 0 || c->own[u] > g || (at < g && c->gone[u]))
            continue;
        members++;
        better += c->value[u][at] < c->value[t][at];
    }
    return members >= 4 && better >= members - members / 4;
}

static bool is_good (const struct sweep *w, const struct crowd *c, long u, long t, int g)
{
    long came = 0, better = 0;

    for (long v = 1; v <= w->trials; v++)
        if (c->own[v] <= g && !isnan (c->value[v][g])) {
            came++;
            better += c->value[v][g] < c->value[u][g];
        }
    return !c->gone[u] && c->own[u] <= g && c->value[u][g] < c->value[t][g]
           && better < (came < 4 ? 1 : came / 4);
}

static bool has_winner (const struct sweep *w, const struct crowd *c, long t, int g)
{
    for (long u = 1; u <= w->trials; u++)
        if (is_good (w, c, u, t, g))
            return true;
    return false;
}

/* The next trial in order of arrival continues, or a clone replaces it. */
static void crowd_goes_on (struct sweep *w, struct crowd *c, const struct search_op *op)
{
    long t = c->due[c->first];
    int g = rung_at (op->length) - 1;

    assert_true (c->first < c->last);
    assert_false (isnan (c->value[t][g]));
    c->first++;
    if (!op->fresh) {
        assert_int_equal (op->trial, t);
        assert_false (is_bad (w, c, t, g) && has_winner (w, c, t, g));
        return;
    }
    assert_true (is_bad (w, c, t, g));
    assert_true (is_good (w, c, op->from, t, g));
    assert_int_equal (op->from_length, (g + 1) * GENERATION);
    c->gone[t] = true;
    c->own[op->trial] = g + 1;
    memcpy (c->value[op->trial], c->value[op->from], (g + 1) * sizeof (**c->value));
    c->clones++;
}

static double noise (const struct sweep *w, long trial, int64_t length)
{
    return trial % 5 + 0.01 * (double)sweep_noise (w, trial, length, 300);
}

static void crowd_apply (struct sweep *w, struct crowd *c, struct event *e)
{
    if (e->what == EVENT_TELL) {
        c->value[e->op.trial][rung_at (e->op.length)] = small (w, e->value);
        if (e->op.length < w->config.max_length)
            c->due[c->last++] = e->op.trial;
    } else if (!e->op.fresh || e->op.from)
        crowd_goes_on (w, c, &e->op);
}

CASE (test_model)
{
    long clones = 0;

    for (uint64_t seed = 1; seed <= 100 / SLOWER; seed++) {
        struct sweep w = start (seed);
        struct crowd *c = calloc (1, sizeof (*c));

        w.metric = noise;
        w.fails = w.rejects = NULL;
        for (int t = 0; t < TRIALS; t++)
            for (int k = 0; k < 8; k++)
                c->value[t][k] = NAN;
        sweep_run (&w);
        assert_true (w.trials < TRIALS);
        for (size_t i = 0; i < w.n_events; i++)
            crowd_apply (&w, c, w.events + i);
        assert_int_equal (c->first, c->last);
        assert_int_equal (w.trials, w.config.population + c->clones);
        assert_int_equal (sweep_count (&w, w.config.max_length), w.config.population);
        clones += c->clones;
        free (c);
        sweep_free (&w);
    }
    assert_true (clones > 1000 / SLOWER);
}

/* Every slot of the population reaches max_length or ends with a failure. */
CASE (test_bad_ones)
{
    for (uint64_t seed = 1; seed <= 100 / SLOWER; seed++) {
        struct sweep w = start (seed);
        long failed = 0;

        sweep_run (&w);
        for (size_t i = 0; i < w.n_events; i++)
            failed += w.events[i].what == EVENT_EXIT
                      || (w.events[i].what == EVENT_TELL && !isfinite (w.events[i].value));
        for (long t = 1; t <= w.trials; t++)
            assert_true (in_space (w.x[t]));
        assert_true (w.trials <= w.config.population * 8);
        assert_true (sweep_count (&w, w.config.max_length) + failed >= w.config.population);
        assert_true (searcher_progress (w.s) == 1);
        sweep_free (&w);
    }
}

/* ---- a population without failures ---- */

static double by_trial (const struct sweep *w, long trial, int64_t length)
{
    return trial * 37 % 1009 - length;
}

CASE (test_all_reach_the_end)
{
    for (long workers = 0; workers <= 20; workers += 5) {
        struct sweep w = { .config = SEARCH ("pbt", .max_length = 10),
                           .params = space,
                           .n = COUNT (space),
                           .metric = by_trial,
                           .workers = workers };
        long clones = 0;

        sweep_run (&w);
        assert_int_equal (sweep_count (&w, 10), 16);
        for (long t = 1; t <= w.trials; t++) {
            const struct search_op *op = w.begun + t;
            clones += op->from != 0;
            if (!op->from)
                continue;
            assert_true (op->from < t && w.length[op->from] >= op->from_length);
            assert_int_equal (op->length, op->from_length + 1);
        }
        assert_int_equal (w.trials, 16 + clones);
        assert_true (clones > 10);
        sweep_free (&w);
    }
}

/* Even a single worker completes a generation before it starts the next one. */
CASE (test_advance_together)
{
    struct sweep w = { .config = SEARCH ("pbt", .max_length = 5, .min_length = 1, .population = 8),
                       .params = space,
                       .n = COUNT (space),
                       .metric = by_trial,
                       .workers = 1 };

    sweep_run (&w);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal (w.events[i].op.length, 1);
    for (size_t i = 2; i < w.n_events; i++)
        assert_true (w.events[i].op.length + 1 >= w.events[i - 2].op.length);
    sweep_free (&w);
}

/* ---- explore ---- */

static bool below (const double *x)
{
    return x[3] * x[0] < 0.5 && x[4] + x[5] < -0.9;
}

CASE (test_explore)
{
    long clones = 0, fifth = 0, same[6] = { 0 };

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sweep w = start (seed);
        w.config.constraint = "batch * lr < 0.5 && drop + shift < -0.9";
        sweep_run (&w);
        for (long t = 1; t <= w.trials; t++) {
            const double *x = w.x[t], *from = w.x[w.begun[t].from];
            assert_true (in_space (x));
            assert_true (below (x));
            if (!w.begun[t].from)
                continue;
            clones++;
            fifth += fabs (fabs (x[0] / from[0] - 1) - 0.2) < 1e-9;
            for (int k = 0; k < 6; k++)
                same[k] += x[k] == from[k];
        }
        sweep_free (&w);
    }
    assert_true (clones > 100);
    /* most values move up or down by a fifth; the rest hit a bound or are redrawn */
    assert_true (fifth > clones / 2);
    /* a value may stay at a bound, and a redrawn choice may repeat the old one */
    assert_true (same[0] < clones / 10);
    assert_true (same[1] < clones / 2);
    assert_true (same[2] < clones / 2);
    assert_true (same[3] < clones / 5);
    assert_true (same[4] < clones / 2);
    assert_true (same[5] < clones / 2);
}

/* ---- comparison with random search ---- */

/* Progress of a trial.  The best learning rate falls as training goes on, and a clone starts
 * with the progress of its parent.
 */
static double gained (const struct sweep *w, long trial, int64_t length)
{
    const struct search_op *op = w->begun + trial;
    double sum = op->from ? gained (w, op->from, op->from_length) : 0;

    for (int64_t l = op->from_length; l < length; l++) {
        double best = -1 - 4.0 * l / w->config.max_length;
        double far = log10 (w->x[trial][0]) - best;
        sum += exp (-far * far);
    }
    return sum;
}

static double best_of (const char *name, uint64_t seed)
{
    struct sweep w = { .config = { .name = name,
                                   .seed = seed,
                                   .max_trials = 16,
                                   .max_length = 30,
                                   .min_length = 1,
                                   .population = 16 },
                       .params = space,
                       .n = 1,
                       .metric = gained,
                       .workers = 5,
                       .shuffle = seed };
    double best = 0;

    sweep_run (&w);
    for (long t = 1; t <= w.trials; t++)
        best = fmax (best, gained (&w, t, w.length[t]));
    sweep_free (&w);
    return best;
}

CASE (test_improves)
{
    double pbt = 0, random = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        pbt += best_of ("pbt", seed);
        random += best_of ("random", seed);
    }
    assert_true (pbt > 1.3 * random);
}

/* ---- events that searcher_ask() would not return ---- */

/* Reject new trials and altered clones in the slots that are meant for clones; otherwise the
 * population would grow.
 */
CASE (test_places_are_kept)
{
    const struct search_config config =
        SEARCH ("pbt", .max_length = 4, .min_length = 1, .population = 4);
    struct searcher *s = searcher_create (&config, NULL, 0);
    struct search_op op = { .fresh = true, .length = 1 };
    struct search_op clone;

    assert_non_null (s);
    for (op.trial = 1; op.trial <= 4; op.trial++)
        assert_int_equal (searcher_begin (s, &op, NULL), 0);
    assert_int_equal (searcher_begin (s, &op, NULL), -1);
    for (long t = 4; t >= 1; t--)
        assert_int_equal (searcher_observe (s, t, 1, &(double){ t }), 0);
    assert_int_equal (searcher_begin (s, &op, NULL), -1);
    assert_int_equal (errno, EINVAL);
    assert_int_equal (searcher_ask (s, &clone, NULL), SEARCH_RUN);
    assert_int_equal (clone.trial, 5);
    assert_int_equal (clone.from, 1);
    assert_int_equal (clone.from_length, 1);
    assert_int_equal (clone.length, 2);
    op = clone;
    op.from = 2;
    assert_int_equal (searcher_begin (s, &op, NULL), -1);
    op = clone;
    op.from_length = 2;
    assert_int_equal (searcher_begin (s, &op, NULL), -1);
    op = clone;
    op.length = 3;
    assert_int_equal (searcher_begin (s, &op, NULL), -1);
    assert_int_equal (searcher_begin (s, &clone, NULL), 0);
    assert_int_equal (searcher_begin (s, &clone, NULL), -1);
    searcher_destroy (s);
}

CASE (test_bad)
{
    static const struct {
        int64_t length, generation;
        long population;
        const char *why;
    } cases[] = {
        { 10, 0, 3, "population is below 4" },
        { 10, 11, 0, "a generation (min_length) is longer than max_length" },
        { 33, 1, 0, "more than 32 generations: min_length is too small" },
        { 32, 1, 0, NULL },
        { 1, 0, 4, NULL },
        { 10, 10, 0, NULL },
    };

    for (size_t i = 0; i < COUNT (cases); i++) {
        const struct search_config config = {
            .name = "pbt",
            .max_length = cases[i].length,
            .min_length = cases[i].generation,
            .population = cases[i].population,
        };
        const char *why = searcher_check (&config, NULL, 0, NULL);
        if (cases[i].why)
            assert_string_equal (why, cases[i].why);
        else
            assert_null (why);
    }
}

RUN_CASES ()
