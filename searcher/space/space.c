/* SPDX-License-Identifier: Apache-2.0 */
/* One dimension of a space: its values at random, in the middle, on a grid. */
#include "searcher/space/space.h"

#include <math.h>
#include <string.h>

#include "searcher/numeric/normal.h"
#include "searcher/numeric/rng.h"

static bool is_integral (double x)
{
    return floor (x) == x && fabs (x) <= INTEGER_MAX;
}

/* Number of steps from min to max; rounding may be off by one bit. */
static double step_total (double min, double max, double step)
{
    if (is_integral (min) && is_integral (max) && is_integral (step))
        return ((int64_t)max - (int64_t)min) / (int64_t)step;
    return floor ((max - min) / step * (1 + 1e-12) + 1e-12);
}

int space_find (const struct param *params, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp (params[i].name, name))
            return i;
    return -1;
}

int64_t space_points (const struct param *p)
{
    double step = p->type == PARAM_INT && p->step == 0 ? 1 : p->step;
    int64_t range;

    if (p->type == PARAM_CATEGORICAL)
        return p->choices;
    if (step == 0)
        return p->count;
    range = (int64_t)step_total (p->min, p->max, step) + 1;
    return p->count > 0 && p->count < range ? p->count : range;
}

/* ---- steps ---- */

/* Whether x is the double nearest to a decimal with that many places. */
static bool is_decimal (double x, double unit)
{
    double whole = floor (x * unit + 0.5);

    return fabs (whole) <= INTEGER_MAX && whole / unit == x;
}

static double unit_of (double min, double step)
{
    double unit = 1;

    while (unit <= 1e15 && !(is_decimal (min, unit) && is_decimal (step, unit)))
        unit *= 10;
    return unit <= 1e15 ? unit : 0;
}

/* min + k steps.  If both are decimals, so is the result: 0.3, not 0.1 + 2 * 0.1. */
static double step_value (const struct dim *d, double k)
{
    double whole;

    if (d->unit == 0)
        return d->min + k * d->step;
    whole = floor (d->min * d->unit + 0.5) + k * floor (d->step * d->unit + 0.5);
    return fabs (whole) <= INTEGER_MAX ? whole / d->unit : d->min + k * d->step;
}

/* ---- the normal distribution ---- */

static double mass_below (double z)
{
    return erfc (-z * M_SQRT1_2) / 2;
}

/* The inverse for p in (0, 1): Newton's method on the logarithm, which is
 * concave, from the left.
 */
static double truncated_quantile (double p)
{
    bool high = p > 0.5;
    double q = high ? 1 - p : p;
    double z;

    if (q < 1e-300)
        q = 1e-300;
    z = -sqrt (-2 * log (q));
    for (int i = 0; i < 60; i++) {
        double now = mass_below (z);
        double by = (log (now) - log (q)) * now * exp (z * z / 2 + LOG_SQRT_2PI);
        z -= by;
        if (fabs (by) < 1e-14 * (1 + fabs (z)))
            break;
    }
    return high ? -z : z;
}

static void set_dim_prior (struct dim *d, const struct param *p)
{
    double high;

    if (p->type == PARAM_CATEGORICAL || !(p->deviation > 0))
        return;
    /* so wide that it is uniform to all digits, or there is only one value */
    if (p->deviation > 1e6 * (space_high (d) - space_low (d)))
        return;
    d->mean = p->mean;
    d->deviation = p->deviation;
    d->prior_low = mass_below ((space_low (d) - d->mean) / d->deviation);
    high = mass_below ((space_high (d) - d->mean) / d->deviation);
    d->prior_mass = high - d->prior_low;
}

void space_dim (struct dim *d, const struct param *p)
{
    *d = (struct dim){ .min = p->min,
                       .max = p->max,
                       .base = p->base,
                       .choices = p->choices,
                       .points = space_points (p),
                       .key = rng_key (p->name),
                       .type = p->type,
                       .parent = -1 };
    if (p->type == PARAM_INT || p->type == PARAM_FLOAT)
        d->step = p->type == PARAM_INT && p->step == 0 ? 1 : p->step;
    if (d->step > 0) {
        d->unit = unit_of (d->min, d->step);
        double last = step_value (d, step_total (d->min, d->max, d->step));
        d->max = d->max - last > 1e-9 * d->step ? last : d->max;
    }
    set_dim_prior (d, p);
}

