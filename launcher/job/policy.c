/* SPDX-License-Identifier: Apache-2.0 */
/* Apply the policies of a job to an attempt that failed. */
#include "launcher/job/policy.h"

#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/job/verdict.h"
#include "launcher/sweep/replay.h"

const char *job_gives_up (const struct experiment *e, const struct job_failure *f)
{
    const struct job_settings *j = e->job;

    if (f->free)
        return NULL;
    if (j->nroles == 0 && !role_begins_again (j->restart, j->ranges, f->status))
        return "RoleFailed";
    if (f->progress)
        return NULL;
    if (f->alike >= FAULT_LIMIT)
        return "SameCause";
    return f->before >= e->failures->max_restarts ? "BackoffLimitExceeded" : NULL;
}

double job_deadline (const struct sweep *s, const struct sweep_trial *t)
{
    const struct condition_entry *suspended = &t->conditions.list[CONDITION_SUSPENDED];
    double start = suspended->reason && !suspended->is_true ? suspended->time : t->begin_time;

    return s->exp->job->deadline > 0 ? start + s->exp->job->deadline : 0;
}
