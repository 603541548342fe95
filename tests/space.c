/* SPDX-License-Identifier: Apache-2.0 */
/* The space: what is refused, the points of a grid, random points. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "searcher/rng.h"
#include "tests/sweep.h"

#define COUNT(a) (sizeof (a) / sizeof ((a)[0]))

#define FLOAT(name, min, max, count)                                           \
    {                                                                          \
        name, PARAM_FLOAT, min, max, 0, 0, count                               \
    }
#define INT(name, min, max, count)                                             \
    {                                                                          \
        name, PARAM_INT, min, max, 0, 0, count                                 \
    }
#define LOG(name, base, min, max, count)                                       \
    {                                                                          \
        name, PARAM_LOG, min, max, base, 0, count                              \
    }
#define CHOICE(name, n)                                                        \
    {                                                                          \
        name, PARAM_CATEGORICAL, 0, 0, 0, n, 0                                 \
    }

static const struct search_config good = { .name = "adaptive_asha",
                                           .max_trials = 10,
                                           .max_length = 9,
                                           .divisor = 3,
                                           .max_rungs = 3,
                                           .mode = SEARCH_STANDARD };

/* clang-format off */
static const struct {
    struct param params[2];
    size_t n;
    int param;
    const char *grid; /* NULL: the same as of any searcher */
    const char *any;  /* NULL: nothing is wrong */
} bad_params[] = {
    { { FLOAT ("a", 1, 0, 2) }, 1, 0, NULL, "min is above max" },
    { { CHOICE ("b", 1), INT ("a", 1, 0, 2) }, 2, 1, NULL, "min is above max" },
    { { LOG ("a", 10, -1, -2, 2) }, 1, 0, NULL, "min is above max" },
    { { FLOAT ("a", NAN, 0, 2) }, 1, 0, NULL,
      "min or max is not a finite number" },
    { { INT ("a", 0, INFINITY, 2) }, 1, 0, NULL,
      "min or max is not a finite number" },
    { { LOG ("a", 10, -INFINITY, 0, 2) }, 1, 0, NULL,
      "min or max is not a finite number" },
    { { FLOAT ("a", -1.5e308, 1.5e308, 2) }, 1, 0, NULL,
      "max - min is not a finite number" },
    { { INT ("a", 0.5, 3, 2) }, 1, 0, NULL, "min or max is not an integer" },
    { { INT ("a", 0, 3.5, 2) }, 1, 0, NULL, "min or max is not an integer" },
    { { INT ("a", 0, 0x1p54, 2) }, 1, 0, NULL, "min or max is beyond 2^53" },
    { { INT ("a", -0x1p54, 0, 2) }, 1, 0, NULL, "min or max is beyond 2^53" },
    { { LOG ("a", 1, -3, 0, 2) }, 1, 0, NULL, "base is not above 1" },
    { { LOG ("a", 0, -3, 0, 2) }, 1, 0, NULL, "base is not above 1" },
    { { LOG ("a", NAN, -3, 0, 2) }, 1, 0, NULL, "base is not above 1" },
    { { LOG ("a", INFINITY, -3, 0, 2) }, 1, 0, NULL, "base is not above 1" },
    { { LOG ("a", 10, 0, 309, 2) }, 1, 0, NULL,
      "base^min or base^max is not a number above 0" },
    { { LOG ("a", 10, -400, 0, 2) }, 1, 0, NULL,
      "base^min or base^max is not a number above 0" },
    { { CHOICE ("a", 0) }, 1, 0, NULL, "no choices" },
    { { CHOICE ("a", -1) }, 1, 0, NULL, "no choices" },
    { { CHOICE (NULL, 2) }, 1, 0, NULL, "the parameter has no name" },
    { { CHOICE ("a", 2), CHOICE ("", 2) }, 2, 1, NULL,
      "the parameter has no name" },
    { { CHOICE ("a", 2), FLOAT ("a", 0, 1, 2) }, 2, 1, NULL,
      "another parameter has the same name" },
    { { FLOAT ("a", 0, 1, -1) }, 1, 0, NULL, "count is negative" },
    { { { "a", (enum param_type)7, 0, 1, 0, 1, 1 } }, 1, 0, NULL,
      "unknown type of parameter" },
    { { CHOICE ("b", 3), FLOAT ("a", 0, 1, 0) }, 2, 1,
      "count is missing: a grid needs it for float and log", NULL },
    { { LOG ("a", 10, 0, 1, 0) }, 1, 0,
      "count is missing: a grid needs it for float and log", NULL },
    { { INT ("a", 0, 10000000, 0) }, 1, 0,
      "the grid has more than 10000000 points", NULL },
    { { INT ("a", -0x1p53, 0x1p53, 0) }, 1, 0,
      "the grid has more than 10000000 points", NULL },
    { { CHOICE ("a", 10000), CHOICE ("b", 1001) }, 2, 1,
      "the grid has more than 10000000 points", NULL },
    { { FLOAT ("a", 0, 0, 1) }, 1, -1, NULL, NULL },
    { { INT ("a", -0x1p53, 0x1p53, 9) }, 1, -1, NULL, NULL },
    { { INT ("a", 1, 10000000, 0) }, 1, -1, NULL, NULL },
    { { CHOICE ("a", 1), CHOICE ("a.b", 1) }, 2, -1, NULL, NULL },
};
/* clang-format on */

