/* SPDX-License-Identifier: Apache-2.0 */
/* Covariances of many pairs of points at once. */
#include "searcher/matern.h"

#include <math.h>
#include <string.h>

#include "searcher/vector.h"

VECTOR void matern_add (double *r2, const double *p, double scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        r2[i] += p[i] * scale;
}

VECTOR void matern_add_square (
    double *r2, const double *z, double u, double scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        r2[i] += (z[i] - u) * (z[i] - u) * scale;
}

VECTOR void matern_add_unequal (
    double *r2, const double *z, double u, double scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        r2[i] += z[i] != u ? scale : 0;
}

/* e^-a for 0 <= a <= 700: 2^k e^f, |f| <= ln(2)/2, whose series ends with
 * f^13/13! < 1e-16.  libm's exp() is a call, and not the same everywhere.
 */
INLINE double exp_minus (double a)
{
    const double round = 0x1.8p52;
    double k = -a * 0x1.71547652b82fep+0 + round;
    double f = -a - (k - round) * 0x1.62e42fefa39efp-1
               - (k - round) * 0x1.abc9e3b39803fp-56;
    double p = 1.0 / 6227020800;
    uint64_t bits;

    /* written out, or the loop that this is in cannot be vectorised */
    p = p * f + 1.0 / 479001600;
    p = p * f + 1.0 / 39916800;
    p = p * f + 1.0 / 3628800;
    p = p * f + 1.0 / 362880;
    p = p * f + 1.0 / 40320;
    p = p * f + 1.0 / 5040;
    p = p * f + 1.0 / 720;
    p = p * f + 1.0 / 120;
    p = p * f + 1.0 / 24;
    p = p * f + 1.0 / 6;
    p = p * f + 0.5;
    p = p * f + 1;
    p = p * f + 1;
    memcpy (&bits, &k, sizeof (bits));
    bits = (bits + 1023) << 52;
    memcpy (&k, &bits, sizeof (k));
    return p * k;
}

/* sqrt (5 r2), where e^-a is still a number above 0. */
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

VECTOR static void
covariance_slope (double *restrict r2, double *restrict slope, int64_t n)
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
