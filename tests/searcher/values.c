/* SPDX-License-Identifier: Apache-2.0 */
/* Values of one parameter: steps, normal priors, and quantiles. */
#include "searcher/space/space.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

enum { DRAWS = 1024 };

static const char *const samplers[] = { "random", "sobol", "lhs" };

/* Draw n points; the search observes -x as the value of each. */
static void draw (const char *name, const struct param *p, uint64_t seed, long n, double *x)
{
    const struct search_config config =
        SEARCH (name, .seed = seed, .max_trials = n, .max_length = 1, .population = 8);
    struct searcher *s = searcher_create (&config, p, 1);
    struct search_op op;

    assert_non_null (s);
    for (long i = 0; i < n; i++) {
        op = sweep_next (s, x + i);
        assert_int_equal (searcher_observe (s, op.trial, 1, &(double){ -x[i] }), 0);
    }
    searcher_destroy (s);
}

/* ---- steps ---- */

/* clang-format off */
static const struct {
    struct param p;
    int n;
    double values[6];
} steps[] = {
    { { .name = "a", .type = PARAM_FLOAT, .min = 0, .max = 1, .step = .25 },
      5, { 0, .25, .5, .75, 1 } },
    { { .name = "a", .type = PARAM_FLOAT, .min = .1, .max = 1, .step = .3 },
      4, { .1, .4, .7, 1 } },
    { { .name = "a", .type = PARAM_FLOAT, .min = 0, .max = 1, .step = .3 },
      4, { 0, .3, .6, .9 } },
    { { .name = "a", .type = PARAM_FLOAT, .min = 0, .max = .3, .step = .1 },
      4, { 0, .1, .2, .3 } },
    { { .name = "a", .type = PARAM_FLOAT, .min = -.7, .max = -.1, .step = .4 },
      2, { -.7, -.3 } },
    { { .name = "a", .type = PARAM_FLOAT, .min = 3, .max = 5, .step = 2 },
      2, { 3, 5 } },
    { { .name = "a", .type = PARAM_INT, .min = 1, .max = 10, .step = 4 },
      3, { 1, 5, 9 } },
    { { .name = "a", .type = PARAM_INT, .min = -3, .max = 3, .step = 3 },
      3, { -3, 0, 3 } },
    { { .name = "a", .type = PARAM_INT, .min = 0x1p52 - 4, .max = 0x1p52,
        .step = 2 }, 3, { 0x1p52 - 4, 0x1p52 - 2, 0x1p52 } },
};
/* clang-format on */

CASE (test_steps)
{
    static double x[DRAWS];

    for (size_t i = 0; i < COUNT (steps); i++)
        for (size_t k = 0; k < COUNT (samplers); k++) {
            double chi2 = 0;
            int n = steps[i].n;
            draw (samplers[k], &steps[i].p, 7, DRAWS, x);
            for (int v = 0; v < n; v++) {
                double expected = (double)DRAWS / n, seen = 0;
                for (int d = 0; d < DRAWS; d++)
                    seen += x[d] == steps[i].values[v];
                chi2 += (seen - expected) * (seen - expected) / expected;
            }
            /* 99.9 % quantile for 4 degrees of freedom; values outside the list also raise chi2 */
            assert_true (chi2 < 18.5);
            for (int d = 0; d < DRAWS; d++)
                assert_true (x[d] >= steps[i].p.min && x[d] <= steps[i].p.max);
        }
}

CASE (test_step_grid)
{
    for (size_t i = 0; i < COUNT (steps); i++) {
        struct search_config config = { .name = "grid", .max_length = 1 };
        struct param p = steps[i].p;
        struct search_rung rung;
        double x[6];

        assert_int_equal (searcher_preview (&config, &p, 1, &rung, 1), 1);
        assert_int_equal (rung.trials, steps[i].n);
        draw ("grid", &p, 1, steps[i].n, x);
        /* the decimal itself: 0.3, not 0.1 + 2 * 0.1 */
        for (int k = 0; k < steps[i].n; k++)
            assert_true (x[k] == steps[i].values[k]);
        p.count = 2;
        draw ("grid", &p, 1, 2, x);
        assert_true (fabs (x[0] - steps[i].values[0]) < 1e-12);
        assert_true (fabs (x[1] - steps[i].values[steps[i].n - 1]) < 1e-12);
    }
}