static void check_refusal (const struct search_config *config,
                           const struct param *params,
                           size_t n,
                           const char *why,
                           int where)
{
    int param = 99;
    const char *said = searcher_check (config, params, n, &param);
    struct searcher *s;

    errno = 0;
    s = searcher_create (config, params, n);
    if (why) {
        assert_non_null (said);
        assert_string_equal (said, why);
        assert_int_equal (param, where);
        assert_null (s);
        assert_int_equal (errno, EINVAL);
    } else {
        assert_null (said);
        assert_int_equal (param, -1);
        assert_non_null (s);
    }
    searcher_destroy (s);
}

static void test_bad_params (void **state)
{
    struct search_config config = good;

    (void)state;
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (size_t i = 0; i < COUNT (bad_params); i++) {
            const char *why = bad_params[i].any;
            if (bad_params[i].grid && k->needs & NEED_GRID_COUNT)
                why = bad_params[i].grid;
            config.name = k->name;
            check_refusal (&config,
                           bad_params[i].params,
                           bad_params[i].n,
                           why,
                           bad_params[i].param);
        }
}

/* clang-format off */
#define CONFIG(name, trials, length, divisor, rungs, mode, concurrent)         \
    { name, 1, trials, length, true, divisor, rungs, mode, concurrent }

static const struct {
    struct search_config config;
    const char *why;
} bad_configs[] = {
    { CONFIG (NULL, 1, 1, 3, 1, 0, 0), "unknown searcher" },
    { CONFIG ("", 1, 1, 3, 1, 0, 0), "unknown searcher" },
    { CONFIG ("ash", 1, 1, 3, 1, 0, 0), "unknown searcher" },
    { CONFIG ("single", 0, 0, 0, 0, 0, 0), "max_length is below 1" },
    { CONFIG ("asha", 1, (INT64_C (1) << 53) + 1, 3, 1, 0, 0),
      "max_length is above 2^53" },
    { CONFIG ("grid", 0, 1, 0, 0, 0, -1), "max_concurrent is negative" },
    { CONFIG ("random", 0, 1, 0, 0, 0, 0), "max_trials is below 1" },
    { CONFIG ("asha", -1, 1, 3, 1, 0, 0), "max_trials is below 1" },
    { CONFIG ("adaptive_asha", 10000001, 1, 3, 1, 0, 0),
      "max_trials is above 10000000" },
    { CONFIG ("asha", 1, 1, 1, 1, 0, 0), "divisor is not above 1" },
    { CONFIG ("asha", 1, 1, -3, 1, 0, 0), "divisor is not above 1" },
    { CONFIG ("asha", 1, 1, NAN, 1, 0, 0), "divisor is not above 1" },
    { CONFIG ("adaptive_asha", 1, 1, INFINITY, 1, 0, 0),
      "divisor is not above 1" },
    { CONFIG ("asha", 1, 1, 1001, 1, 0, 0), "divisor is above 1000" },
    { CONFIG ("asha", 1, 1, 2.71828, 1, 0, 0),
      "divisor has more than three decimals" },
    { CONFIG ("asha", 1, 1, 1.0001, 1, 0, 0),
      "divisor has more than three decimals" },
    { CONFIG ("asha", 1, 1, 3, 0, 0, 0), "max_rungs is below 1" },
    { CONFIG ("adaptive_asha", 1, 1, 3, 1, (enum search_mode)3, 0),
      "unknown mode" },
    { CONFIG ("single", 0, 1, 0, 0, (enum search_mode)3, 0), NULL },
    { CONFIG ("grid", -5, 1, 0, 0, 0, 0), NULL },
    { CONFIG ("random", 1, 1, 0, 0, 0, 0), NULL },
    { CONFIG ("asha", 1, INT64_C (1) << 53, 2.718, 99, 3, 7), NULL },
    { CONFIG ("adaptive_asha", 1, 1, 1000, 1, 2, 0), NULL },
};
/* clang-format on */

static void test_bad_config (void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT (bad_configs); i++)
        check_refusal (&bad_configs[i].config, NULL, 0, bad_configs[i].why, -1);
}

/* ---- grid ---- */

