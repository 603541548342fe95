/* SPDX-License-Identifier: Apache-2.0 */
/* Points that the user gives, a constraint forbids, or a trial rejects. */
#include "tests/searcher/params.h"
#include "tests/searcher/plane.h"
#include "tests/searcher/search.h"

/* ---- moving a trial to another point ---- */

CASE (test_half)
{
    static const struct {
        struct param p;
        double x, half; /* 0: none */
    } list[] = {
        { { .type = PARAM_INT, .min = 1, .max = 1024 }, 256, 128 },
        { { .type = PARAM_INT, .min = 1, .max = 1024 }, 97, 48 },
        { { .type = PARAM_INT, .min = 1, .max = 1024 }, 1, 0 },
        { { .type = PARAM_INT, .min = 1, .max = 1024, .base = 2 }, 64, 32 },
        { { .type = PARAM_INT, .min = 16, .max = 1024 }, 31, 0 },
        { { .type = PARAM_INT, .min = 8, .max = 100, .step = 8 }, 64, 32 },
        { { .type = PARAM_INT, .min = 8, .max = 100, .step = 8 }, 56, 24 },
        { { .type = PARAM_INT, .min = 8, .max = 100, .step = 8 }, 8, 0 },
        { { .type = PARAM_INT, .min = -8, .max = -2 }, -4, 0 },
        { { .type = PARAM_FLOAT, .min = 0.1, .max = 4 }, 3, 1.5 },
        { { .type = PARAM_FLOAT, .min = 0, .max = 1, .step = 0.1 }, 0.7, 0.3 },
        { { .type = PARAM_FLOAT, .min = 1, .max = 4 }, 1.5, 0 },
        { { .type = PARAM_LOG, .min = 0, .max = 3, .base = 10 }, 100, 50 },
        { { .type = PARAM_LOG, .min = 0, .max = 3, .base = 10 }, 1.5, 0 },
        { { .type = PARAM_CATEGORICAL, .choices = 4 }, 2, 0 },
    };

    for (size_t i = 0; i < COUNT (list); i++) {
        struct param p = list[i].p;
        double half;
        p.name = "p";
        half = searcher_half (&p, list[i].x);
        if (list[i].half > 0)
            assert_true (half == list[i].half);
        else
            assert_true (isnan (half));
    }
}

/* Models learn from the point where the trial ran, not from the one that they proposed. */
CASE (test_move)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct sweep w = start (k->name, 7);
        struct searcher *s, *twin;
        struct search_op op;
        double x[2], y[2] = { 0.25, 0.75 };
        double bad[2] = { 0.25, 7 };
        if (k->needs & IS_CUSTOM)
            continue;
        s = searcher_create (&w.config, w.params, w.n);
        assert_non_null (s);
        assert_int_equal (searcher_ask (s, &op, x), SEARCH_RUN);
        assert_int_equal (searcher_move (s, 1, y), -1);
        assert_int_equal (searcher_begin (s, &op, x), 0);
        assert_int_equal (searcher_move (s, 2, y), -1);
        assert_int_equal (searcher_move (s, 1, bad), -1);
        /* the state is the same as if the search had proposed the new point */
        twin = searcher_create (&w.config, w.params, w.n);
        assert_int_equal (searcher_begin (twin, &op, y), 0);
        assert_int_equal (searcher_move (s, 1, y), 0);
        assert_int_equal (searcher_size (s), searcher_size (twin));
        assert_memory_equal (s, twin, searcher_size (s));
        assert_int_equal (searcher_observe (s, 1, op.length, y), 0);
        assert_int_equal (searcher_move (s, 1, y), -1);
        searcher_destroy (s);
        searcher_destroy (twin);
    }
}

/* ---- constraints ---- */

/* A narrow band that allows about one point in 50. */
CASE (test_band)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct sweep w = start (k->name, 3);
        w.config.constraint = "abs (x - y) <= 0.01";
        sweep_run (&w);
        for (long t = 1; t <= w.trials; t++)
            assert_true (fabs (w.x[t][0] - w.x[t][1]) <= 0.01);
        /* the grid keeps the five of its points that are allowed */
        if (k->needs & NEED_GRID_COUNT)
            assert_int_equal (w.trials, 5);
        sweep_free (&w);
    }
}

