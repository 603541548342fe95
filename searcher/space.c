/* SPDX-License-Identifier: Apache-2.0 */
/* One dimension of a space: its values at random, in the middle, on a grid. */
#include "searcher/space.h"

#include <math.h>
#include <string.h>

#include "searcher/rng.h"

/* Beyond it not every integer is a double. */
static const double integer_max = 0x1p53;

static const char *check_range (const struct param *p)
{
    if (!isfinite (p->min) || !isfinite (p->max))
        return "min or max is not a finite number";
    if (p->min > p->max)
        return "min is above max";
    if (!isfinite (p->max - p->min))
        return "max - min is not a finite number";
    return NULL;
}

static const char *check_int (const struct param *p)
{
    const char *why = check_range (p);

    if (why)
        return why;
    if (floor (p->min) != p->min || floor (p->max) != p->max)
        return "min or max is not an integer";
    if (p->min < -integer_max || p->max > integer_max)
        return "min or max is beyond 2^53";
    if (p->base != 0 && (!isfinite (p->base) || p->base <= 1))
        return "base is not above 1";
    if (p->base != 0 && p->min < 1)
        return "min is below 1, which has no logarithm";
    return NULL;
}

static const char *check_log (const struct param *p)
{
    const char *why = check_range (p);

    if (why)
        return why;
    if (!isfinite (p->base) || p->base <= 1)
        return "base is not above 1";
    if (!isfinite (pow (p->base, p->max)) || pow (p->base, p->min) == 0)
        return "base^min or base^max is not a number above 0";
    return NULL;
}

static const char *check_categorical (const struct param *p)
{
    if (p->choices < 1)
        return "no choices";
    return NULL;
}

static const char *check_param (const struct param *p)
{
    if (!p->name || !*p->name)
        return "the parameter has no name";
    if (p->count < 0)
        return "count is negative";
    switch (p->type) {
    case PARAM_FLOAT:
        return check_range (p);
    case PARAM_INT:
        return check_int (p);
    case PARAM_LOG:
        return check_log (p);
    case PARAM_CATEGORICAL:
        return check_categorical (p);
    }
    return "unknown type of parameter";
}

const char *space_check (const struct param *params, size_t n, int *param)
{
    for (size_t i = 0; i < n; i++) {
        const char *why = check_param (params + i);

        *param = i;
        if (why)
            return why;
        for (size_t j = 0; j < i; j++)
            if (!strcmp (params[i].name, params[j].name))
                return "another parameter has the same name";
    }
    *param = -1;
    return NULL;
}

int64_t space_points (const struct param *p)
{
    int64_t range;

    if (p->type == PARAM_CATEGORICAL)
        return p->choices;
    if (p->type != PARAM_INT)
        return p->count;
    range = (int64_t)p->max - (int64_t)p->min + 1;
    return p->count > 0 && p->count < range ? p->count : range;
}

void space_dim (struct dim *d, const struct param *p)
{
    d->min = p->min;
    d->max = p->max;
    d->base = p->base;
    d->choices = p->choices;
    d->points = space_points (p);
    d->key = rng_key (p->name);
    d->type = p->type;
}

/* Rounding must not lead out of the range. */
static double clamp (double x, double min, double max)
{
    return x < min ? min : x > max ? max : x;
}

/* The value 'part' (0 to 1) of the way from min to max. */
static double between (const struct dim *d, double part)
{
    double x = clamp (d->min + part * (d->max - d->min), d->min, d->max);

    if (part == 1)
        x = d->max;
    return d->type == PARAM_LOG ? pow (d->base, x) : x;
}

/* ---- coordinates ---- */

static bool is_log_int (const struct dim *d)
{
    return d->type == PARAM_INT && d->base > 1;
}

/* An integer owns the interval half a unit to each side of it. */
static double edge (const struct dim *d, double x)
{
    return is_log_int (d) ? log (x) : x;
}

double space_low (const struct dim *d)
{
    if (d->type == PARAM_CATEGORICAL)
        return -0.5;
    return d->type == PARAM_INT ? edge (d, d->min - 0.5) : d->min;
}

double space_high (const struct dim *d)
{
    if (d->type == PARAM_CATEGORICAL)
        return d->choices - 0.5;
    return d->type == PARAM_INT ? edge (d, d->max + 0.5) : d->max;
}

double space_inner (const struct dim *d, double x)
{
    if (d->type == PARAM_LOG)
        return clamp (log (x) / log (d->base), d->min, d->max);
    return edge (d, x);
}

double space_outer (const struct dim *d, double u)
{
    switch ((enum param_type)d->type) {
    case PARAM_CATEGORICAL:
        return clamp (floor (u + 0.5), 0, d->choices - 1);
    case PARAM_INT:
        u = is_log_int (d) ? exp (u) : u;
        return clamp (floor (u + 0.5), d->min, d->max);
    case PARAM_FLOAT:
        return clamp (u, d->min, d->max);
    case PARAM_LOG:
        break;
    }
    return pow (d->base, clamp (u, d->min, d->max));
}

double space_at (const struct dim *d, double part)
{
    double low = space_low (d);

    return space_outer (d, low + part * (space_high (d) - low));
}

double space_sample (const struct dim *d, uint64_t seed, long trial)
{
    if (is_log_int (d))
        return space_at (d, rng_unit (seed, trial, d->key));
    switch ((enum param_type)d->type) {
    case PARAM_INT: {
        int64_t min = d->min, range = (int64_t)d->max - min + 1;
        return min + (int64_t)rng_below (seed, trial, d->key, range);
    }
    case PARAM_CATEGORICAL:
        return rng_below (seed, trial, d->key, d->choices);
    case PARAM_FLOAT:
    case PARAM_LOG:
        break;
    }
    return between (d, rng_unit (seed, trial, d->key));
}

double space_middle (const struct dim *d)
{
    if (d->type == PARAM_CATEGORICAL)
        return 0;
    if (d->type == PARAM_INT)
        return floor ((d->min + d->max) / 2);
    return between (d, 0.5);
}

/* min + i * (max - min) / (points - 1), exactly, then to the nearest integer,
 * halves away from 0.
 */
static int64_t grid_integer (const struct dim *d, int64_t i)
{
    int64_t min = d->min, span = (int64_t)d->max - min;
    int64_t steps = d->points - 1;
    __int128 twice = 2 * ((__int128)min * steps + (__int128)i * span);

    twice += twice < 0 ? -steps : steps;
    return twice / (2 * steps);
}

double space_grid (const struct dim *d, int64_t i)
{
    if (d->type == PARAM_CATEGORICAL)
        return i;
    if (d->points == 1)
        return space_middle (d);
    if (d->type == PARAM_INT)
        return grid_integer (d, i);
    return between (d, (double)i / (d->points - 1));
}

bool space_has (const struct dim *d, double x)
{
    switch ((enum param_type)d->type) {
    case PARAM_CATEGORICAL:
        return x >= 0 && x < d->choices && floor (x) == x;
    case PARAM_INT:
        return x >= d->min && x <= d->max && floor (x) == x;
    case PARAM_FLOAT:
        return x >= d->min && x <= d->max;
    case PARAM_LOG:
        break;
    }
    /* pow() of another machine may differ in the last bit: no sharp bounds */
    return isfinite (x) && x > 0;
}
