/* SPDX-License-Identifier: Apache-2.0 */
/* The Gaussian process and the searchers that use it. */
#include "searcher/models/gp_internal.h"
#include "searcher/numeric/numeric.h"
#include "searcher/searcher.h"
#include "tests/searcher/params.h"
#include "tests/searcher/search.h"

enum { N = 30, D = 3 };

static double uniform (uint64_t *state)
{
    *state = *state * UINT64_C (6364136223846793005) + 1;
    return (double)(*state >> 11) * 0x1p-53;
}

/* A smooth function of the first coordinate and the category only. */
static double smooth (const double *z)
{
    return sin (4 * z[0]) + (z[2] == 1 ? 0.8 : 0);
}

static const bool category[D] = { false, false, true };

static void random_point (uint64_t *state, double *z)
{
    z[0] = uniform (state);
    z[1] = uniform (state);
    z[2] = floor (uniform (state) * 3);
}

/* Fit a process to N values of smooth(); 'mean' and 'deviation' undo the scaling. */
static struct gp *learn (double *z, double *mean, double *deviation)
{
    struct gp *gp = gp_create (N + 10, D, category);
    uint64_t state = 5;
    double y[N];

    *mean = *deviation = 0;
    for (int i = 0; i < N; i++) {
        random_point (&state, z + i * D);
        y[i] = smooth (z + i * D);
        *mean += y[i] / N;
    }
    for (int i = 0; i < N; i++)
        *deviation += (y[i] - *mean) * (y[i] - *mean) / N;
    *deviation = sqrt (*deviation);
    for (int i = 0; i < N; i++)
        y[i] = (y[i] - *mean) / *deviation;
    assert_int_equal (gp_fit (gp, N, z, y, NULL), 0);
    return gp;
}

CASE (process_learns)
{
    double z[N * D], mean, deviation, m, v, m2;
    struct gp *gp = learn (z, &mean, &deviation);
    uint64_t random = 77;
    double at[D], far;

    for (int i = 0; i < 200; i++) {
        random_point (&random, at);
        gp_predict (gp, at, &m, &v);
        assert_true (fabs (m * deviation + mean - smooth (at)) < 0.15);
        /* the second coordinate has no effect */
        at[1] = 1 - at[1];
        gp_predict (gp, at, &m2, &v);
        assert_true (fabs (m2 - m) < 0.1);
    }
    for (int i = 0; i < N; i++) {
        gp_predict (gp, z + i * D, &m, &v);
        assert_true (v < 0.01);
    }
    /* far from the data the prior remains */
    at[0] = 1e6;
    gp_predict (gp, at, &m, &far);
    assert_true (fabs (m) < 1e-3 && far > 0.99);
    gp_destroy (gp);
}

CASE (best_is_the_smallest_mean)
{
    double z[N * D], mean, deviation, m, v, best = INFINITY;
    struct gp *gp = learn (z, &mean, &deviation);

    for (int i = 0; i < N; i++) {
        gp_predict (gp, z + i * D, &m, &v);
        best = m < best ? m : best;
    }
    assert_true (fabs (best - gp_best (gp)) < 1e-6);
    gp_destroy (gp);
}

/* gp_believe() keeps the predicted means and reduces the variance. */
CASE (beliefs_do_not_mislead)
{
    double z[N * D], mean, deviation, before[50], m, v[50], v2;
    struct gp *gp = learn (z, &mean, &deviation);
    uint64_t random = 3, again = 3;
    double at[D] = { 0.123, 0.9, 2 };

    for (int i = 0; i < 50; i++) {
        double p[D];
        random_point (&random, p);
        gp_predict (gp, p, &before[i], &v[i]);
    }
    assert_int_equal (gp_believe (gp, at), 0);
    for (int i = 0; i < 50; i++) {
        double p[D];
        random_point (&again, p);
        gp_predict (gp, p, &m, &v2);
        assert_true (fabs (m - before[i]) < 1e-6);
        assert_true (v2 <= v[i] + 1e-9);
    }
    gp_destroy (gp);
}

