/* SPDX-License-Identifier: Apache-2.0 */
/* The Kumaraswamy warp: widens one part of a range and narrows another. */
#include "searcher/numeric/numeric.h"

#include "searcher/numeric/vector.h"

/* Powers of numbers nearer to 0 or 1, or their logarithms, would be too large
 * for exp_minus() with a and b up to 10.
 */
static const double unit_least = 1e-28, unit_most = 1 - 0x1p-53;

INLINE double within (double u)
{
    u = u > unit_least ? u : unit_least;
    return u < unit_most ? u : unit_most;
}

INLINE double curve (double u, double a, double b, double *by_a, double *by_b)
{
    double log_u = minus_log (within (u));
    double p = exp_minus (a * log_u), q = within (1 - p);
    double log_q = minus_log (q), rest = exp_minus (b * log_q);

    *by_a = u < 0 ? 0 : -a * b * log_u * rest * p / q;
    *by_b = u < 0 ? 0 : b * log_q * rest;
    return u < 0 ? u : 1 - rest;
}

VECTOR static void column (const double *u, double a, double b, int64_t n, double *restrict w,
                           double *restrict by_a, double *restrict by_b)
{
    for (int64_t i = 0; i < n; i++)
        w[i] = curve (u[i], a, b, by_a + i, by_b + i);
}

VECTOR static void column_only (const double *u, double a, double b, int64_t n, double *restrict w)
{
    double by_a, by_b;

    for (int64_t i = 0; i < n; i++)
        w[i] = curve (u[i], a, b, &by_a, &by_b);
}

void kumaraswamy (const double *u, double a, double b, int64_t n, double *w, double *by_a,
                  double *by_b)
{
    if (by_a)
        column (u, a, b, n, w, by_a, by_b);
    else
        column_only (u, a, b, n, w);
}

VECTOR void kumaraswamy_point (const double *u, const double *a, const double *b, int64_t n,
                               double *w)
{
    double by_a, by_b;

    for (int64_t i = 0; i < n; i++)
        w[i] = curve (u[i], a[i], b[i], &by_a, &by_b);
}