/* ---- priors ---- */

/* clang-format off */
static const struct param priors[] = {
    { .name = "a", .type = PARAM_FLOAT, .min = -10, .max = 10, .mean = 1,
      .deviation = 1 },
    { .name = "a", .type = PARAM_FLOAT, .min = 0, .max = 1, .mean = .9,
      .deviation = .3 },
    { .name = "a", .type = PARAM_FLOAT, .min = 0, .max = 1, .mean = 0,
      .deviation = 10 },
    { .name = "a", .type = PARAM_FLOAT, .min = 0, .max = 1, .mean = 1,
      .deviation = .01 },
    { .name = "a", .type = PARAM_LOG, .base = 10, .min = -6, .max = 0,
      .mean = -3, .deviation = 1 },
    { .name = "a", .type = PARAM_INT, .min = 0, .max = 20, .mean = 12,
      .deviation = 3 },
    { .name = "a", .type = PARAM_INT, .min = 0, .max = 20, .mean = 20,
      .deviation = 5, .step = 4 },
    { .name = "a", .type = PARAM_FLOAT, .min = 0, .max = 1, .mean = .3,
      .deviation = .2, .step = .1 },
};
/* clang-format on */

static double inner (const struct param *p, double x)
{
    return p->type == PARAM_LOG ? log (x) / log (p->base) : x;
}

/* Mean and deviation of the truncated normal distribution, by numerical integration over small
 * pieces.  A parameter with steps rounds each piece to its step.
 */
static void moments (const struct param *p, double *mean, double *deviation)
{
    double step = p->type == PARAM_INT && p->step == 0 ? 1 : p->step;
    long pieces = 100000;
    double mass = 0, sum = 0, squares = 0;
    double low = p->min - step / 2, high = p->max + step / 2;

    for (long i = 0; i < pieces; i++) {
        double x = low + (high - low) * (i + 0.5) / pieces, z, w;
        z = (x - p->mean) / p->deviation;
        w = exp (-z * z / 2);
        if (step > 0)
            x = p->min + floor ((x - p->min) / step + 0.5) * step;
        mass += w;
        sum += w * x;
        squares += w * x * x;
    }
    *mean = sum / mass;
    *deviation = sqrt (squares / mass - *mean * *mean);
}

CASE (test_moments)
{
    static double x[DRAWS];

    for (size_t i = 0; i < COUNT (priors); i++)
        for (size_t k = 0; k < COUNT (samplers); k++) {
            const struct param *p = priors + i;
            /* four standard errors for random points; much less for evenly spread ones */
            double allowed = k == 0 ? 4 / sqrt (DRAWS) : 0.02;
            double mean, deviation, sum = 0, squares = 0;
            moments (p, &mean, &deviation);
            draw (samplers[k], p, 3, DRAWS, x);
            for (int d = 0; d < DRAWS; d++) {
                double u = inner (p, x[d]);
                assert_true (u >= p->min - 1e-9 && u <= p->max + 1e-9);
                sum += u / DRAWS;
                squares += (u - mean) * (u - mean) / DRAWS;
            }
            assert_true (fabs (sum - mean) < allowed * deviation);
            assert_true (fabs (sqrt (squares) / deviation - 1) < 1.5 * allowed);
        }
}

/* sobol and lhs draw exactly one point in each 1024th part of the probability mass. */
CASE (test_quantiles)
{
    static double x[DRAWS];

    for (size_t i = 0; i < COUNT (priors); i++)
        for (size_t k = 1; k < COUNT (samplers); k++) {
            bool seen[DRAWS] = { false };
            struct dim dim;
            space_dim (&dim, priors + i);
            if (dim.step > 0)
                continue;
            draw (samplers[k], priors + i, 5, DRAWS, x);
            for (int d = 0; d < DRAWS; d++) {
                int part = space_part (&dim, x[d]) * DRAWS;
                assert_in_range (part, 0, DRAWS - 1);
                assert_false (seen[part]);
                seen[part] = true;
            }
        }
}