/* Constant values and identical points do not break the fit. */
CASE (degenerate_data)
{
    double z[20] = { 0 };
    double y[20] = { 0 };
    struct gp *gp = gp_create (20, 1, category);
    double m, v;

    assert_int_equal (gp_fit (gp, 20, z, y, NULL), 0);
    gp_predict (gp, z, &m, &v);
    assert_true (isfinite (m) && v > 0);
    for (int i = 0; i < 20; i++)
        y[i] = i % 2 ? 1 : -1;
    assert_int_equal (gp_fit (gp, 20, z, y, NULL), 0);
    gp_predict (gp, z, &m, &v);
    assert_true (fabs (m) < 0.1);
    gp_destroy (gp);
}

/* ---- warps ---- */

/* Check the Kumaraswamy curve against its formula and its derivatives by finite differences. */
CASE (curves)
{
    static const double shape[][2] = { { 1, 1 }, { 0.2, 5 }, { 7, 0.15 } };
    double u[101], w[101], by_a[101], by_b[101], above[101], below[101];
    const double h = 1e-5;

    for (int i = 0; i <= 100; i++)
        u[i] = i / 100.0;
    for (int k = 0; k < 3; k++) {
        double a = shape[k][0], b = shape[k][1];
        kumaraswamy (u, a, b, 101, w, by_a, by_b);
        for (int i = 1; i < 100; i++) {
            double want = 1 - pow (1 - pow (u[i], a), b);
            assert_true (fabs (w[i] - want) < 1e-13);
            assert_true (w[i] > w[i - 1]);
        }
        assert_true (w[0] >= 0 && w[0] < 0.01 && w[100] > 0.99 && w[100] <= 1);
        kumaraswamy (u, a * exp (h), b, 101, above, NULL, NULL);
        kumaraswamy (u, a * exp (-h), b, 101, below, NULL, NULL);
        for (int i = 1; i < 100; i++)
            assert_true (fabs ((above[i] - below[i]) / (2 * h) - by_a[i]) < 1e-7);
        kumaraswamy (u, a, b * exp (h), 101, above, NULL, NULL);
        kumaraswamy (u, a, b * exp (-h), 101, below, NULL, NULL);
        for (int i = 1; i < 100; i++)
            assert_true (fabs ((above[i] - below[i]) / (2 * h) - by_b[i]) < 1e-7);
    }
    u[0] = -1;
    kumaraswamy (u, 2, 3, 1, w, by_a, by_b);
    assert_true (w[0] == -1 && by_a[0] == 0 && by_b[0] == 0);
}

/* Compare the gradient of the posterior in all parameters with finite differences.  One point
 * lacks a dimension, and the category has no warp.
 */
CASE (gradient_is_exact)
{
    enum { PARAMETERS = 3 * D + 1 };
    double z[N * D], y[N], theta[PARAMETERS], g[PARAMETERS], none[PARAMETERS];
    struct gp *gp = gp_create (N, D, category);
    uint64_t random = 11;
    const double h = 1e-5;

    for (int i = 0; i < N; i++) {
        random_point (&random, z + i * D);
        y[i] = smooth (z + i * D) + 0.3 * uniform (&random) - 0.5;
    }
    z[1] = -1;
    assert_int_equal (gp_fit (gp, N, z, y, NULL), 0);
    for (int try = 0; try < 5; try++) {
        for (int k = 0; k < PARAMETERS; k++)
            theta[k] = k == D ? 2 * try - 6 : uniform (&random) - 0.5;
        gp_posterior (gp, theta, g);
        for (int k = 0; k < PARAMETERS; k++) {
            double at = theta[k], above, below;
            theta[k] = at + h;
            above = gp_posterior (gp, theta, none);
            theta[k] = at - h;
            below = gp_posterior (gp, theta, none);
            theta[k] = at;
            assert_true (fabs ((above - below) / (2 * h) - g[k]) < 1e-5 * (1 + fabs (g[k])));
        }
    }
    gp_destroy (gp);
}

