/* SPDX-License-Identifier: Apache-2.0 */
/* One dimension of a space: its values at random, in the middle, on a grid. */
#ifndef SEARCHER_SPACE_H
#define SEARCHER_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "searcher/searcher.h"

/* A parameter as it lies in the state: without its name. */
struct dim {
    double min, max, base;
    int64_t choices;
    int64_t points; /* on a grid; 0: not known */
    int64_t stride; /* trials from one point of the grid to the next */
    uint64_t key;   /* of its random numbers */
    int64_t type;   /* enum param_type */
};

/* As searcher_check(), for the space. */
const char *space_check (const struct param *params, size_t n, int *param);

/* Points of 'p' on a grid: 0 if it has no count and needs one. */
int64_t space_points (const struct param *p);

void space_dim (struct dim *d, const struct param *p);
double space_sample (const struct dim *d, uint64_t seed, long trial);
double space_middle (const struct dim *d);

/* Point 'i', 0 .. points - 1. */
double space_grid (const struct dim *d, int64_t i);

/* A method that measures distances uses the coordinate of a value: the
 * exponent of PARAM_LOG, the logarithm of an integer that has a base, else the
 * value itself (the index of a choice).  The coordinates lie from space_low()
 * to space_high(); an integer owns half a unit to each side.
 */
double space_low (const struct dim *d);
double space_high (const struct dim *d);
double space_inner (const struct dim *d, double x);
/* The value at, or for discrete ones nearest to, a coordinate. */
double space_outer (const struct dim *d, double u);

/* The value 'part' (0 to 1) of the way from one end to the other. */
double space_at (const struct dim *d, double part);

/* Can 'x' be a value of 'd'? */
bool space_has (const struct dim *d, double x);

#endif