/* ---- quantiles and values ---- */

static const struct param plain[] = {
    { .name = "a", .type = PARAM_FLOAT, .min = -3, .max = 7 },
    { .name = "a", .type = PARAM_LOG, .base = 2, .min = -20, .max = 3 },
    { .name = "a", .type = PARAM_INT, .min = -5, .max = 900 },
    { .name = "a", .type = PARAM_INT, .min = 1, .max = 900, .base = 10 },
    { .name = "a", .type = PARAM_INT, .min = 7, .max = 7 },
    { .name = "a", .type = PARAM_CATEGORICAL, .choices = 1000000 },
    { .name = "a", .type = PARAM_CATEGORICAL, .choices = 1 },
    { .name = "a", .type = PARAM_FLOAT, .min = .1, .max = .9, .step = .07 },
};

static void check_inverse (const struct param *p)
{
    struct dim d;
    int64_t values;

    space_dim (&d, p);
    values = space_values (&d);
    for (int i = 0; i <= 1000; i++) {
        double part = i / 1000.0, x = space_at (&d, part);
        double back = space_part (&d, x);
        assert_true (space_has (&d, x));
        assert_true (back >= 0 && back <= 1);
        if (d.step == 0 && p->type != PARAM_CATEGORICAL)
            assert_true (fabs (back - part) < 1e-9);
        /* the quantile of a value maps back to it */
        assert_true (fabs (space_at (&d, back) - x) <= 1e-9 * fabs (x));
        assert_true (i == 0 || x >= space_at (&d, (i - 1) / 1000.0));
    }
    for (int64_t i = 0; d.step > 0 && i < values; i++) {
        double x = space_outer (&d, d.min + i * d.step);
        if (p->base > 1)
            x = d.min + i;
        assert_true (space_has (&d, x));
        assert_true (space_at (&d, space_part (&d, x)) == x);
    }
}

CASE (test_inverse)
{
    for (size_t i = 0; i < COUNT (plain); i++)
        check_inverse (plain + i);
    for (size_t i = 0; i < COUNT (priors); i++)
        check_inverse (priors + i);
    for (size_t i = 0; i < COUNT (steps) - 1; i++)
        check_inverse (&steps[i].p);
}

/* Priors so wide that they are almost uniform, or so narrow that they are almost a point. */
CASE (test_extreme_priors)
{
    struct param p = { .name = "a", .type = PARAM_FLOAT, .max = 1 };
    struct dim d;

    for (double deviation = 1e5; deviation < 1e308; deviation *= 1e10) {
        p.deviation = deviation;
        p.mean = 0.25;
        space_dim (&d, &p);
        for (int i = 0; i <= 10; i++) {
            assert_true (fabs (space_at (&d, i / 10.0) - i / 10.0) < 1e-6);
            assert_true (fabs (space_part (&d, i / 10.0) - i / 10.0) < 1e-6);
        }
    }
    p.deviation = 1e-300;
    space_dim (&d, &p);
    assert_true (fabs (space_at (&d, 0.3) - 0.25) < 1e-9);
    p.deviation = 1;
    p.min = p.max = 0.25;
    space_dim (&d, &p);
    assert_true (space_at (&d, 0.3) == 0.25);
    assert_true (space_part (&d, 0.25) >= 0 && space_part (&d, 0.25) <= 1);
}

/* ---- models ---- */

/* The best values are at the upper end: models go there, but never beyond. */
CASE (test_models_stay)
{
    static const char *const names[] = { "tpe", "gp", "cmaes", "nsga2" };

    for (size_t k = 0; k < COUNT (names); k++)
        for (size_t i = 0; i < COUNT (steps) + COUNT (priors); i++) {
            const struct param *p = i < COUNT (steps) ? &steps[i].p : priors + (i - COUNT (steps));
            double x[30];
            struct dim d;
            space_dim (&d, p);
            draw (names[k], p, i + 1, COUNT (x), x);
            for (size_t t = 0; t < COUNT (x); t++)
                assert_true (space_has (&d, x[t]));
        }
}

