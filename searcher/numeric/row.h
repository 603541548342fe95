/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a row of numbers. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool row_is_finite (const double *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite (row[i]))
            return false;
    return true;
}

/* Added in order, unlike factor_dot(). */
static inline double row_dot (const double *a, const double *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* For qsort(): ascending. */
static inline int row_ascending (const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}
