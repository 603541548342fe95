/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of a job, a trial or a step of a flow: one state machine. */
#include "launcher/sweep/conditions.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"

const char *const condition_names[LIFE_CONDITIONS] = {
    "Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed",
};

const char *const life_event_names[LIFE_EVENTS] = {
    "created", "started", "broken", "suspended", "resumed", "succeeded", "failed", "revived",
};

#define IN(name) (1u << CONDITION_##name)
#define NOT_YET  (1u << LIFE_CONDITIONS)
#define ALIVE    (IN (CREATED) | IN (RUNNING) | IN (RESTARTING))
#define OPEN     (ALIVE | IN (SUSPENDED))
#define ENDED    (IN (SUCCEEDED) | IN (FAILED))

/* A suspended object can still succeed or fail, because its processes may have been ending just
 * then.
 */
/* clang-format off */
const struct condition_change condition_changes[] = {
    { LIFE_CREATED,   NOT_YET,        CONDITION_CREATED },
    { LIFE_STARTED,   ALIVE,          CONDITION_RUNNING },
    { LIFE_BROKEN,    ALIVE,          CONDITION_RESTARTING },
    { LIFE_SUSPENDED, OPEN,           CONDITION_SUSPENDED },
    { LIFE_RESUMED,   IN (SUSPENDED), CONDITION_CREATED },
    { LIFE_SUCCEEDED, OPEN,           CONDITION_SUCCEEDED },
    { LIFE_FAILED,    OPEN,           CONDITION_FAILED },
    { LIFE_REVIVED,   ENDED,          CONDITION_RESTARTING },
    { 0, 0, 0 },
};
/* clang-format on */

/* clang-format off */
const struct condition_reason_row condition_reasons[CONDITION_REASONS] = {
    [REASON_CREATED]                = { "Created",              "it waits for its processes to start" },
    [REASON_ATTEMPT_STARTED]        = { "AttemptStarted",       "its processes have started" },
    [REASON_ATTEMPT_FAILED]         = { "AttemptFailed",        "the program failed" },
    [REASON_RANK_DIED]              = { "RankDied",             "one process of several failed" },
    [REASON_RANK_STOPPED]           = { "RankStopped",          "one process of several was stopped (SIGSTOP)" },
    [REASON_HANG]                   = { "Hang",                 "no process makes progress" },
    [REASON_NODE_LOST]              = { "NodeLost",             "a node stopped answering" },
    [REASON_CHECK_FAILED]           = { "CheckFailed",          "a node failed its check" },
    [REASON_OUT_OF_MEMORY]          = { "OutOfMemory",          "it ran out of memory" },
    [REASON_OUT_OF_GPU_MEMORY]      = { "OutOfGpuMemory",       "its GPU ran out of memory" },
    [REASON_TIME_LIMIT]             = { "TimeLimit",            "it reached the time limit of its job" },
    [REASON_METRIC_MISSING]         = { "MetricMissing",        "it ended without logging the metric" },
    [REASON_WORKER_LOST]            = { "WorkerLost",           "its worker is gone" },
    [REASON_PARKED]                 = { "Parked",               "it was asked to stop: preempted, out of time, or its job was requeued" },
    [REASON_IDLE_GPUS]              = { "IdleGpus",             "it was asked to stop because all its GPUs were idle for too long" },
    [REASON_RUNG_REACHED]           = { "RungReached",          "it has a result, and may be promoted" },
    [REASON_PROMOTED]               = { "Promoted",             "it continues to train" },
    [REASON_EXPERIMENT_PAUSED]      = { "ExperimentPaused",     "dl pause, or a fault, paused the experiment" },
    [REASON_EXPERIMENT_RESUMED]     = { "ExperimentResumed",    "dl resume resumed the experiment" },
    [REASON_EXPERIMENT_STOPPED]     = { "ExperimentStopped",    "dl stop or dl kill ended the experiment" },
    [REASON_EXPERIMENT_ENDED]       = { "ExperimentEnded",      "the search ended before the trial did" },
    [REASON_TRAINING_COMPLETED]     = { "TrainingCompleted",    "it has trained to its length, or stopped by itself" },
    [REASON_STOPPED_EARLY]          = { "StoppedEarly",         "the searcher ended it; its result counts" },
    [REASON_SEARCH_ENDED]           = { "SearchEnded",          "it has a result, and the search ended" },
    [REASON_CHIEF_SUCCEEDED]        = { "ChiefSucceeded",       "the chief, or else the first worker, has succeeded" },
    [REASON_ALL_WORKERS_SUCCEEDED]  = { "AllWorkersSucceeded",  "all members of the roles that count have succeeded" },
    [REASON_ANY_WORKER_SUCCEEDED]   = { "AnyWorkerSucceeded",   "one of the members that count has succeeded" },
    [REASON_POINT_REJECTED]         = { "PointRejected",        "its program rejected the point as invalid" },
    [REASON_GIVEN_UP]               = { "GivenUp",              "it failed too often without progress, or for good" },
    [REASON_ROLE_FAILED]            = { "RoleFailed",           "a member failed, and its role is not restarted" },
    [REASON_BACKOFF_LIMIT_EXCEEDED] = { "BackoffLimitExceeded", "it was restarted too often without progress" },
    [REASON_DEADLINE_EXCEEDED]      = { "DeadlineExceeded",     "it was active for too long" },
    [REASON_SAME_CAUSE]             = { "SameCause",            "it failed in the same way several times without progress" },
    [REASON_RETRIED]                = { "Retried",              "dl retry restarted it" },
    [REASON_CONTINUED]              = { "Continued",            "dl continue restarted it" },
    [REASON_STEP_COMPLETED]         = { "StepCompleted",        "all its tasks have a result" },
    [REASON_STEP_CACHED]            = { "StepCached",           "its results come from an earlier flow" },
    [REASON_STEP_SKIPPED]           = { "StepSkipped",          "its condition is false, or a step before it was skipped" },
    [REASON_STEP_BEFORE_FAILED]     = { "StepBeforeFailed",     "a step that it waits for has failed" },
    [REASON_FLOW_STOPPED]           = { "FlowStopped",          "dl flow stop suspended it" },
    [REASON_FLOW_RESUMED]           = { "FlowResumed",          "dl flow resume restarted it" },
};
/* clang-format on */