/* A model still beats random search if the constraint forbids most of its favorite region. */
CASE (test_model_in_band)
{
    static const char *const names[] = { "tpe", "cmaes", "nsga2" };
    double random = 0;

    for (size_t k = 0; k <= COUNT (names); k++) {
        double sum = 0;
        for (uint64_t seed = 1; seed <= 8; seed++) {
            struct sweep w = start (k ? names[k - 1] : "random", seed);
            double best = INFINITY;
            w.config.constraint = "x + y > 1";
            w.config.max_trials = 80;
            w.config.population = k == 2 ? 0 : 10;
            sweep_run (&w);
            for (long t = 1; t <= w.trials; t++)
                best = fmin (best, bowl (&w, t, 9));
            sum += best - hypot (0.05, 0.05) - 1.0 / 9;
            sweep_free (&w);
        }
        if (k == 0)
            random = sum;
        assert_true (k == 0 || sum < random);
    }
}

CASE (test_bad_constraints)
{
    struct search_config config = start ("random", 1).config;

    config.constraint = "x > 1";
    refused (&config, NULL, 0);
    config.constraint = "x +";
    refused (&config, NULL, 4);
    config.constraint = "x < z";
    refused (&config, NULL, 5);
    config.name = "grid";
    config.constraint = "x > 0.3 && x < 0.4";
    refused (&config, "the constraint forbids all points of the grid", 0);
    config.constraint = "x > z";
    refused (&config, NULL, 5);
}

/* ---- points to try first, and known points ---- */

static const double first[] = { 0.5, 0.5, 1, 0, 0.25, 0.125 };

CASE (test_first)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct sweep w = start (k->name, 1);
        w.config.points = first;
        w.config.npoints = 3;
        if (!strcmp (k->name, "grid") || !strcmp (k->name, "single")) {
            refused (&w.config, "this searcher has points of its own", 0);
            if (!strcmp (k->name, "grid"))
                continue;
            w.config.npoints = 1; /* "single" accepts one point */
        }
        sweep_run (&w);
        for (int t = 0; t < w.config.npoints; t++) {
            assert_true (w.x[t + 1][0] == first[2 * t]);
            assert_true (w.x[t + 1][1] == first[2 * t + 1]);
        }
        w.config.constraint = "x < 0.4";
        refused (&w.config, "the constraint forbids a point to try first", 0);
        sweep_free (&w);
    }
}

CASE (test_first_outside)
{
    static const double bad[][2] = { { 2, 0 }, { 0, NAN }, { 0, -1e-9 } };
    struct search_config config = start ("random", 1).config;

    for (size_t i = 0; i < COUNT (bad); i++) {
        const struct search_known known = { bad[i], bad[i] };
        config.points = bad[i];
        config.npoints = 1;
        config.nknown = 0;
        refused (&config, "a point to try first is not in the space", 0);
        config.npoints = 0;
        config.known = &known;
        config.nknown = 1;
        refused (&config, "a known point is not in the space", 0);
    }
}

enum { KNOWN = 40 };

/* A model uses known points from the first trial on: its points lie near the best known ones.
 * Known points with a value that is not finite are never the best.
 */
CASE (test_known)
{
    static const char *const names[] = { "tpe", "gp", "cmaes", "auto" };
    double x[KNOWN][2], value[KNOWN];
    struct search_known known[KNOWN];
    uint64_t r = 7;

    for (int i = 0; i < KNOWN; i++) {
        x[i][0] = sweep_random (&r, 1001) / 1000.0;
        x[i][1] = sweep_random (&r, 1001) / 1000.0;
        value[i] = hypot (x[i][0] - 0.7, x[i][1] - 0.2);
        if (x[i][0] < 0.2)
            value[i] = i % 2 ? NAN : -INFINITY;
        known[i] = (struct search_known){ x[i], value + i };
    }
    for (size_t k = 0; k < COUNT (names); k++) {
        double far = 0;
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct sweep w = start (names[k], seed);
            w.config.max_trials = 6;
            w.config.max_length = 1;
            w.config.known = known;
            w.config.nknown = KNOWN;
            sweep_run (&w);
            assert_int_equal (w.trials, 6);
            for (long t = 1; t <= 6; t++)
                far += hypot (w.x[t][0] - 0.7, w.x[t][1] - 0.2) / 30;
            sweep_free (&w);
        }
        /* random points have a mean distance of 0.5 */
        assert_true (far < 0.3);
    }
}