int64_t space_when_values (const struct param *params, size_t n)
{
    int64_t values = 0;

    for (size_t i = 0; i < n; i++)
        values += params[i].when ? params[i].when_count : 0;
    return values;
}

static double *when_of (const struct dim *d, const void *base)
{
    return (double *)((char *)base + d->at_when);
}

/* How much two values that mean the same may differ by rounding: 0.1 + 2 * 0.1
 * is above 0.3, and pow() of another machine may differ in the last bit.
 */
static double rounding_slack (const struct dim *d)
{
    switch ((enum param_type)d->type) {
    case PARAM_FLOAT:
        return 1e-9 * (d->step > 0 ? d->step : d->max - d->min);
    case PARAM_LOG:
        return -1e-9;
    case PARAM_INT:
    case PARAM_CATEGORICAL:
        break;
    }
    return 0;
}

void space_fill (struct dim *dims, void *base, int64_t at, const struct param *params, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct dim *d = dims + i;
        space_dim (d, params + i);
        for (size_t j = 0; j < n; j++)
            d->order += strcmp (params[j].name, params[i].name) < 0;
        if (!params[i].when)
            continue;
        d->parent = space_find (params, n, params[i].when);
        d->at_when = at;
        d->nwhen = params[i].when_count;
        at += d->nwhen * (int64_t)sizeof (double);
        memcpy (when_of (d, base), params[i].when_values, d->nwhen * sizeof (double));
    }
    for (size_t i = 0; i < n; i++)
        if (dims[i].parent >= 0)
            dims[i].slack = rounding_slack (dims + dims[i].parent);
}

bool space_waits (const struct dim *d, const void *base, double x)
{
    for (int64_t i = 0; i < d->nwhen; i++) {
        double value = when_of (d, base)[i];
        double far = d->slack < 0 ? -d->slack * value : d->slack;
        if (fabs (x - value) <= far)
            return true;
    }
    return false;
}

/* Rounding must not leave the range. */
static double clamp (double x, double min, double max)
{
    return x < min ? min : x > max ? max : x;
}

/* The value at 'part' (0 to 1) of the way from min to max. */
static double value_between (const struct dim *d, double part)
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

static double edge (const struct dim *d, double x)
{
    return is_log_int (d) ? log (x) : x;
}

double space_low (const struct dim *d)
{
    if (d->type == PARAM_CATEGORICAL)
        return -0.5;
    return edge (d, d->min - d->step / 2);
}

double space_high (const struct dim *d)
{
    if (d->type == PARAM_CATEGORICAL)
        return d->choices - 0.5;
    return edge (d, d->max + d->step / 2);
}

double space_inner (const struct dim *d, double x)
{
    if (d->type == PARAM_LOG)
        return clamp (log (x) / log (d->base), d->min, d->max);
    return edge (d, x);
}

/* The nearest of the values that are 'step' apart. */
static double on_step (const struct dim *d, double x)
{
    if (d->step == 1 && is_integral (d->min))
        return clamp (floor (x + 0.5), d->min, d->max);
    return clamp (step_value (d, floor ((x - d->min) / d->step + 0.5)), d->min, d->max);
}

double space_outer (const struct dim *d, double u)
{
    switch ((enum param_type)d->type) {
    case PARAM_CATEGORICAL:
        return clamp (floor (u + 0.5), 0, d->choices - 1);
    case PARAM_INT:
        return on_step (d, is_log_int (d) ? exp (u) : u);
    case PARAM_FLOAT:
        return d->step > 0 ? on_step (d, u) : clamp (u, d->min, d->max);
    case PARAM_LOG:
        break;
    }
    return pow (d->base, clamp (u, d->min, d->max));
}

void space_cell (const struct dim *d, double u, double *low, double *high)
{
    double x = space_outer (d, u), half = d->step / 2;

    if (d->type == PARAM_CATEGORICAL)
        half = 0.5;
    *low = edge (d, x - half);
    *high = edge (d, x + half);
}