enum condition_reason condition_reason_read (const char *word)
{
    for (int i = REASON_NONE + 1; word && i < CONDITION_REASONS; i++)
        if (!strcmp (condition_reasons[i].word, word))
            return (enum condition_reason)i;
    return REASON_NONE;
}

const char *condition_reason_word (enum condition_reason reason)
{
    return reason == REASON_NONE ? NULL : condition_reasons[reason].word;
}

enum life_condition condition_after (enum life_condition from, enum life_event_kind kind)
{
    for (const struct condition_change *c = condition_changes; c->from; c++)
        if (c->kind == kind && (c->from >> from & 1))
            return c->to;
    return LIFE_CONDITIONS;
}

static void set_condition (struct conditions *c, enum life_condition which,
                           const struct life_event *e)
{
    struct condition_entry *entry = &c->list[which];

    if (which == CONDITION_RESTARTING && !entry->is_true) {
        free (c->restarted.message);
        c->restarted = *entry;
        entry->message = NULL;
    }
    entry->is_true = true;
    entry->time = e->time;
    entry->reason = e->reason;
    free (entry->message);
    entry->message = xstrdup (e->message);
}

/* A final failure consists of two events with the same time: the attempt broke, and the trial
 * failed.  So nothing was restarted.
 */
static bool never_restarted (const struct conditions *c, enum life_condition to, double time)
{
    return c->last == CONDITION_RESTARTING && to != CONDITION_RUNNING
           && c->list[CONDITION_RESTARTING].time == time;
}

/* The entry gets the time of the change, but keeps the reason why it was true. */
static void unset_condition (struct conditions *c, enum life_condition to, double time)
{
    struct condition_entry *entry = &c->list[c->last];

    if (never_restarted (c, to, time)) {
        free (entry->message);
        *entry = c->restarted;
        c->restarted = (struct condition_entry){ .message = NULL };
        return;
    }
    entry->is_true = false;
    entry->time = time;
}

bool conditions_apply (struct conditions *c, const struct life_event *e)
{
    enum life_condition to = condition_after (c->is_there ? c->last : LIFE_CONDITIONS, e->kind);

    if (to == LIFE_CONDITIONS)
        return false;
    if (c->is_there && to == c->last && c->list[to].reason == e->reason)
        return false;
    if (c->is_there && c->last != CONDITION_CREATED && c->last != to)
        unset_condition (c, to, e->time);
    /* a resume returns to Created; keep the time and reason of the creation */
    if (to != CONDITION_CREATED || !c->is_there)
        set_condition (c, to, e);
    c->is_there = true;
    c->last = to;
    return true;
}

void conditions_free (struct conditions *c)
{
    for (int i = 0; i < LIFE_CONDITIONS; i++)
        free (c->list[i].message);
    free (c->restarted.message);
    *c = (struct conditions){ .is_there = false };
}

static bool ever_was (const struct condition_entry *entry)
{
    return entry->is_true || entry->reason != REASON_NONE;
}

/* Order by time; at the same time, put a condition that is still true last. */
static bool is_before (const struct conditions *c, enum life_condition a, enum life_condition b)
{
    if (c->list[a].time != c->list[b].time)
        return c->list[a].time < c->list[b].time;
    return c->list[a].is_true == c->list[b].is_true ? a < b : c->list[b].is_true;
}

int conditions_order (const struct conditions *c, enum life_condition order[LIFE_CONDITIONS])
{
    int n = 0;

    for (int i = 0; i < LIFE_CONDITIONS; i++) {
        int at = n;
        if (!ever_was (&c->list[i]))
            continue;
        while (at > 0 && is_before (c, (enum life_condition)i, order[at - 1])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = (enum life_condition)i;
        n++;
    }
    return n;
}

json_t *conditions_json (const struct conditions *c)
{
    enum life_condition order[LIFE_CONDITIONS];
    int n = conditions_order (c, order);
    json_t *list = json_array ();

    for (int i = 0; i < n; i++) {
        const struct condition_entry *e = &c->list[order[i]];
        json_t *o = json_pack ("{s:s, s:b, s:f, s:s}", "type", condition_names[order[i]], "status",
                               e->is_true, "time", e->time, "reason",
                               condition_reason_word (e->reason) ?: "");
        if (e->message)
            json_object_set_new (o, "message", json_string (e->message));
        json_array_append_new (list, o);
    }
    return list;
}
