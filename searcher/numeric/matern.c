/* SPDX-License-Identifier: Apache-2.0 */
/* Matern covariances of many pairs of points at once. */
#include "searcher/numeric/numeric.h"

#include <math.h>

#include "searcher/numeric/vector.h"

VECTOR void matern_add (double *r2, const double *p, double scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        r2[i] += p[i] * scale;
}

VECTOR void matern_add_square (double *r2, const double *z, double u, double scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        r2[i] += (z[i] - u) * (z[i] - u) * scale;
}

VECTOR void matern_add_unequal (double *r2, const double *z, double u, double scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        r2[i] += z[i] != u ? scale : 0;
}

/* sqrt (5 r2), limited so that e^-a stays above 0. */
INLINE double distance (double r2)
{
    double a = sqrt (5 * r2 + 5e-18);

    return a < 700 ? a : 700;
}

VECTOR static void covariance (double *r2, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double a = distance (r2[i]);
        r2[i] = (1 + a + a * a / 3) * exp_minus (a);
    }
}

VECTOR static void covariance_slope (double *restrict r2, double *restrict slope, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double a = distance (r2[i]);
        double e = exp_minus (a);
        r2[i] = (1 + a + a * a / 3) * e;
        slope[i] = -5.0 / 6 * (1 + a) * e;
    }
}

void matern (double *r2, double *slope, int64_t n)
{
    if (slope)
        covariance_slope (r2, slope, n);
    else
        covariance (r2, n);
}
