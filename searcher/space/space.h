/* SPDX-License-Identifier: Apache-2.0 */
/* One dimension of a space: its values at random, in the middle, on a grid. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "searcher/searcher.h"

/* Beyond 2^53 not every integer is a double. */
#define INTEGER_MAX 0x1p53

/* A parameter as stored in the state: without its name. */
struct dim {
    double min, max, base;
    double step;                  /* 0: continuous; an integer's is 1 or more */
    double unit;                  /* min and step are whole numbers of 1 / unit, a power of
                                   * ten; 0: they are not */
    double mean, deviation;       /* of the prior, deviation 0: uniform */
    double prior_low, prior_mass; /* of the normal prior, within the range */
    int64_t choices;
    int64_t points;         /* on a grid; 0: not known */
    int64_t order;          /* grid: rank of its name */
    uint64_t key;           /* of its random numbers */
    int64_t type;           /* enum param_type */
    int64_t parent;         /* it is active only if this one has ... */
    int64_t at_when, nwhen; /* ... one of these values, in the state, ... */
    double slack;           /* ... but for so much, below 0: as a part of it */
};

/* As searcher_check(), for the space; '*param' is the index of the parameter. */
const char *space_check (const struct param *params, size_t n, int *param);

/* Index of the parameter of that name, -1 if there is none. */
int space_find (const struct param *params, size_t n, const char *name);

/* Number of grid points of 'p'; 0 if it needs a count and has none. */
int64_t space_points (const struct param *p);

/* Set all members but those that depend on other parameters: parent, at_when, order. */
void space_dim (struct dim *d, const struct param *p);

/* Fill in n dims; the values for which they are active, space_when_values()
 * doubles in all, go to base + at, base + at + 8 ...
 */
int64_t space_when_values (const struct param *params, size_t n);
void space_fill (struct dim *dims, void *base, int64_t at, const struct param *params, size_t n);

/* Whether 'd' is active when its parent has the value 'x'. */
bool space_waits (const struct dim *d, const void *base, double x);

double space_sample (const struct dim *d, uint64_t seed, uint64_t trial);
double space_middle (const struct dim *d);

/* Point 'i' of the grid, 0 .. points - 1. */
double space_grid (const struct dim *d, int64_t i);

/* Methods that measure distances use the coordinate of a value: the exponent of
 * PARAM_LOG, the logarithm of an integer that has a base, else the value itself
 * (the index of a choice).  Coordinates lie between space_low() and
 * space_high(); the coordinate of a discrete value owns half a step to each
 * side.
 */
double space_low (const struct dim *d);
double space_high (const struct dim *d);
double space_inner (const struct dim *d, double x);
/* The value at a coordinate; for discrete ones, the nearest. */
double space_outer (const struct dim *d, double u);
/* The coordinates that round to the same value as u. */
void space_cell (const struct dim *d, double u, double *low, double *high);
/* Number of values; 0 for a continuum (or too many to count). */
int64_t space_values (const struct dim *d);

/* The value below which the part (0 to 1) of the prior's mass lies: uniform
 * parts yield values distributed as the prior.  And the inverse; for a discrete
 * value, the middle of its part.
 */
double space_at (const struct dim *d, double part);
double space_part (const struct dim *d, double x);

/* Whether 'x' can be a value of 'd'. */
bool space_has (const struct dim *d, double x);
