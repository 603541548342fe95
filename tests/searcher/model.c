/* SPDX-License-Identifier: Apache-2.0 */
/* The Parzen estimator and TPE. */
#include "searcher/models/models.h"
#include "searcher/searcher.h"
#include "tests/searcher/params.h"
#include "tests/searcher/search.h"

/* ---- logarithmic integers ---- */

CASE (logarithmic_integers)
{
    static const struct param p[] = {
        { .name = "k", .type = PARAM_INT, .min = 1, .max = 1000, .base = 10 },
    };
    static const struct param bad = {
        .name = "k", .type = PARAM_INT, .min = 0, .max = 9, .base = 10
    };
    struct search_config config = { .name = "random", .max_trials = 1, .max_length = 1 };
    struct searcher *s = search_create ("random", 7, 3000, p, 1);
    int decade[3] = { 0 };
    double x;

    for (int i = 0; i < 3000; i++) {
        search_begin (s, &x);
        assert_true (x >= 1 && x <= 1000 && x == floor (x));
        decade[x < 10 ? 0 : x < 100 ? 1 : 2]++;
    }
    for (int i = 0; i < 3; i++)
        assert_in_range (decade[i], 800, 1250);
    searcher_destroy (s);
    assert_string_equal (searcher_check (&config, &bad, 1, NULL),
                         "min is below 1, which has no logarithm");
}

/* ---- the estimator ---- */

static void one_dimension (const struct param *p, struct dim *d)
{
    memset (d, 0, sizeof (*d));
    space_dim (d, p);
}

/* Densities integrate to 1, and probability masses sum to 1. */
CASE (densities_are_normalised)
{
    static const struct param params[] = {
        FLOAT ("x", -2, 3, 0),
        INT ("k", 0, 9, 0),
        { .name = "l", .type = PARAM_INT, .min = 1, .max = 40, .base = 10 },
        CHOICE ("c", 5),
    };
    static const double at[4][3] = { { -1.9, 0, 2.5 }, { 0, 1, 9 }, { 0, 2, 3 }, { 0, 0, 4 } };

    for (int i = 0; i < 4; i++) {
        const double *points[3] = { &at[i][0], &at[i][1], &at[i][2] };
        struct dim d;
        one_dimension (&params[i], &d);
        for (int64_t n = 0; n <= 3; n++) {
            struct parzen *p = parzen_create (&d, 1, points, n);
            double sum = 0;
            if (i == 0)
                for (double u = -2 + 0.0005; u < 3; u += 0.001)
                    sum += exp (parzen_log (p, &u)) * 0.001;
            else
                for (double v = i == 2; v <= (i == 1 ? 9 : i == 2 ? 40 : 4); v++) {
                    double u = i == 2 ? log (v) : v;
                    sum += exp (parzen_log (p, &u));
                }
            assert_true (fabs (sum - 1) < 1e-4);
            parzen_destroy (p);
        }
    }
}

/* The frequency of each point matches its probability. */
CASE (samples_follow_the_density)
{
    static const struct param params[] = { INT ("k", 0, 5, 0), CHOICE ("c", 3) };
    static const double at[3][2] = { { 1, 0 }, { 1, 2 }, { 4, 2 } };
    const double *points[3] = { at[0], at[1], at[2] };
    enum { DRAWS = 60000 };
    int count[6][3] = { { 0 } };
    struct rng r = { 1, 2, 3, 0 };
    struct dim dims[2];
    struct parzen *p;
    double u[2];

    one_dimension (&params[0], &dims[0]);
    one_dimension (&params[1], &dims[1]);
    p = parzen_create (dims, 2, points, 3);
    for (int i = 0; i < DRAWS; i++) {
        parzen_sample (p, &r, u);
        count[(int)u[0]][(int)u[1]]++;
    }
    for (int k = 0; k < 6; k++)
        for (int c = 0; c < 3; c++) {
            double want, error;
            u[0] = k;
            u[1] = c;
            want = exp (parzen_log (p, u)) * DRAWS;
            error = fabs (count[k][c] - want);
            assert_true (error < 5 * sqrt (want) + 1);
        }
    parzen_destroy (p);
}

/* Distance to the farther of the two neighbors; equal values are ordered by index. */
static double farther (const double *value, int n, int k)
{
    double below = 0, above = 0;

    for (int side = -1; side <= 1; side += 2) {
        double least = INFINITY;
        for (int i = 0; i < n; i++) {
            double d = side * (value[i] - value[k]);
            if (i != k && (d > 0 || (d == 0 && side * (i - k) > 0)))
                least = fmin (least, d);
        }
        *(side < 0 ? &below : &above) = isfinite (least) ? least : 0;
    }
    return fmax (below, above);
}

static double kernel (double u, double mu, double sigma)
{
    double z = (u - mu) / sigma, root = sqrt (2) * sigma;
    double inside = (erf ((1 - mu) / root) + erf (mu / root)) / 2;

    return exp (-z * z / 2) / sigma / sqrt (8 * atan (1)) / inside;
}