static double no_metric (const struct sweep *w, long trial, int64_t length)
{
    (void)w;
    return trial + length;
}

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
    /* by name: "a" is the slow one */
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

static void test_grid (void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT (grids); i++) {
        struct sweep w = { .config = { .name = "grid", .max_length = 3 },
                           .params = grids[i].params,
                           .n = grids[i].n,
                           .metric = no_metric };

        sweep_run (&w);
        assert_int_equal (w.trials, grids[i].trials);
        for (long t = 1; t <= w.trials; t++)
            for (size_t k = 0; k < w.n; k++)
                assert_true (fabs (w.x[t][k] - grids[i].x[t - 1][k])
                             <= 1e-15 * fabs (w.x[t][k]));
        sweep_free (&w);
    }
}

static void test_grid_sizes (void **state)
{
    static const struct {
        long sizes[6];
        long product;
    } cases[] = {
        { { 1 }, 1 },     { { 4 }, 4 },        { { 1, 4 }, 4 },
        { { 3, 4 }, 12 }, { { 2, 3, 4 }, 24 }, { { 2, 2, 3, 3, 4, 5 }, 720 },
    };
    static const char *const names[] = { "f", "b", "d", "a", "e", "c" };

    (void)state;
    for (size_t i = 0; i < COUNT (cases); i++) {
        struct param params[6] = { { 0 } };
        struct sweep w = { .config = { .name = "grid", .max_length = 1 },
                           .params = params,
                           .metric = no_metric };

        while (w.n < 6 && cases[i].sizes[w.n]) {
            params[w.n] =
                (struct param)FLOAT (names[w.n], 0, 1, cases[i].sizes[w.n]);
            w.n++;
        }
        sweep_run (&w);
        assert_int_equal (w.trials, cases[i].product);
        for (long t = 2; t <= w.trials; t++)
            for (long other = 1; other < t; other++)
                assert_memory_not_equal (
                    w.x[t], w.x[other], w.n * sizeof (double));
        sweep_free (&w);
    }
}

/* a.b.c1 is one of 3 and 5; 16 points, all different, the constant in each */
static void test_grid_nested (void **state)
{
    static const struct param params[] = {
        CHOICE ("a.b.c1", 2),   INT ("a.b.c2", 7, 11, 2),
        FLOAT ("f", 13, 17, 2), LOG ("l", 10, 1, 2, 2),
        CHOICE ("constant", 1),
    };
    struct sweep w = { .config = { .name = "grid", .max_length = 1 },
                       .params = params,
                       .n = COUNT (params),
                       .metric = no_metric };

    (void)state;
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
    (void)w;
    (void)segment;
    return trial == 1;
}

static void test_concurrent (void **state)
{
    static const struct param four = CHOICE ("a", 4);
    struct sweep grid = {
        .config = { .name = "grid", .max_length = 1, .max_concurrent = 2 },
        .params = &four,
        .n = 1,
        .metric = no_metric
    };
    struct sweep random = { .config = { .name = "random",
                                        .max_trials = 4,
                                        .max_length = 1,
                                        .max_concurrent = 2 },
                            .params = &four,
                            .n = 1,
                            .metric = no_metric,
                            .fails = first_fails };

    (void)state;
    sweep_run (&grid);
    assert_int_equal (grid.trials, 4);
    assert_int_equal (grid.most_running, 2);
    sweep_free (&grid);
    sweep_run (&random);
    assert_int_equal (random.trials, 4);
    assert_int_equal (random.most_running, 2);
    sweep_free (&random);
}

/* .05 + 1 * (.21 - .05) is less than .21 in floating point. */
static void test_grid_ends_at_max (void **state)
{
    static const struct param p = FLOAT ("a", .05, .21, 5);
    struct sweep w = { .config = { .name = "grid", .max_length = 1 },
                       .params = &p,
                       .n = 1,
                       .metric = no_metric };

    (void)state;
    sweep_run (&w);
    assert_true (w.x[1][0] == p.min);
    assert_true (w.x[5][0] == p.max);
    sweep_free (&w);
}

/* ---- single and random ---- */

static void test_single (void **state)
{
    static const struct param params[] = {
        FLOAT ("a", 1, 2, 0),    INT ("b", 1, 4, 0), INT ("c", -4, -1, 0),
        LOG ("d", 10, -4, 0, 0), CHOICE ("e", 5),    INT ("f", 3, 3, 0)
    };
    static const double middle[] = { 1.5, 2, -3, 1e-2, 0, 3 };
    struct sweep w = { .config = { .name = "single", .max_length = 77 },
                       .params = params,
                       .n = COUNT (params),
                       .metric = no_metric };

    (void)state;
    sweep_run (&w);
    assert_int_equal (w.trials, 1);
    assert_int_equal (w.length[1], 77);
    for (size_t i = 0; i < w.n; i++)
        assert_true (fabs (w.x[1][i] - middle[i]) < 1e-15);
    sweep_free (&w);
}

