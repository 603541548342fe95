/* SPDX-License-Identifier: Apache-2.0 */
/* Several objectives: how the searcher reads their values, and that methods learn from them. */
#include "searcher/state/state.h"
#include "tests/searcher/fronts.h"
#include "tests/searcher/params.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

static const struct param cube[] = { FLOAT ("a", 0, 1, 0), FLOAT ("b", 0, 1, 0),
                                     FLOAT ("c", 0, 1, 0), FLOAT ("d", 0, 1, 0) };

/* ZDT1 (E. Zitzler and others, 2000).  The front is at b = c = d = 0. */
static void zdt1 (const struct sweep *w, long trial, double *y)
{
    const double *x = w->x[trial];
    double g = 1 + 3 * (x[1] + x[2] + x[3]);

    y[0] = x[0];
    y[1] = g * (1 - sqrt (x[0] / g));
}

/* DTLZ2 (K. Deb and others, 2002).  The front is an eighth of a sphere. */
static void sphere (const struct sweep *w, long trial, double *y)
{
    const double *x = w->x[trial], half = 1.5707963267948966;
    double g = 1 + 4 * (pow (x[2] - 0.5, 2) + pow (x[3] - 0.5, 2));

    y[0] = g * cos (x[0] * half) * cos (x[1] * half);
    y[1] = g * cos (x[0] * half) * sin (x[1] * half);
    y[2] = g * sin (x[0] * half);
}

static struct sweep start (const char *name, uint64_t seed, long objectives)
{
    struct sweep w = { .config = SEARCH (name, .seed = seed, LADDER (60, 1, 3, 1),
                                         .objectives = objectives, .population = 12),
                       .params = cube,
                       .n = COUNT (cube),
                       .metrics = objectives == 2 ? zdt1 : sphere,
                       .workers = 2 };

    return w;
}

static double volume (const char *name, uint64_t seed, long m, long trials)
{
    static const double reference[] = { 1.1, 4, 2 };
    struct sweep w = start (name, seed, m);
    double y[3 * 100], found;

    w.config.max_trials = trials;
    sweep_run (&w);
    for (long t = 1; t <= w.trials; t++)
        w.metrics (&w, t, y + (t - 1) * m);
    found = hypervolume (y, w.trials, m, m, m == 2 ? reference : (double[]){ 2, 2, 2 });
    sweep_free (&w);
    return found;
}

static void check_learns (const char *name, long m, long trials, int seeds)
{
    int wins = 0;

    for (int seed = 1; seed <= seeds; seed++)
        wins += volume (name, seed, m, trials) > volume ("random", seed, m, trials);
    assert_true (10 * wins >= 8 * seeds);
}

CASE (test_learns)
{
    check_learns ("tpe", 2, 80, 10);
    check_learns ("tpe", 3, 80, 10);
    check_learns ("nsga2", 2, 100, 10);
    check_learns ("nsga2", 3, 100, 10);
}

CASE (test_learns_gp)
{
    check_learns ("gp", 2, 30, 5);
    check_learns ("gp", 3, 40, 5);
    check_learns ("auto", 2, 30, 5);
}

static long flipped;

static void flip (const struct sweep *w, long trial, double *y)
{
    sphere (w, trial, y);
    for (int k = 0; k < 3; k++)
        if (flipped >> k & 1)
            y[k] = -y[k];
}

/* Maximizing the negated objectives proposes the same points. */
CASE (test_larger)
{
    static const char *const names[] = { "tpe", "nsga2", "gp" };

    for (size_t k = 0; k < COUNT (names); k++)
        for (flipped = 1; flipped < 8; flipped++) {
            struct sweep a = start (names[k], 3, 3), b = a;
            a.config.max_trials = b.config.max_trials = k == 2 ? 12 : 30;
            b.metrics = flip;
            b.config.smaller_is_better = !(flipped & 1);
            b.config.larger[0] = true; /* ignored; smaller_is_better counts */
            b.config.larger[1] = flipped & 2;
            b.config.larger[2] = flipped & 4;
            sweep_run (&a);
            sweep_run (&b);
            for (long t = 1; t <= a.trials; t++)
                assert_memory_equal (a.x[t], b.x[t], sizeof (a.x[t]));
            sweep_free (&a);
            sweep_free (&b);
        }
}

static void half_bad (const struct sweep *w, long trial, double *y)
{
    zdt1 (w, trial, y);
    if (w->x[trial][0] < 0.3)
        y[trial % 2] = trial % 3 ? NAN : -INFINITY;
}

