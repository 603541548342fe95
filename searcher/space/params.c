/* SPDX-License-Identifier: Apache-2.0 */
/* Validate the parameters of a space. */
#include <math.h>
#include <string.h>

#include "searcher/space/space.h"

static const char *check_prior (const struct param *p)
{
    if (p->deviation == 0)
        return NULL;
    if (!(p->deviation > 0) || !isfinite (p->deviation) || !isfinite (p->mean))
        return "mean or deviation is not a number, or deviation is below 0";
    if (p->mean < p->min || p->mean > p->max)
        return "mean is not between min and max";
    if (p->type == PARAM_INT && p->base != 0)
        return "an integer has a base or a deviation, not both";
    return NULL;
}

static const char *check_step (const struct param *p)
{
    if (p->step == 0)
        return NULL;
    if (!(p->step > 0) || !isfinite (p->step))
        return "step is not above 0";
    if (p->step > p->max - p->min)
        return "step is above max - min";
    if ((p->max - p->min) / p->step > INTEGER_MAX)
        return "step is too small";
    if (p->type == PARAM_LOG || p->base != 0)
        return "step and a logarithm cannot be used together";
    if (p->type == PARAM_INT && floor (p->step) != p->step)
        return "step is not an integer";
    return NULL;
}

static const char *check_param_range (const struct param *p)
{
    if (!isfinite (p->min) || !isfinite (p->max))
        return "min or max is not a finite number";
    if (p->min > p->max)
        return "the lower end of the range is above the upper end";
    if (!isfinite (p->max - p->min))
        return "max - min is not a finite number";
    return NULL;
}

static const char *check_int (const struct param *p)
{
    const char *why = check_param_range (p);

    if (why)
        return why;
    if (floor (p->min) != p->min || floor (p->max) != p->max)
        return "min or max is not an integer";
    if (p->min < -INTEGER_MAX || p->max > INTEGER_MAX)
        return "min or max is beyond 2^53";
    if (p->base != 0 && (!isfinite (p->base) || p->base <= 1))
        return "base is not above 1";
    if (p->base != 0 && p->min < 1)
        return "min is below 1, which has no logarithm";
    return NULL;
}

static const char *check_log (const struct param *p)
{
    const char *why = check_param_range (p);

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
    if (p->choices > (1 << 30))
        return "more than 2^30 choices";
    return NULL;
}

static const char *check_type (const struct param *p)
{
    switch (p->type) {
    case PARAM_FLOAT:
        return check_param_range (p);
    case PARAM_INT:
        return check_int (p);
    case PARAM_LOG:
        return check_log (p);
    case PARAM_CATEGORICAL:
        return check_categorical (p);
    }
    return "unknown type of parameter";
}

static const char *check_param (const struct param *p)
{
    const char *why;

    if (!p->name || !*p->name)
        return "the parameter has no name";
    if (p->count < 0)
        return "count is negative";
    if ((why = check_type (p)) || p->type == PARAM_CATEGORICAL)
        return why;
    return (why = check_step (p)) ? why : check_prior (p);
}

/* Whether one of the values for which 'p' is active is a value of 'parent'. */
static const char *check_values (const struct param *p, const struct param *parent)
{
    struct dim d;

    space_dim (&d, parent);
    if (p->when_count < 1)
        return "when: no values";
    for (long i = 0; i < p->when_count; i++)
        if (!space_has (&d, p->when_values[i]))
            return "when: the other parameter never has this value";
    return NULL;
}

/* Whether it depends, possibly through others, on one that is always active. */
static const char *check_when (const struct param *params, size_t n, size_t i)
{
    const struct param *p = params + i;
    size_t steps = 0;
    int parent;

    if (!p->when)
        return NULL;
    if ((parent = space_find (params, n, p->when)) < 0)
        return "when: no such parameter";
    for (int at = i; at >= 0 && params[at].when; steps++) {
        if (steps == n)
            return "when: the parameters wait for each other";
        at = space_find (params, n, params[at].when);
    }
    return check_values (p, params + parent);
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
    for (size_t i = 0; i < n; i++) {
        const char *why = check_when (params, n, i);

        *param = i;
        if (why)
            return why;
    }
    *param = -1;
    return NULL;
}