/* CMA-ES can reach every value of a logarithmic integer. */
CASE (test_all_values)
{
    static const struct param p = {
        .name = "a", .type = PARAM_INT, .min = 1, .max = 16, .base = 2
    };
    static double x[4000];
    bool seen[17] = { false };

    for (uint64_t seed = 1; seed <= 20; seed++) {
        draw ("cmaes", &p, seed, 40, x);
        for (int i = 0; i < 40; i++)
            seen[(int)x[i]] = true;
    }
    for (int i = 1; i <= 16; i++)
        assert_true (seen[i]);
}

/* A constant parameter does not keep the estimator from learning the others. */
CASE (test_constant)
{
    static const struct param p[] = {
        { .name = "c", .type = PARAM_FLOAT, .min = 3, .max = 3 },
        { .name = "a", .type = PARAM_FLOAT, .min = -50, .max = 50 },
    };
    double sum[2] = { 0 };

    for (int k = 0; k < 2; k++)
        for (uint64_t seed = 1; seed <= 10; seed++) {
            const struct search_config config =
                SEARCH ("tpe", .seed = seed, .max_trials = 60, .max_length = 1);
            struct searcher *s = searcher_create (&config, p + k, 2 - k);
            struct search_op op;
            double x[2];
            while (searcher_ask (s, &op, x) == SEARCH_RUN) {
                assert_int_equal (searcher_begin (s, &op, x), 0);
                searcher_observe (s, op.trial, 1, &(double){ fabs (x[1 - k]) });
                if (op.trial > 40)
                    sum[k] += fabs (x[1 - k]);
            }
            searcher_destroy (s);
        }
    assert_true (sum[0] < 1.3 * sum[1]);
}

/* ---- invalid parameters ---- */

/* clang-format off */
static const struct {
    struct param p;
    const char *why;
} bad[] = {
    { { .name = "a", .type = PARAM_FLOAT, .max = 1, .step = -1 },
      "step is not above 0" },
    { { .name = "a", .type = PARAM_FLOAT, .max = 1, .step = NAN },
      "step is not above 0" },
    { { .name = "a", .type = PARAM_FLOAT, .max = 1, .step = 2 },
      "step is above max - min" },
    { { .name = "a", .type = PARAM_FLOAT, .max = 1, .step = 1e-300 },
      "step is too small" },
    { { .name = "a", .type = PARAM_INT, .max = 9, .step = 1.5 },
      "step is not an integer" },
    { { .name = "a", .type = PARAM_LOG, .base = 10, .max = 9, .step = 1 },
      "step and a logarithm cannot be used together" },
    { { .name = "a", .type = PARAM_INT, .base = 10, .min = 1, .max = 9,
        .step = 1 }, "step and a logarithm cannot be used together" },
    { { .name = "a", .type = PARAM_INT, .base = 10, .max = 9 },
      "min is below 1, which has no logarithm" },
    { { .name = "a", .type = PARAM_INT, .base = 1, .min = 1, .max = 9 },
      "base is not above 1" },
    { { .name = "a", .type = PARAM_FLOAT, .max = 1, .deviation = -1 },
      "mean or deviation is not a number, or deviation is below 0" },
    { { .name = "a", .type = PARAM_FLOAT, .max = 1, .deviation = 1,
        .mean = NAN },
      "mean or deviation is not a number, or deviation is below 0" },
    { { .name = "a", .type = PARAM_FLOAT, .max = 1, .deviation = 1,
        .mean = 2 }, "mean is not between min and max" },
    { { .name = "a", .type = PARAM_INT, .base = 2, .min = 1, .max = 9,
        .deviation = 1, .mean = 2 },
      "an integer has a base or a deviation, not both" },
};
/* clang-format on */

CASE (test_bad)
{
    const struct search_config config = { .name = "random", .max_trials = 1, .max_length = 1 };

    for (size_t i = 0; i < COUNT (bad); i++) {
        struct search_mistake at;
        const char *why = searcher_check (&config, &bad[i].p, 1, &at);
        assert_non_null (why);
        assert_string_equal (why, bad[i].why);
        assert_int_equal (at.param, 0);
    }
}

RUN_CASES ()
