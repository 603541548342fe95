/* SPDX-License-Identifier: Apache-2.0 */
/* Solving with a Cholesky factor is correct and reads nothing outside the factor. */
#include "searcher/numeric/numeric.h"
#include "tests/unit.h"

enum { N_MAX = 9, STRIDE = N_MAX + 3 };

/* A covariance, its factor, and the inverse.  NaN marks elements that must not be read. */
static double a[STRIDE * STRIDE], l[STRIDE * STRIDE], inv[STRIDE * STRIDE];

static struct factor make (int64_t n)
{
    const struct factor f = { l, n, STRIDE };

    for (int i = 0; i < STRIDE * STRIDE; i++)
        a[i] = l[i] = inv[i] = NAN;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            a[i * STRIDE + j] =
                exp (-0.3 * (double)((i - j) * (i - j))) + (i == j ? 0.5 + 0.1 * (double)i : 0);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            l[i * STRIDE + j] = a[i * STRIDE + j];
    assert_int_equal (factor_make (&f, 0), 0);
    factor_invert (&f, inv);
    return f;
}

static void assert_near (double got, double want)
{
    assert_true (fabs (got - want) < 1e-12 * (1 + fabs (want)));
}

CASE (solves)
{
    for (int64_t n = 1; n <= N_MAX; n++) {
        const struct factor f = make (n);
        double b[STRIDE], x[STRIDE];

        for (int i = 0; i < STRIDE; i++)
            b[i] = x[i] = i < n ? 1 + i % 3 : NAN;
        factor_solve (&f, x, x);
        factor_solve_back (&f, x);
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += a[i * STRIDE + j] * x[j];
            assert_near (sum, b[i]);
        }
        for (int64_t i = n; i < STRIDE; i++)
            assert_true (isnan (x[i]));
    }
}

/* Add a row without recomputing the earlier ones. */
CASE (grows)
{
    for (int64_t n = 2; n <= N_MAX; n++) {
        struct factor f = make (n);
        double whole[STRIDE];

        for (int64_t j = 0; j < n; j++) {
            whole[j] = l[(n - 1) * STRIDE + j];
            l[(n - 1) * STRIDE + j] = a[(n - 1) * STRIDE + j];
        }
        assert_int_equal (factor_make (&f, n - 1), 0);
        for (int64_t j = 0; j < n; j++)
            assert_near (l[(n - 1) * STRIDE + j], whole[j]);
        l[(n - 1) * STRIDE + n - 1] = -1;
        assert_int_equal (factor_make (&f, n - 1), -1);
    }
}

static double inverse (const struct factor *f, int64_t i, int64_t j)
{
    return factor_inverse (f, inv, i > j ? i : j, i > j ? j : i);
}

CASE (inverts)
{
    for (int64_t n = 1; n <= N_MAX; n++) {
        const struct factor f = make (n);
        double w[N_MAX * N_MAX], v[N_MAX], trace = 0, *p = w;

        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < n; k++) {
                double sum = 0;
                for (int64_t j = 0; j < n; j++)
                    sum += a[i * STRIDE + j] * inverse (&f, j, k);
                assert_near (sum, i == k);
            }
        for (int i = 0; i < N_MAX * N_MAX; i++)
            w[i] = 1 + i;
        for (int64_t i = 0; i < n; i++) {
            v[i] = 0.5 + (double)i;
            trace += inverse (&f, i, i) - v[i] * v[i];
        }
        assert_near (factor_weigh (&f, inv, v, -2, w), trace);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++, p++)
                assert_near (*p, -2 * (double)(1 + p - w) * (inverse (&f, i, j) - v[i] * v[j]));
        assert_true (*p == (double)(1 + p - w));
    }
}

RUN_CASES ()