/* uneven() changes fast where the first coordinate is near 0 and slowly elsewhere; even()
 * changes at a similar rate everywhere.
 */
static double uneven (const double *z)
{
    return sin (9 * cbrt (z[0])) + z[1] * z[1];
}

static double even (const double *z)
{
    return sin (5 * z[0]) + cos (4 * z[1]);
}

/* Fit a process to n points and return the mean squared error at 300 others. */
static double held_out (double f (const double *z), int n, uint64_t seed, bool straight,
                        bool *warped)
{
    static const bool numbers[2] = { false, false };
    struct gp *gp = gp_create (n, 2, numbers);
    double z[200], y[100], m, v, sum = 0;

    if (straight)
        gp_keep_straight (gp);
    for (int i = 0; i < n; i++) {
        z[2 * i] = uniform (&seed);
        z[2 * i + 1] = uniform (&seed);
        y[i] = f (z + 2 * i);
    }
    assert_int_equal (gp_fit (gp, n, z, y, NULL), 0);
    for (int i = 0; i < 300; i++) {
        z[0] = uniform (&seed);
        z[1] = uniform (&seed);
        gp_predict (gp, z, &m, &v);
        sum += (m - f (z)) * (m - f (z)) / 300;
    }
    *warped = gp->warped;
    gp_destroy (gp);
    return sum;
}

/* gp_fit() uses all 50 points at once, but of 100 it fits a part first. */
CASE (warps_where_it_helps)
{
    for (int n = 50; n <= 100; n += 50) {
        double log_ratio = 0;
        int count = 0;
        for (uint64_t seed = 1; seed <= 10; seed++) {
            bool on, off;
            double with = held_out (uneven, n, seed, false, &on);
            double without = held_out (uneven, n, seed, true, &off);
            assert_false (off);
            count += on;
            log_ratio += log (with / without) / 10;
        }
        assert_in_range (count, 8, 10);
        assert_true (log_ratio < log (0.5));
    }
}

CASE (is_straight_elsewhere)
{
    for (int n = 50; n <= 100; n += 50) {
        int count = 0;
        for (uint64_t seed = 1; seed <= 20; seed++) {
            bool on, off;
            double with = held_out (even, n, seed, false, &on);
            double without = held_out (even, n, seed, true, &off);
            assert_true (on || with == without);
            count += on;
        }
        assert_in_range (count, 0, 1);
    }
}

/* ---- the search ---- */

static const struct param bowl_space[] = {
    FLOAT ("x", 0, 1, 0),
    INT ("k", 0, 20, 0),
    CHOICE ("c", 4),
};

static double bowl (const double *x)
{
    return (x[0] - 0.3) * (x[0] - 0.3) + pow ((x[1] - 7) / 20, 2) + (x[2] != 1);
}

/* Values that the search observes: not finite in a part of the space. */
static double told (const double *x, long trial)
{
    return x[0] > 0.9 ? INFINITY : x[0] > 0.8 ? NAN : bowl (x);
}

static double best_of (const char *name, uint64_t seed, long trials)
{
    return search_best (name, seed, trials, bowl_space, 3, bowl, told);
}

CASE (search_learns)
{
    int wins = 0;

    for (uint64_t seed = 0; seed < 10; seed++)
        wins += best_of ("gp", seed, 40) < best_of ("tpe", seed, 40);
    assert_in_range (wins, 8, 10);
}

CASE (mirrors_and_copies)
{
    search_mirrors ("gp", 25, bowl_space, 3, bowl);
    search_copies ("gp", 25, bowl_space, 3, bowl);
}

/* The search tries each of the 12 points once before it repeats any, even with pending
 * trials.
 */
