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

/* In the order in which they usually occur. */
/* clang-format off */
const struct condition_reason condition_reasons[] = {
    { "Created",              "it exists, and waits for its processes" },
    { "AttemptStarted",       "its processes have started" },
    { "AttemptFailed",        "the program failed" },
    { "RankDied",             "one process of several failed" },
    { "RankStopped",          "one process of several was stopped (SIGSTOP)" },
    { "Hang",                 "no process makes progress any more" },
    { "NodeLost",             "a node does not answer any more" },
    { "CheckFailed",          "a node failed its check" },
    { "OutOfMemory",          "it ran out of memory" },
    { "WorkerLost",           "its worker is gone" },
    { "Parked",               "it was asked to end: preempted, out of time, or its job was requeued" },
    { "IdleGpus",             "it was asked to end: none of its GPUs had work for too long" },
    { "RungReached",          "it has a result, and may be promoted" },
    { "Promoted",             "it continues to train" },
    { "ExperimentPaused",     "dl pause, or a fault, paused the experiment" },
    { "ExperimentResumed",    "dl resume resumed the experiment" },
    { "ExperimentStopped",    "dl stop or dl kill ended the experiment" },
    { "ExperimentEnded",      "the search ended before the trial did" },
    { "TrainingCompleted",    "it has trained to its length, or ended by itself" },
    { "StoppedEarly",         "the searcher ended it; its result counts" },
    { "SearchEnded",          "it has a result, and the search ended" },
    { "ChiefSucceeded",       "the role that decides has succeeded" },
    { "AllWorkersSucceeded",  "all members of the roles that count have succeeded" },
    { "AnyWorkerSucceeded",   "one of the members that count has succeeded" },
    { "PointRejected",        "its program said that the point is invalid" },
    { "GivenUp",              "it failed too often without progress, or for good" },
    { "RoleFailed",           "a member failed whose role is not restarted" },
    { "BackoffLimitExceeded", "it was restarted too often without progress" },
    { "DeadlineExceeded",     "it was active for too long" },
    { "SameCause",            "it failed in the same way several times without progress" },
    { "Retried",              "dl retry restarted it" },
    { "Continued",            "dl continue restarted it" },
    { "StepCompleted",        "all its tasks have a result" },
    { "StepCached",           "its results are those of an earlier flow" },
    { "StepSkipped",          "its condition is false, or a step before it was skipped" },
    { "StepBeforeFailed",     "a step that it waits for has failed" },
    { "FlowStopped",          "dl flow stop suspended it" },
    { "FlowResumed",          "dl flow resume restarted it" },
    { NULL, NULL },
};
/* clang-format on */

const char *condition_reason (const char *word, const char *otherwise)
{
    for (const struct condition_reason *r = condition_reasons; word && r->word; r++)
        if (!strcmp (r->word, word))
            return r->word;
    return otherwise;
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

static bool same_reason (const char *a, const char *b)
{
    return a == b || (a && b && !strcmp (a, b));
}

bool conditions_apply (struct conditions *c, const struct life_event *e)
{
    enum life_condition to = condition_after (c->is_there ? c->last : LIFE_CONDITIONS, e->kind);

    if (to == LIFE_CONDITIONS)
        return false;
    if (c->is_there && to == c->last && same_reason (c->list[to].reason, e->reason))
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
    return entry->is_true || entry->reason;
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
                               e->is_true, "time", e->time, "reason", e->reason ? e->reason : "");
        if (e->message)
            json_object_set_new (o, "message", json_string (e->message));
        json_array_append_new (list, o);
    }
    return list;
}
