/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of points for tests with several objectives. */
#pragma once

#include "searcher/numeric/rng.h"
#include "searcher/objectives/pareto.h"
#include "tests/unit.h"

enum { ROWS = 128, ROOM = ROWS * PARETO_MAX };

static const double ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 };

static inline void assert_near (double a, double b, double part)
{
    if (!(fabs (a - b) <= part * fmax (fabs (a), fabs (b))))
        fail_msg ("%.17g is not %.17g", a, b);
}

/* Draw values in (0, 1), rounded down to multiples of 1 / levels unless 'levels' is 0. */
static inline void draw_rows (struct rng *r, int64_t n, int64_t m, int levels, double *y)
{
    for (int64_t i = 0; i < n * m; i++) {
        double x = rng_next (r);
        y[i] = levels ? floor (x * levels) / levels : x;
    }
}

static inline void spoil (struct rng *r, int64_t n, int64_t m, double *y)
{
    static const double bad[] = { INFINITY, NAN, -INFINITY };

    for (int64_t i = 0; i < n; i++)
        if (rng_next (r) < 0.2)
            y[i * m + (int)(rng_next (r) * m)] = bad[(int)(rng_next (r) * 3)];
}

/* Volume between the rows and the reference, summed over slices along the last objective. */
static inline double hypervolume (const double *y, int64_t n, int64_t m, int64_t stride,
                                  const double *reference)
{
    double rows[ROOM], sum = 0;
    int64_t inside = 0, last = m - 1;

    for (int64_t i = 0; i < n; i++) {
        int64_t at = inside;
        bool is_inside = true;
        for (int64_t k = 0; k < m; k++)
            is_inside &= isfinite (y[i * stride + k]) && y[i * stride + k] < reference[k];
        if (!is_inside)
            continue;
        for (; at > 0 && rows[(at - 1) * m + last] > y[i * stride + last]; at--)
            memcpy (rows + at * m, rows + (at - 1) * m, m * sizeof (*rows));
        memcpy (rows + at * m, y + i * stride, m * sizeof (*rows));
        inside++;
    }
    if (m == 1)
        return inside ? reference[0] - rows[0] : 0;
    for (int64_t i = 0; i < inside; i++) {
        double top = i + 1 < inside ? rows[(i + 1) * m + last] : reference[last];
        double depth = top - rows[i * m + last];
        if (depth > 0)
            sum += depth * hypervolume (rows, i + 1, last, m, reference);
    }
    return sum;
}

static inline double volume_in_cube (const double *y, int64_t n, int64_t m)
{
    return hypervolume (y, n, m, m, ones);
}