/* Compare with the definition, in which up to 25 points all have the same weight. */
CASE (widths_are_distances)
{
    enum { MOST = 25, ROUNDS = 200 };
    struct param x = FLOAT ("x", 0, 1, 0);
    const double *points[MOST];
    double value[MOST];
    struct dim d;

    one_dimension (&x, &d);
    for (int round = 0; round < ROUNDS; round++) {
        struct rng r = { .seed = 1, .trial = round };
        int n = 2 + rng_pick (&r, MOST - 1);
        struct parzen *p;
        for (int k = 0; k < n; k++) {
            double u = rng_next (&r);
            value[k] = round % 3 == 0   ? u
                       : round % 3 == 1 ? floor (8 * u) / 7
                                        : fmin (0.3 + u * u * u, 1);
            points[k] = value + k;
        }
        p = parzen_create (&d, 1, points, n);
        for (double u = 0; u <= 1; u += 1.0 / 64) {
            double sum = kernel (u, 0.5, 1);
            for (int k = 0; k < n; k++)
                sum += kernel (u, value[k], fmax (farther (value, n, k), 1.0 / (n + 2)));
            assert_true (fabs (exp (parzen_log (p, &u)) * (n + 1) / sum - 1) < 1e-9);
        }
        parzen_destroy (p);
    }
}

/* ---- TPE ---- */

static double bowl (const double *x)
{
    return (x[0] - 0.3) * (x[0] - 0.3) + (x[1] - 0.7) * (x[1] - 0.7) + (x[2] != 1);
}

static const struct param bowl_space[] = {
    FLOAT ("x", 0, 1, 0),
    FLOAT ("y", 0, 1, 0),
    CHOICE ("c", 4),
};

/* Values that the search observes: some trials fail. */
static double told (const double *x, long trial)
{
    return trial % 17 == 5 ? INFINITY : trial % 19 == 7 ? NAN : bowl (x);
}

static double best_of (const char *name, uint64_t seed, long trials)
{
    return search_best (name, seed, trials, bowl_space, 3, bowl, told);
}

CASE (tpe_learns)
{
    int wins = 0;

    for (uint64_t seed = 0; seed < 20; seed++)
        wins += best_of ("tpe", seed, 80) < best_of ("random", seed, 80);
    assert_in_range (wins, 17, 20);
}

CASE (tpe_mirrors)
{
    search_mirrors ("tpe", 60, bowl_space, 3, bowl);
}

/* Observe sixty random choices.  The best six results have choice 0 and the next nine choice 1, so
 * TPE prefers choice 0 if it counts a tenth as good, but choice 1 if it counts a quarter.  Returns
 * NULL if the sixty have too few of either choice.
 */
static struct searcher *observe_sixty (uint64_t seed, long trials)
{
    static const struct param choice[] = { CHOICE ("c", 4) };
    struct searcher *s = search_create ("tpe", seed, trials, choice, 1);
    int best = 0, good = 0;
    double x[60];

    for (int i = 0; i < 60; i++)
        assert_int_equal (search_begin (s, x + i), i + 1);
    for (int i = 0; i < 60; i++) {
        double value = 100 + i;
        if (x[i] == 0 && best < 6)
            value = best++;
        else if (x[i] == 1 && good < 9)
            value = 10 + good++;
        assert_int_equal (searcher_observe (s, i + 1, 1, &value), 0);
    }
    if (best == 6 && good == 9)
        return s;
    searcher_destroy (s);
    return NULL;
}

/* Observe them, and count the next 'n' choices, whose trials stay pending. */
static int count_next (long n, int count[4])
{
    int all = 0;

    memset (count, 0, 4 * sizeof (*count));
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct searcher *s = observe_sixty (seed, 60 + n);
        double next;
        for (long i = 0; s && i < n; i++, all++) {
            search_begin (s, &next);
            count[(int)next]++;
        }
        searcher_destroy (s);
    }
    return all;
}

CASE (tpe_takes_a_tenth_as_good)
{
    int count[4], all = count_next (1, count);

    assert_in_range (all, 30, 40);
    assert_true (count[0] > 0.8 * all);
    assert_true (count[1] < 0.1 * all);
}

/* Many workers: TPE leaves the best choice when too many trials of it are pending. */
CASE (tpe_avoids_pending_trials)
{
    int count[4], all = count_next (100, count);

    assert_in_range (all, 3000, 4000);
    assert_true (count[0] < 0.9 * all);
}

/* Two parameters with the same 'when' value but different parents are separate groups. */
static const double on[] = { 1 };
static const struct param branches[] = {
    { .name = "a", .type = PARAM_CATEGORICAL, .choices = 2 },
    { .name = "b", .type = PARAM_CATEGORICAL, .choices = 2 },
    { .name = "x", .type = PARAM_FLOAT, .max = 1, .when = "a", .when_values = on, .when_count = 1 },
    { .name = "y", .type = PARAM_FLOAT, .max = 1, .when = "b", .when_values = on, .when_count = 1 },
};

static double branch (const double *x)
{
    assert_int_equal (isnan (x[2]), x[0] != 1);
    assert_int_equal (isnan (x[3]), x[1] != 1);
    return (x[0] == 1 ? fabs (x[2] - 0.2) : 0.4) + (x[1] == 1 ? fabs (x[3] - 0.8) : 0.4);
}

static double branch_told (const double *x, long trial)
{
    return branch (x);
}

CASE (tpe_groups_by_parent)
{
    int wins = 0;

    for (uint64_t seed = 0; seed < 20; seed++)
        wins += search_best ("tpe", seed, 80, branches, 4, branch, branch_told)
                < search_best ("random", seed, 80, branches, 4, branch, branch_told);
    assert_in_range (wins, 17, 20);
}

CASE (copies_agree)
{
    static const char *const names[] = { "sobol", "lhs", "tpe" };

    for (int k = 0; k < 3; k++)
        search_copies (names[k], 50, bowl_space, 3, bowl);
}

RUN_CASES ()