int64_t space_values (const struct dim *d)
{
    double n;

    if (d->type == PARAM_CATEGORICAL)
        return d->choices;
    if (d->step == 0)
        return d->type != PARAM_INT && d->min == d->max;
    n = step_total (d->min, d->max, d->step) + 1;
    return n < 1e6 ? (int64_t)n : 0;
}

double space_at (const struct dim *d, double part)
{
    double low = space_low (d);

    if (d->deviation > 0)
        return space_outer (
            d, d->mean
                   + d->deviation
                         * truncated_quantile (
                             clamp (d->prior_low + part * d->prior_mass, 1e-300, 1 - 0x1p-53)));
    return space_outer (d, low + part * (space_high (d) - low));
}

double space_part (const struct dim *d, double x)
{
    double low = space_low (d), range = space_high (d) - low;
    double u = space_inner (d, x);

    if (d->deviation > 0)
        return clamp ((mass_below ((u - d->mean) / d->deviation) - d->prior_low) / d->prior_mass, 0,
                      1);
    return range > 0 ? (u - low) / range : 0.5;
}

double space_sample (const struct dim *d, uint64_t seed, uint64_t trial)
{
    if (is_log_int (d) || d->deviation > 0 || (d->type == PARAM_FLOAT && d->step > 0))
        return space_at (d, rng_unit (seed, trial, d->key));
    switch ((enum param_type)d->type) {
    case PARAM_INT: {
        int64_t range = (int64_t)step_total (d->min, d->max, d->step) + 1;
        return d->min + d->step * (double)rng_below (seed, trial, d->key, range);
    }
    case PARAM_CATEGORICAL:
        return rng_below (seed, trial, d->key, d->choices);
    case PARAM_FLOAT:
    case PARAM_LOG:
        break;
    }
    return value_between (d, rng_unit (seed, trial, d->key));
}

double space_middle (const struct dim *d)
{
    if (d->type == PARAM_CATEGORICAL)
        return 0;
    if (d->deviation > 0)
        return space_outer (d, d->mean);
    if (d->type == PARAM_INT)
        return d->min + d->step * floor ((d->max - d->min) / d->step / 2);
    if (d->step > 0)
        return on_step (d, d->min + (d->max - d->min) / 2);
    return value_between (d, 0.5);
}

/* Index of the value: i * (values - 1) / (points - 1), computed exactly and
 * rounded to the nearest integer, halves away from 0.
 */
static int64_t grid_integer (int64_t min, int64_t span, int64_t i, int64_t steps)
{
    __int128 twice = 2 * ((__int128)min * steps + (__int128)i * span);

    twice += twice < 0 ? -steps : steps;
    return twice / (2 * steps);
}

double space_grid (const struct dim *d, int64_t i)
{
    int64_t steps = d->points - 1, min = d->min;

    if (d->type == PARAM_CATEGORICAL)
        return i;
    if (d->points == 1)
        return space_middle (d);
    if (d->type == PARAM_INT && d->step == 1)
        return grid_integer (min, (int64_t)d->max - min, i, steps);
    if (d->step > 0)
        return on_step (
            d, d->min + d->step * grid_integer (0, step_total (d->min, d->max, d->step), i, steps));
    return value_between (d, (double)i / steps);
}

/* Whether it is min plus a number of steps.  Another machine may have rounded differently. */
static bool is_on_step (const struct dim *d, double x)
{
    return fabs (on_step (d, x) - x) <= 1e-9 * d->step;
}

bool space_has (const struct dim *d, double x)
{
    switch ((enum param_type)d->type) {
    case PARAM_CATEGORICAL:
        return x >= 0 && x < d->choices && floor (x) == x;
    case PARAM_INT:
        return x >= d->min && x <= d->max && floor (x) == x
               && (d->step == 1 || on_step (d, x) == x);
    case PARAM_FLOAT:
        if (d->step > 0)
            return isfinite (x) && is_on_step (d, x);
        return x >= d->min && x <= d->max;
    case PARAM_LOG:
        break;
    }
    /* pow() of another machine may differ in the last bit: no sharp bounds */
    return x >= pow (d->base, d->min) * (1 - 1e-9) && x <= pow (d->base, d->max) * (1 + 1e-9)
           && isfinite (x);
}
