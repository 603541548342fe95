/* SPDX-License-Identifier: Apache-2.0 */
/* Minimise a smooth function within bounds, by BFGS. */
#pragma once

#include <stdint.h>

/* Returns the value at x[0 .. n-1] and its gradient; INFINITY where it is undefined. */
typedef double bfgs_f (void *arg, const double *x, double *gradient);

struct bfgs {
    int64_t n;
    const double *low, *high;
    bfgs_f *f;
    void *arg;
    double tolerance; /* stop when a step gains less */
    double *room;     /* bfgs_room (n) doubles, kept between calls */
};

int64_t bfgs_room (int64_t n);

/* Start with the identity as inverse Hessian, or with the one of the last call,
 * divided by 'scale'.
 */
void bfgs_reset (const struct bfgs *b);
void bfgs_scale (const struct bfgs *b, double scale);

/* Move x downhill in at most 'steps' steps (J. Nocedal and S. J. Wright,
 * Numerical Optimization, 2006, 6.1, with steps cut off at the bounds).
 */
void bfgs_minimise (const struct bfgs *b, double *x, int steps);
