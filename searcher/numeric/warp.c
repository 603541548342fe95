/* SPDX-License-Identifier: Apache-2.0 */
/* The Yeo-Johnson transformation of maximum likelihood. */
#include "searcher/numeric/numeric.h"

#include <math.h>

/* Scale to mean 0 and variance 1.  Returns the deviation. */
static double standardise (double *y, int64_t n)
{
    double mean = 0, square = 0, deviation;

    for (int64_t i = 0; i < n; i++)
        mean += y[i] / n;
    for (int64_t i = 0; i < n; i++)
        square += (y[i] - mean) * (y[i] - mean) / n;
    deviation = sqrt (square) + 1e-12;
    for (int64_t i = 0; i < n; i++)
        y[i] = (y[i] - mean) / deviation;
    return deviation;
}

static double yeo_johnson (double y, double p)
{
    if (y >= 0)
        return fabs (p) < 1e-9 ? log (1 + y) : (pow (1 + y, p) - 1) / p;
    if (fabs (p - 2) < 1e-9)
        return -log (1 - y);
    return -(pow (1 - y, 2 - p) - 1) / (2 - p);
}

/* Sum of the logs of the derivative at each value. */
static double log_slope (const double *y, int64_t n, double p)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (p - 1) * (y[i] < 0 ? -1 : 1) * log (1 + fabs (y[i]));
    return sum;
}

/* Log likelihood of a normal distribution of the values warped by p. */
static double fit_of (const double *y, int64_t n, double p, double *warped)
{
    for (int64_t i = 0; i < n; i++)
        warped[i] = yeo_johnson (y[i], p);
    return log_slope (y, n, p) - n * log (standardise (warped, n));
}

/* Golden section search over -2 .. 2. */
static double best_power (const double *y, int64_t n, double *warped)
{
    const double ratio = 0.6180339887498949;
    double low = -2, high = 2;
    double a = high - ratio * (high - low), b = low + ratio * (high - low);
    double fa = fit_of (y, n, a, warped), fb = fit_of (y, n, b, warped);

    for (int i = 0; i < 20; i++) {
        if (fa > fb) {
            high = b;
            b = a;
            fb = fa;
            fa = fit_of (y, n, a = high - ratio * (high - low), warped);
        } else {
            low = a;
            a = b;
            fa = fb;
            fb = fit_of (y, n, b = low + ratio * (high - low), warped);
        }
    }
    return (low + high) / 2;
}

void warp_values (double *y, int64_t n, double *warped)
{
    standardise (y, n);
    fit_of (y, n, best_power (y, n, warped), warped);
    for (int64_t i = 0; i < n; i++)
        warped[i] = fmin (fmax (warped[i], -6), 3);
}
