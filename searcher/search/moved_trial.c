/* SPDX-License-Identifier: Apache-2.0 */
/* Move a running trial to another point. */
#include <math.h>
#include <string.h>

#include "searcher/search/events.h"
#include "searcher/space/space.h"
#include "searcher/state/state.h"

int searcher_move (struct searcher *s, long trial, const double *x)
{
    if (s->repeats > 1 || trial < 1 || trial > s->created
        || searcher_trial (s, trial)->state != TRIAL_RUNNING || !point_fits (s, x)
        || !point_allowed (s, x))
        return inner_refuse ();
    if (s->at_points && s->n > 0)
        memcpy (searcher_point (s, trial), x, s->n * sizeof (*x));
    return 0;
}

static double nearest (const struct dim *d, double x)
{
    return space_outer (d, space_inner (d, x));
}

double searcher_half (const struct param *param, double x)
{
    bool integral = param->type == PARAM_INT;
    double half = integral ? floor (x / 2) : x / 2;
    struct dim d;

    if (param->type == PARAM_CATEGORICAL || !(x > 0))
        return NAN;
    space_dim (&d, param);
    if (d.step > 0 && half >= d.min) {
        half = nearest (&d, half);
        if (half > x / 2)
            half = half - d.step < d.min ? NAN : nearest (&d, half - d.step);
    }
    return half <= x / 2 && space_has (&d, half) ? half : NAN;
}