CASE (points_are_not_repeated)
{
    static const struct param small[] = { INT ("k", 1, 4, 0), CHOICE ("c", 3) };
    struct searcher *s = search_create ("gp", 2, 20, small, 2);
    bool seen[5][3] = { { false } };
    double x[20][2];
    long trial[20];
    int repeated = 0;

    for (int i = 0; i < 20; i++) {
        trial[i] = search_begin (s, x[i]);
        bool *at = &seen[(int)x[i][0]][(int)x[i][1]];
        repeated += i >= 5 && i < 12 && *at; /* the first five are Sobol points */
        *at = true;
        if (i >= 3)
            searcher_observe (s, trial[i - 3], 1, &(double){ x[i - 3][0] + x[i - 3][1] });
    }
    assert_in_range (repeated, 0, 1);
    searcher_destroy (s);
}

/* More trials than the model can hold, constant values, and one parameter or none. */
CASE (odd_searches)
{
    static const struct param one[] = { FLOAT ("x", 2, 2, 0) };
    double x[3];

    for (size_t n = 0; n <= 1; n++) {
        struct searcher *s = search_create ("gp", 1, 170, one, n);
        for (int i = 0; i < 170; i++) {
            long t = search_begin (s, x);
            assert_int_equal (searcher_observe (s, t, 1, &(double){ i < 100 ? 1 : i }), 0);
        }
        searcher_destroy (s);
    }
    struct searcher *s = search_create ("gp", 1, 160, bowl_space, 3);
    for (int i = 0; i < 160; i++)
        searcher_observe (s, search_begin (s, x), 1, &(double){ i % 5 ? INFINITY : 0 });
    searcher_destroy (s);
}

/* ---- auto ---- */

static double slope (const double *x)
{
    return (x[0] - 0.3) * (x[0] - 0.3) + fabs (x[1] - 0.6);
}

static double ruffle (const double *x)
{
    return fabs (sin (40 * x[0])) + fabs (cos (37 * x[1])) + x[0] * x[1] / 4;
}

/* Count the points of trials 'from' to 'to' that 'method' itself would propose after the same
 * results.
 */
static int shared_with (const char *method, double (*metric) (const double *x), int from, int to)
{
    static const struct param plain[] = { FLOAT ("x", 0, 1, 0), FLOAT ("y", 0, 1, 0) };
    struct searcher *a = search_create ("auto", 3, to, plain, 2);
    struct searcher *b = search_create (method, 3, to, plain, 2);
    int same = 0;

    for (int i = 1; i <= to; i++) {
        struct search_op op, other;
        double x[2], y[2];
        assert_int_equal (searcher_ask (a, &op, x), SEARCH_RUN);
        assert_int_equal (searcher_ask (b, &other, y), SEARCH_RUN);
        same += i >= from && x[0] == y[0] && x[1] == y[1];
        assert_int_equal (searcher_begin (a, &op, x), 0);
        assert_int_equal (searcher_begin (b, &op, x), 0);
        assert_int_equal (searcher_observe (a, i, 1, &(double){ metric (x) }), 0);
        assert_int_equal (searcher_observe (b, i, 1, &(double){ metric (x) }), 0);
    }
    searcher_destroy (a);
    searcher_destroy (b);
    return same;
}

/* "auto" takes each point from TPE or from the Gaussian process, and more of them from TPE if
 * the process predicts badly.
 */
CASE (auto_mixes)
{
    int smooth_tpe = shared_with ("tpe", slope, 21, 100);
    int smooth_gp = shared_with ("gp", slope, 21, 100);
    int rugged_tpe = shared_with ("tpe", ruffle, 21, 100);

    assert_int_equal (smooth_tpe + smooth_gp, 80);
    assert_in_range (smooth_tpe, 5, 30);
    assert_in_range (rugged_tpe, 40, 60);
}

RUN_CASES ()