/* Every method works if all known points are bad. */
CASE (test_known_bad)
{
    double x[KNOWN][2], value = NAN;
    struct search_known known[KNOWN];

    for (int i = 0; i < KNOWN; i++) {
        x[i][0] = i / (double)KNOWN;
        x[i][1] = 0.5;
        known[i] = (struct search_known){ x[i], &value };
    }
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct sweep w = start (k->name, 1);
        w.config.known = known;
        w.config.nknown = KNOWN;
        w.config.max_trials = 12;
        sweep_run (&w);
        sweep_free (&w);
    }
}

/* ---- rejected points ---- */

static bool left (const struct sweep *w, long trial, int segment)
{
    return segment == 1 && w->x[trial][0] < 0.25;
}

static bool all_of_them (const struct sweep *w, long trial, int segment)
{
    return segment == 1;
}

static bool promoted (const struct sweep *w, long trial, int segment)
{
    return segment == 2 && trial % 2;
}

/* Return whether the scheduler of this method can forget results. */
static bool forgets (const struct searcher_kind *k)
{
    static const char *const names[] = { "auto", "asha", "adaptive_asha", "pasha",
                                         "async_hyperband" };

    for (size_t i = 0; i < COUNT (names); i++)
        if (!strcmp (k->name, names[i]))
            return true;
    return false;
}

/* A new trial replaces each rejected one, up to twice the number of trials. */
CASE (test_reject)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        bool fixed = !strcmp (k->name, "grid") || !strcmp (k->name, "single");
        bool cloned = !strcmp (k->name, "pbt");
        struct sweep w = start (k->name, 2), all = w, plain = w, late = w;
        long rejected = 0;

        w.rejects = left;
        all.rejects = all_of_them;
        late.rejects = promoted;
        sweep_run (&w);
        sweep_run (&all);
        sweep_run (&plain);
        sweep_run (&late);
        for (long t = 1; t <= w.trials; t++)
            rejected += w.x[t][0] < 0.25;
        if (!cloned) {
            assert_int_equal (w.trials, plain.trials + (fixed ? 0 : rejected));
            assert_int_equal (all.trials, plain.trials * (fixed ? 1 : 2));
            assert_true (forgets (k) ? late.trials > plain.trials : late.trials == plain.trials);
        }
        assert_true (fixed || rejected > 0);
        assert_true (searcher_progress (all.s) == 1);
        sweep_free (&w);
        sweep_free (&all);
        sweep_free (&plain);
        sweep_free (&late);
    }
}

/* If cmaes cannot improve any more, it restarts at a random point. */
CASE (test_restarts)
{
    const struct param p[] = { FLOAT ("x", 0, 1, 0) };
    struct searcher *s = search_create ("cmaes", 4, 6000, p, COUNT (p));
    double value, low = 1, high = 0;
    long near = 0, restarts = 0;
    double x;

    for (long i = 0; i < 6000; i++) {
        long t = search_begin (s, &x);
        if (near > 10 && fabs (x - 0.3) > 1e-3) { /* the first point after a restart */
            restarts++;
            low = fmin (low, x);
            high = fmax (high, x);
        }
        near = fabs (x - 0.3) < 1e-6 ? near + 1 : 0;
        value = (x - 0.3) * (x - 0.3);
        searcher_observe (s, t, 1, &value);
    }
    assert_true (restarts >= 8);
    assert_true (low < 0.1 && high > 0.8);
    searcher_destroy (s);
}

RUN_CASES ()
