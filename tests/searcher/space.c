/* SPDX-License-Identifier: Apache-2.0 */
/* The space: invalid parameters and configurations, the middle, and random points. */
#include "searcher/numeric/rng.h"
#include "tests/searcher/params.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

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
    const char *grid; /* NULL: the same as for any searcher */
    const char *any;  /* NULL: valid */
} bad_params[] = {
    { { FLOAT ("a", 1, 0, 2) }, 1, 0, NULL, "the lower end of the range is above the upper end" },
    { { CHOICE ("b", 1), INT ("a", 1, 0, 2) }, 2, 1, NULL, "the lower end of the range is above the upper end" },
    { { LOG ("a", 10, -1, -2, 2) }, 1, 0, NULL, "the lower end of the range is above the upper end" },
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

static void check_refusal (const struct search_config *config, const struct param *params, size_t n,
                           const char *why, int where)
{
    struct search_mistake at;
    const char *said = searcher_check (config, params, n, &at);
    struct searcher *s;

    errno = 0;
    s = searcher_create (config, params, n);
    if (why) {
        assert_non_null (said);
        assert_string_equal (said, why);
        assert_int_equal (at.param, where);
        assert_null (s);
        assert_int_equal (errno, EINVAL);
    } else {
        assert_null (said);
        assert_int_equal (at.param, -1);
        assert_non_null (s);
    }
    searcher_destroy (s);
}

CASE (test_bad_params)
{
    struct search_config config = good;

    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (size_t i = 0; i < COUNT (bad_params); i++) {
            const char *why = bad_params[i].any;
            if (bad_params[i].grid && k->needs & NEED_GRID_COUNT)
                why = bad_params[i].grid;
            config.name = k->name;
            check_refusal (&config, bad_params[i].params, bad_params[i].n, why,
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

CASE (test_bad_config)
{
    for (size_t i = 0; i < COUNT (bad_configs); i++)
        check_refusal (&bad_configs[i].config, NULL, 0, bad_configs[i].why, -1);
}

CASE (test_single)
{
    static const struct param params[] = { FLOAT ("a", 1, 2, 0), INT ("b", 1, 4, 0),
                                           INT ("c", -4, -1, 0), LOG ("d", 10, -4, 0, 0),
                                           CHOICE ("e", 5),      INT ("f", 3, 3, 0) };
    static const double middle[] = { 1.5, 2, -3, 1e-2, 0, 3 };
    struct sweep w = { .config = { .name = "single", .max_length = 77 },
                       .params = params,
                       .n = COUNT (params),
                       .metric = sweep_plain };

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
    for (long i = 0; i < DRAWS; i++)
        sweep_next (s, x + i);
    assert_int_equal (searcher_ask (s, &op, x), SEARCH_WAIT);
    searcher_destroy (s);
}

/* Chi-squared statistic of 20000 draws in equally likely classes.  The 99.9 % quantile is 27.9
 * for 9 degrees of freedom and 16.3 for 3.
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

CASE (test_random_values)
{
    static const struct param f = FLOAT ("f", -3, 7, 0);
    static const struct param i = INT ("i", -3, 6, 0);
    static const struct param wide = INT ("w", -0x1p53, 0x1p53, 0);
    static const struct param l = LOG ("l", 10, -5, 0, 0);
    static const struct param c = CHOICE ("c", 4);
    static double x[DRAWS];

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

/* Scaling 64 random bits to 3 * 2^62 numbers would make every third number twice as likely as
 * the others.
 */
CASE (test_below)
{
    static double x[DRAWS];

    for (int i = 0; i < DRAWS; i++)
        x[i] = rng_below (1, i, 2, UINT64_C (3) << 62) % 3;
    /* the 99.9 % quantile for 2 degrees of freedom */
    assert_true (chi2 (x, 0, 3, 3) < 13.8);
    for (int i = 0; i < 100; i++)
        assert_int_equal (rng_below (1, i, 2, 1), 0);
}

/* Draws do not correlate between seeds, between names, or between consecutive trials. */
CASE (test_random_independent)
{
    static const struct param a = FLOAT ("a", 0, 1, 0);
    static const struct param b = FLOAT ("b", 0, 1, 0);
    static double x[DRAWS], y[DRAWS], z[DRAWS];
    double seed = 0, name = 0, next = 0;

    draw (&a, 1, x);
    draw (&a, 2, y);
    draw (&b, 1, z);
    for (int i = 0; i + 1 < DRAWS; i++) {
        seed += (x[i] - .5) * (y[i] - .5) * 12;
        name += (x[i] - .5) * (z[i] - .5) * 12;
        next += (x[i] - .5) * (x[i + 1] - .5) * 12;
    }
    /* the standard deviation of the correlation is 1 / sqrt (20000) = 0.007 */
    assert_true (fabs (seed / DRAWS) < 0.025);
    assert_true (fabs (name / DRAWS) < 0.025);
    assert_true (fabs (next / DRAWS) < 0.025);
}

RUN_CASES ()
