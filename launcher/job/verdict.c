/* SPDX-License-Identifier: Apache-2.0 */
/* Apply the policies of a job: decide whether it runs, has succeeded, fails or restarts. */
#include "launcher/job/job.h"

#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"

/* ---- success ---- */

static bool is_worker (const struct role_members *r)
{
    return !role_is_chief (r->name) && !role_serves (r->name);
}

static bool has_chief (const struct role_members *roles, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (role_is_chief (roles[i].name))
            return true;
    return false;
}

/* A member that is always restarted never succeeds. */
static long members_succeeded (const struct role_members *r)
{
    return r->restart == RESTART_ALWAYS ? 0 : r->succeeded;
}

/* The chief role if all its members succeeded, or NULL. */
static const struct role_members *by_chief (const struct role_members *roles, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (role_is_chief (roles[i].name) && members_succeeded (&roles[i]) == roles[i].count)
            return &roles[i];
    return NULL;
}

static const struct role_members *by_any (const struct role_members *roles, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!role_serves (roles[i].name) && members_succeeded (&roles[i]) > 0)
            return &roles[i];
    return NULL;
}

static const struct role_members *by_first (const struct role_members *roles, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_worker (&roles[i]))
            return members_succeeded (&roles[i]) > 0 && roles[i].first_succeeded ? &roles[i] : NULL;
    return NULL;
}

static const struct role_members *by_all (const struct role_members *roles, size_t n)
{
    const struct role_members *last = NULL;

    for (size_t i = 0; i < n; i++)
        if (is_worker (&roles[i])) {
            if (members_succeeded (&roles[i]) < roles[i].count)
                return NULL;
            last = &roles[i];
        }
    return last;
}

static const struct role_members *who_succeeded (const struct role_members *roles, size_t n,
                                                 enum success_policy success,
                                                 enum condition_reason *reason)
{
    if (success == SUCCESS_ANY) {
        *reason = REASON_ANY_WORKER_SUCCEEDED;
        return by_any (roles, n);
    }
    *reason = REASON_CHIEF_SUCCEEDED;
    if (success == SUCCESS_CHIEF || has_chief (roles, n))
        return by_chief (roles, n);
    if (success == SUCCESS_DEFAULT)
        return by_first (roles, n);
    *reason = REASON_ALL_WORKERS_SUCCEEDED;
    return by_all (roles, n);
}

/* ---- the verdict ---- */

static struct verdict verdict_of (enum life_event_kind kind, enum condition_reason reason,
                                  const struct role_members *r)
{
    return (struct verdict){ kind, reason, r ? r->name : NULL, r ? r->status : 0 };
}

static bool fails_for_good (const struct role_members *r)
{
    return r->failed > 0 && !role_begins_again (r->restart, r->ranges, r->status);
}

static bool role_has_ended (const struct role_members *r)
{
    return r->failed > 0 || (r->restart == RESTART_ALWAYS && r->succeeded > 0);
}

struct verdict job_judge (const struct role_members *roles, size_t n, enum success_policy success)
{
    enum condition_reason reason;
    const struct role_members *r = who_succeeded (roles, n, success, &reason);

    if (r)
        return verdict_of (LIFE_SUCCEEDED, reason, r);
    for (size_t i = 0; i < n; i++)
        if (fails_for_good (&roles[i]))
            return verdict_of (LIFE_FAILED, REASON_ROLE_FAILED, &roles[i]);
    for (size_t i = 0; i < n; i++)
        if (role_has_ended (&roles[i]))
            return verdict_of (LIFE_BROKEN, REASON_RANK_DIED, &roles[i]);
    return verdict_of (LIFE_STARTED, REASON_ATTEMPT_STARTED, NULL);
}

/* ---- a failed attempt ---- */

enum condition_reason job_gives_up (const struct experiment *e, const struct job_failure *f)
{
    const struct job_settings *j = e->job;

    if (f->free)
        return REASON_NONE;
    if (j->nroles == 0 && !role_begins_again (j->restart, j->ranges, f->status))
        return REASON_ROLE_FAILED;
    if (f->progress)
        return REASON_NONE;
    if (f->alike >= FAULT_LIMIT)
        return REASON_SAME_CAUSE;
    return f->before >= e->failures->max_restarts ? REASON_BACKOFF_LIMIT_EXCEEDED : REASON_NONE;
}

double job_deadline (const struct sweep *s, const struct sweep_trial *t)
{
    const struct condition_entry *suspended = &t->conditions.list[CONDITION_SUSPENDED];
    double start =
        suspended->reason != REASON_NONE && !suspended->is_true ? suspended->time : t->begin_time;

    return s->exp->job->deadline > 0 ? start + s->exp->job->deadline : 0;
}
