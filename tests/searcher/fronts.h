/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of points for the tests of several objectives. */
#pragma once

#include "searcher/numeric/rng.h"
#include "searcher/objectives/pareto.h"
#include "tests/unit.h"

enum { ROWS = 64, ROOM = ROWS * PARETO_MAX };

static const double ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 };

static inline void assert_near (double a, double b, double part)
{
    if (!(fabs (a - b) <= part * fmax (fabs (a), fabs (b))))
        fail_msg ("%.17g is not %.17g", a, b);
}

/* Values in (0, 1), on so many levels if not 0. */
static inline void
draw_rows (struct rng *r, int64_t n, int64_t m, int levels, double *y)
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

static inline double volume_of (const double *y, int64_t n, int64_t m)
{
    double volume = NAN;

    assert_int_equal (pareto_hypervolume (y, n, m, ones, &volume), 0);
    return volume;
}
