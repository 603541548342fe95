/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a worker has, and what fits into it. */
#include "launcher/worker/budget.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "launcher/sweep/attempt.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/latest_metric.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "runtime/base/clock.h"

/* A segment may take so many times what the others took. */
static const double slack = 1.5;

/* One that goes on from where it was comes further than that. */
static const double growth = 1.1;

/* Seconds that a unit of length has taken in the trial, or in all that have a
 * length, with the attempts that came to nothing; 0: not known.
 */
static double pace (const struct sweep *s, const struct sweep_trial *t)
{
    if (t && t->length > 0)
        return t->seconds / (double)t->length;
    return s->pace.length > 0 ? s->pace.seconds / s->pace.length : 0;
}

static bool has_checkpoint (const struct sweep *s, long trial, long attempt)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/ckpt", s->dir, trial, attempt);
    return attempt > 0 && access (path, F_OK) == 0;
}

/* Judged by the trial, or else by the best one. */
static bool saves_checkpoints (const struct sweep *s, long trial)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    const struct sweep_trial *best = sweep_trial (s, sweep_best (s));

    return (t && has_checkpoint (s, trial, t->over))
           || (best && has_checkpoint (s, sweep_best (s), trial_last (best).attempt));
}

bool budget_fits (const struct worker *w, long trial, int64_t length)
{
    const struct sweep *s = w->sweep;
    const struct sweep_trial *t = sweep_trial (s, trial);
    double grace = (double)s->exp->grace;
    double left = w->end - monotonic () - grace;

    if (w->end == 0 || w->fresh
        || pace (s, t) * (double)(length - (t ? t->length : 0)) * slack <= left)
        return true;
    return left > grace && saves_checkpoints (s, trial);
}

static int64_t newest_step (const struct sweep *s, long trial, long attempt)
{
    char path[PATH_MAX];
    int64_t step;
    double value;

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld", s->dir, trial, attempt);
    return newest_metric (path, sweep_metric (s, 0), &step, &value) == 0 ? step : 0;
}

bool budget_in_vain (const struct worker *w, const struct trial_attempt *a)
{
    int64_t before = 0;

    if (w->end == 0 || !w->fresh || a->number < 2
        || monotonic () + (double)a->sweep->exp->grace < w->end
        || has_checkpoint (a->sweep, a->trial, a->number))
        return false;
    for (long k = 1; k < a->number; k++) {
        int64_t step = newest_step (a->sweep, a->trial, k);
        before = step > before ? step : before;
    }
    return (double)newest_step (a->sweep, a->trial, a->number) <= growth * (double)before;
}