static void all_bad (const struct sweep *w, long trial, double *y)
{
    y[0] = trial % 2 ? 1 : NAN;
    y[1] = trial % 2 ? INFINITY : 1;
}

static void same (const struct sweep *w, long trial, double *y)
{
    y[0] = y[1] = 7;
}

CASE (test_bad_values)
{
    static void (*const metrics[]) (const struct sweep *, long, double *) = { half_bad, all_bad,
                                                                              same };

    for (size_t i = 0; i < COUNT (metrics); i++)
        for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
            struct sweep w = start (k->name, 1, 2);
            if (!(k->needs & HAS_OBJECTIVES))
                continue;
            w.metrics = metrics[i];
            w.config.max_trials = 25;
            sweep_run (&w);
            assert_int_equal (w.trials, 25);
            sweep_free (&w);
        }
}

/* A known point is bad if any of its values is not finite. */
CASE (test_known)
{
    double x[20][4], value[20][2];
    struct search_known known[20];
    uint64_t r = 3;

    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 4; k++)
            x[i][k] = sweep_random (&r, 1000) / 1000.0;
        value[i][0] = i % 2 ? -9 : x[i][1];
        value[i][1] = i % 2 ? NAN : x[i][2];
        x[i][3] = i % 2 ? 0.9 + x[i][3] / 10 : x[i][3] / 3;
        known[i] = (struct search_known){ x[i], value[i] };
    }
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct sweep w = start (seed % 2 ? "tpe" : "nsga2", seed, 2);
        int there = 0;
        w.config.known = known;
        w.config.nknown = 20;
        w.config.max_trials = 10;
        sweep_run (&w);
        for (long t = 1; t <= 10; t++)
            there += w.x[t][3] > 0.88;
        assert_true (there < 5);
        sweep_free (&w);
    }
}

CASE (test_bad)
{
    static const double y[] = { 1, 2 };
    struct search_config config = start ("random", 1, 2).config;
    struct searcher *s = searcher_create (&config, cube, 4);
    double x[4];

    sweep_next (s, x);
    assert_int_equal (searcher_observe (s, 1, 2, y), -1);
    assert_int_equal (searcher_observe (s, 1, 1, y), 0);
    assert_int_equal (searcher_observe (s, 1, 1, y), -1);
    searcher_destroy (s);
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        config.name = k->name;
        if (k->needs & HAS_OBJECTIVES)
            assert_null (searcher_check (&config, cube, 4, NULL));
        else
            assert_string_equal (searcher_check (&config, cube, 4, NULL),
                                 "this searcher takes one metric only; auto, "
                                 "random, sobol, lhs, tpe, gp and nsga2 take "
                                 "several");
    }
    config.name = "random";
    config.sampler = "cmaes";
    assert_string_equal (searcher_check (&config, cube, 4, NULL),
                         "the sampler takes one metric only");
    config.sampler = NULL;
    config.repeats = 2;
    assert_null (searcher_check (&config, cube, 4, NULL));
    config.repeats = 0;
    config.objectives = 9;
    assert_string_equal (searcher_check (&config, cube, 4, NULL), "there can be 1 to 8 objectives");
}

/* With two trials per point and three values each, the method learns the means. */
CASE (test_repeats)
{
    struct search_config config = {
        .name = "tpe", .seed = 5, .max_trials = 2, .max_length = 1, .objectives = 3
    };
    struct searcher *once = searcher_create (&config, cube, 4);
    struct searcher *twice;
    double values[][3] = { { 1, 4, 0 }, { 3, 8, 1 } }, mean[] = { 2, 6, .5 };
    struct search_op op;
    double x[4];

    config.repeats = 2;
    assert_non_null (twice = searcher_create (&config, cube, 4));
    for (int i = 0; i < 2; i++) {
        assert_int_equal (searcher_ask (twice, &op, x), SEARCH_RUN);
        assert_int_equal (op.trial, i + 1);
        assert_int_equal (searcher_begin (twice, &op, x), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal (searcher_observe (twice, i + 1, 1, values[i]), 0);
    op = sweep_next (once, x);
    assert_int_equal (searcher_observe (once, 1, 1, mean), 0);
    for (int64_t k = 0; k < 3; k++)
        assert_true (searcher_values (once, 1)[k] == searcher_values (twice, 1)[k]);
    searcher_destroy (once);
    searcher_destroy (twice);
}

RUN_CASES ()
