/* SPDX-License-Identifier: Apache-2.0 */
/* The points of a grid and their order. */
#include "tests/searcher/params.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

/* clang-format off */
static const struct {
    struct param params[3];
    size_t n;
    long trials;
    double x[10][3]; /* in the order of the trials */
} grids[] = {
    { { INT ("a", 0, 20, 3), INT ("b", 0, 10, 3) }, 2, 9,
      { { 0, 0 }, { 0, 5 }, { 0, 10 }, { 10, 0 }, { 10, 5 }, { 10, 10 },
        { 20, 0 }, { 20, 5 }, { 20, 10 } } },
    /* sorted by name, so "a" varies slowest */
    { { INT ("b", 0, 10, 3), INT ("a", 0, 20, 3) }, 2, 9,
      { { 0, 0 }, { 5, 0 }, { 10, 0 }, { 0, 10 }, { 5, 10 }, { 10, 10 },
        { 0, 20 }, { 5, 20 }, { 10, 20 } } },
    { { INT ("a", 0, 4, 5) }, 1, 5, { { 0 }, { 1 }, { 2 }, { 3 }, { 4 } } },
    { { INT ("a", 0, 4, 0) }, 1, 5, { { 0 }, { 1 }, { 2 }, { 3 }, { 4 } } },
    { { INT ("a", -4, -2, 3) }, 1, 3, { { -4 }, { -3 }, { -2 } } },
    { { INT ("a", 0, 2, 100) }, 1, 3, { { 0 }, { 1 }, { 2 } } },
    { { INT ("a", 0, 3, 3) }, 1, 3, { { 0 }, { 2 }, { 3 } } },
    { { INT ("a", -3, 0, 3) }, 1, 3, { { -3 }, { -2 }, { 0 } } },
    { { INT ("a", 7, 10, 1) }, 1, 1, { { 8 } } },
    { { INT ("a", -10, -7, 1) }, 1, 1, { { -9 } } },
    { { INT ("a", 5, 5, 0) }, 1, 1, { { 5 } } },
    { { INT ("a", -0x1p53, 0x1p53, 3) }, 1, 3,
      { { -0x1p53 }, { 0 }, { 0x1p53 } } },
    { { LOG ("a", 10, -5, -3, 3) }, 1, 3, { { 1e-5 }, { 1e-4 }, { 1e-3 } } },
    { { LOG ("a", 2, 0, 4, 1) }, 1, 1, { { 4 } } },
    { { FLOAT ("a", .1, .5, 3) }, 1, 3, { { .1 }, { .3 }, { .5 } } },
    { { FLOAT ("a", 0, 1, 1) }, 1, 1, { { .5 } } },
    { { FLOAT ("a", 3, 3, 2) }, 1, 2, { { 3 }, { 3 } } },
    { { CHOICE ("c", 2), FLOAT ("a", 0, 1, 2), CHOICE ("b", 1) }, 3, 4,
      { { 0, 0, 0 }, { 1, 0, 0 }, { 0, 1, 0 }, { 1, 1, 0 } } },
    { { CHOICE ("a", 1) }, 0, 1, { { 0 } } }, /* no parameters */
};
/* clang-format on */

CASE (test_grid)
{
    for (size_t i = 0; i < COUNT (grids); i++) {
        struct sweep w = { .config = { .name = "grid", .max_length = 3 },
                           .params = grids[i].params,
                           .n = grids[i].n,
                           .metric = sweep_plain };

        sweep_run (&w);
        assert_int_equal (w.trials, grids[i].trials);
        for (long t = 1; t <= w.trials; t++)
            for (size_t k = 0; k < w.n; k++)
                assert_true (fabs (w.x[t][k] - grids[i].x[t - 1][k]) <= 1e-15 * fabs (w.x[t][k]));
        sweep_free (&w);
    }
}

CASE (test_grid_sizes)
{
    static const struct {
        long sizes[6];
        long product;
    } cases[] = {
        { { 1 }, 1 },     { { 4 }, 4 },        { { 1, 4 }, 4 },
        { { 3, 4 }, 12 }, { { 2, 3, 4 }, 24 }, { { 2, 2, 3, 3, 4, 5 }, 720 },
    };
    static const char *const names[] = { "f", "b", "d", "a", "e", "c" };

    for (size_t i = 0; i < COUNT (cases); i++) {
        struct param params[6] = { { 0 } };
        struct sweep w = { .config = { .name = "grid", .max_length = 1 },
                           .params = params,
                           .metric = sweep_plain };

        while (w.n < 6 && cases[i].sizes[w.n]) {
            params[w.n] = (struct param)FLOAT (names[w.n], 0, 1, cases[i].sizes[w.n]);
            w.n++;
        }
        sweep_run (&w);
        assert_int_equal (w.trials, cases[i].product);
        for (long t = 2; t <= w.trials; t++)
            for (long other = 1; other < t; other++)
                assert_memory_not_equal (w.x[t], w.x[other], w.n * sizeof (double));
        sweep_free (&w);
    }
}

/* Nested names and a constant: 16 points in order. */
CASE (test_grid_nested)
{
    static const struct param params[] = {
        CHOICE ("a.b.c1", 2),   INT ("a.b.c2", 7, 11, 2), FLOAT ("f", 13, 17, 2),
        LOG ("l", 10, 1, 2, 2), CHOICE ("constant", 1),
    };
    struct sweep w = { .config = { .name = "grid", .max_length = 1 },
                       .params = params,
                       .n = COUNT (params),
                       .metric = sweep_plain };

    sweep_run (&w);
    assert_int_equal (w.trials, 16);
    for (long t = 1; t <= 16; t++) {
        assert_true (w.x[t][0] == ((t - 1) / 8 % 2));
        assert_true (w.x[t][1] == ((t - 1) / 4 % 2 ? 11 : 7));
        assert_true (w.x[t][2] == ((t - 1) / 2 % 2 ? 17 : 13));
        assert_true (w.x[t][3] == ((t - 1) % 2 ? 100 : 10));
        assert_true (w.x[t][4] == 0);
    }
    sweep_free (&w);
}

static bool first_fails (const struct sweep *w, long trial, int segment)
{
    return trial == 1;
}

CASE (test_concurrent)
{
    static const struct param four = CHOICE ("a", 4);
    struct sweep grid = { .config = { .name = "grid", .max_length = 1, .max_concurrent = 2 },
                          .params = &four,
                          .n = 1,
                          .metric = sweep_plain };
    struct sweep random = {
        .config = { .name = "random", .max_trials = 4, .max_length = 1, .max_concurrent = 2 },
        .params = &four,
        .n = 1,
        .metric = sweep_plain,
        .fails = first_fails
    };

    sweep_run (&grid);
    assert_int_equal (grid.trials, 4);
    assert_int_equal (grid.most_running, 2);
    sweep_free (&grid);
    sweep_run (&random);
    assert_int_equal (random.trials, 4);
    assert_int_equal (random.most_running, 2);
    sweep_free (&random);
}

/* In floating point, .05 + 1 * (.21 - .05) is less than .21. */
CASE (test_grid_ends_at_max)
{
    static const struct param p = FLOAT ("a", .05, .21, 5);
    struct sweep w = {
        .config = { .name = "grid", .max_length = 1 }, .params = &p, .n = 1, .metric = sweep_plain
    };

    sweep_run (&w);
    assert_true (w.x[1][0] == p.min);
    assert_true (w.x[5][0] == p.max);
    sweep_free (&w);
}

RUN_CASES ()
