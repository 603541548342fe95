/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a search: active parameters, and the constraint. */
#include "searcher/state/state.h"

#include <stdlib.h>
#include <string.h>

/* SAMPLE random points are tested; at least ALLOWED_MIN of them must be
 * allowed.  Then TRIES draws fail to find an allowed one with probability
 * e^-50.
 */
enum { SAMPLE = 20000, ALLOWED_MIN = 10, TRIES = 100000 };

static bool is_active (const struct searcher *s, const struct dim *d, const double *x)
{
    return d->parent < 0 || space_waits (d, s, x[d->parent]);
}

/* A parameter may depend on a later one: repeat until nothing changes. */
void point_mask (const struct searcher *s, double *x)
{
    const struct dim *dims = searcher_dims (s);
    bool changed = true;

    while (changed) {
        changed = false;
        for (int64_t i = 0; i < s->n; i++)
            if (!isnan (x[i]) && !is_active (s, dims + i, x)) {
                x[i] = NAN;
                changed = true;
            }
    }
}

bool point_fits (const struct searcher *s, const double *x)
{
    const struct dim *dims = searcher_dims (s);

    if (!x)
        return s->n == 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (is_active (s, dims + i, x) ? !space_has (dims + i, x[i]) : !isnan (x[i]))
            return false;
    }
    return true;
}

bool point_allowed (const struct searcher *s, const double *x)
{
    return !s->at_constraint || constraint_holds (searcher_at (s, s->at_constraint), x);
}

static void draw_point (const struct searcher *s, uint64_t seed, uint64_t trial, double *x)
{
    const struct dim *dims = searcher_dims (s);

    for (int64_t i = 0; i < s->n; i++)
        x[i] = space_sample (dims + i, seed, trial);
}

/* Draw 'try' of a trial uses random numbers of its own. */
void point_random (const struct searcher *s, long trial, double *x)
{
    for (uint64_t try = 0; try < TRIES; try++) {
        draw_point (s, s->seed, trial + (try << 40), x);
        if (!s->at_constraint)
            return;
        point_mask (s, x);
        if (point_allowed (s, x))
            return;
    }
}

/* The answer does not depend on the seed of the search. */
bool point_possible (const struct searcher *s)
{
    double *x = malloc ((s->n + 1) * sizeof (*x));
    int allowed = 0;

    for (uint64_t i = 0; x && i < SAMPLE && allowed < ALLOWED_MIN; i++) {
        draw_point (s, 0, i, x);
        point_mask (s, x);
        allowed += point_allowed (s, x);
    }
    free (x);
    return allowed >= ALLOWED_MIN;
}

bool point_is_new (const struct searcher *s, const double *x)
{
    for (long i = searcher_first (s); i <= s->created; i++)
        if (!memcmp (searcher_point (s, i), x, s->n * sizeof (*x)))
            return false;
    return true;
}