enum { DRAWS = 20000 };

static void draw (const struct param *p, uint64_t seed, double *x)
{
    const struct search_config config = {
        .name = "random", .seed = seed, .max_trials = DRAWS, .max_length = 1
    };
    struct searcher *s = searcher_create (&config, p, 1);
    struct search_op op;

    assert_non_null (s);
    for (long i = 0; i < DRAWS; i++) {
        assert_int_equal (searcher_ask (s, &op, x + i), SEARCH_RUN);
        assert_int_equal (searcher_begin (s, &op, x + i), 0);
    }
    assert_int_equal (searcher_ask (s, &op, x), SEARCH_WAIT);
    searcher_destroy (s);
}

/* Chi-squared of 20000 draws in equal classes of p: for 9 degrees of freedom
 * 99.9 % are below 27.9, and for 3 below 16.3.
 */
static double chi2 (const double *x, double min, double width, int classes)
{
    double seen[16] = { 0 }, sum = 0, expected = (double)DRAWS / classes;

    for (int i = 0; i < DRAWS; i++) {
        int class = floor ((x[i] - min) / width * classes);
        assert_in_range (class, 0, classes - 1);
        seen[class]++;
    }
    for (int i = 0; i < classes; i++)
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    return sum;
}

static void test_random_values (void **state)
{
    static const struct param f = FLOAT ("f", -3, 7, 0);
    static const struct param i = INT ("i", -3, 6, 0);
    static const struct param wide = INT ("w", -0x1p53, 0x1p53, 0);
    static const struct param l = LOG ("l", 10, -5, 0, 0);
    static const struct param c = CHOICE ("c", 4);
    static double x[DRAWS];

    (void)state;
    draw (&f, 1, x);
    assert_true (chi2 (x, -3, 10, 10) < 27.9);
    draw (&i, 1, x);
    assert_true (chi2 (x, -3, 10, 10) < 27.9);
    draw (&wide, 1, x);
    assert_true (chi2 (x, -0x1p53, 0x1p54 + 4, 10) < 27.9);
    for (int k = 0; k < DRAWS; k++)
        assert_true (x[k] == floor (x[k]));
    draw (&c, 1, x);
    assert_true (chi2 (x, 0, 4, 4) < 16.3);
    draw (&l, 1, x);
    for (int k = 0; k < DRAWS; k++) {
        assert_true (x[k] >= 1e-5 && x[k] <= 1);
        x[k] = log10 (x[k]);
    }
    assert_true (chi2 (x, -5, 5, 10) < 27.9);
}

/* Of 3 * 2^62 numbers each third would come twice as often as the others, if
 * 64 random bits were only scaled.
 */
static void test_below (void **state)
{
    static double x[DRAWS];

    (void)state;
    for (int i = 0; i < DRAWS; i++)
        x[i] = rng_below (1, i, 2, UINT64_C (3) << 62) % 3;
    /* 2 degrees of freedom, 99.9 % */
    assert_true (chi2 (x, 0, 3, 3) < 13.8);
    for (int i = 0; i < 100; i++)
        assert_int_equal (rng_below (1, i, 2, 1), 0);
}

/* Neither seeds nor names nor trials next to each other are alike. */
static void test_random_independent (void **state)
{
    static const struct param a = FLOAT ("a", 0, 1, 0);
    static const struct param b = FLOAT ("b", 0, 1, 0);
    static double x[DRAWS], y[DRAWS], z[DRAWS];
    double seed = 0, name = 0, next = 0;

    (void)state;
    draw (&a, 1, x);
    draw (&a, 2, y);
    draw (&b, 1, z);
    for (int i = 0; i + 1 < DRAWS; i++) {
        seed += (x[i] - .5) * (y[i] - .5) * 12;
        name += (x[i] - .5) * (z[i] - .5) * 12;
        next += (x[i] - .5) * (x[i + 1] - .5) * 12;
    }
    /* correlation: its standard deviation is 1 / sqrt (20000) = 0.007 */
    assert_true (fabs (seed / DRAWS) < 0.025);
    assert_true (fabs (name / DRAWS) < 0.025);
    assert_true (fabs (next / DRAWS) < 0.025);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_bad_params),
        cmocka_unit_test (test_bad_config),
        cmocka_unit_test (test_grid),
        cmocka_unit_test (test_grid_sizes),
        cmocka_unit_test (test_grid_nested),
        cmocka_unit_test (test_grid_ends_at_max),
        cmocka_unit_test (test_concurrent),
        cmocka_unit_test (test_single),
        cmocka_unit_test (test_random_values),
        cmocka_unit_test (test_below),
        cmocka_unit_test (test_random_independent),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
