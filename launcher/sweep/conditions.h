/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of a job, a trial or a step of a flow: one state machine.
 *
 * It is a pure function of events and reads neither files nor the clock.  The caller passes the
 * time of each event.  The conditions and their rules are those of Kubeflow's operators:
 *  - Created stays true.
 *  - At most one of Running, Restarting, Suspended, Succeeded and Failed is true.  An earlier one
 *    becomes false; it keeps its reason, and its time becomes that of the change.
 *  - Succeeded and Failed are final unless the object is revived.
 *  - An event that would set a condition that is already true, with the same reason, has no effect.
 *  - If Restarting ends at the very time it began, and not because of a start, it is undone: the
 *    failure was the last one, and no restart followed.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum life_condition {
    CONDITION_CREATED,
    CONDITION_RUNNING,    /* its processes run */
    CONDITION_RESTARTING, /* its processes ended, and will be started again */
    CONDITION_SUSPENDED,  /* its processes ended, and will not start until somebody resumes it */
    CONDITION_SUCCEEDED,
    CONDITION_FAILED,
    LIFE_CONDITIONS,
};

enum life_event_kind {
    LIFE_CREATED,
    LIFE_STARTED,   /* its processes started */
    LIFE_BROKEN,    /* its processes ended, and others will follow */
    LIFE_SUSPENDED, /* no processes may start for now */
    LIFE_RESUMED,   /* processes may start again */
    LIFE_SUCCEEDED,
    LIFE_FAILED,
    LIFE_REVIVED, /* it had ended, and starts again */
    LIFE_EVENTS,
};

/* Why a condition is true, in the order in which the reasons usually occur. */
enum condition_reason {
    REASON_NONE,
    REASON_CREATED,
    REASON_ATTEMPT_STARTED,
    REASON_ATTEMPT_FAILED,
    REASON_RANK_DIED,
    REASON_RANK_STOPPED,
    REASON_HANG,
    REASON_NODE_LOST,
    REASON_CHECK_FAILED,
    REASON_OUT_OF_MEMORY,
    REASON_OUT_OF_GPU_MEMORY,
    REASON_TIME_LIMIT,
    REASON_METRIC_MISSING,
    REASON_WORKER_LOST,
    REASON_PARKED,
    REASON_IDLE_GPUS,
    REASON_RUNG_REACHED,
    REASON_PROMOTED,
    REASON_EXPERIMENT_PAUSED,
    REASON_EXPERIMENT_RESUMED,
    REASON_EXPERIMENT_STOPPED,
    REASON_EXPERIMENT_ENDED,
    REASON_TRAINING_COMPLETED,
    REASON_STOPPED_EARLY,
    REASON_SEARCH_ENDED,
    REASON_CHIEF_SUCCEEDED,
    REASON_ALL_WORKERS_SUCCEEDED,
    REASON_ANY_WORKER_SUCCEEDED,
    REASON_POINT_REJECTED,
    REASON_GIVEN_UP,
    REASON_ROLE_FAILED,
    REASON_BACKOFF_LIMIT_EXCEEDED,
    REASON_DEADLINE_EXCEEDED,
    REASON_SAME_CAUSE,
    REASON_RETRIED,
    REASON_CONTINUED,
    REASON_STEP_COMPLETED,
    REASON_STEP_CACHED,
    REASON_STEP_SKIPPED,
    REASON_STEP_BEFORE_FAILED,
    REASON_FLOW_STOPPED,
    REASON_FLOW_RESUMED,
    CONDITION_REASONS,
};

struct life_event {
    enum life_event_kind kind;
    double time; /* s since the epoch */
    enum condition_reason reason;
    const char *message; /* for people, or NULL */
};

struct condition_entry {
    double time; /* of the last change, in s since the epoch */
    bool is_true;
    enum condition_reason reason;
    char *message; /* or NULL */
};

struct conditions {
    bool is_there;                    /* LIFE_CREATED was applied */
    enum life_condition last;         /* the most specific condition that is true */
    struct condition_entry restarted; /* Restarting before it last became true */
    struct condition_entry list[LIFE_CONDITIONS];
};

/* A row of the table of transitions: the event 'kind' leads from any of the conditions in 'from', a
 * mask of 1 << condition, to 'to'.  An event without a matching row changes nothing.
 */
struct condition_change {
    enum life_event_kind kind;
    unsigned from;
    enum life_condition to;
};
extern const struct condition_change condition_changes[]; /* ends with .from 0 */

/* A word for programs, which the log has, and a text for people; of REASON_NONE both are NULL. */
struct condition_reason_row {
    const char *word; /* "NodeLost" */
    const char *text;
};
extern const struct condition_reason_row condition_reasons[CONDITION_REASONS];

/* The reason that has this word; REASON_NONE: none has, or it is NULL. */
enum condition_reason condition_reason_read (const char *word);

/* Its word; NULL for REASON_NONE. */
const char *condition_reason_word (enum condition_reason reason);

/* "Created", "Running" ...; "created", "started" ... */
extern const char *const condition_names[LIFE_CONDITIONS];
extern const char *const life_event_names[LIFE_EVENTS];

/* The condition to which an event leads; LIFE_CONDITIONS: the event changes nothing.  Pass 'from'
 * LIFE_CONDITIONS if nothing was created yet.
 */
enum life_condition condition_after (enum life_condition from, enum life_event_kind kind);

/* Apply an event, and return whether it changed anything.  Start with a struct of zero bytes. */
bool conditions_apply (struct conditions *c, const struct life_event *e);
void conditions_free (struct conditions *c);

/* Return [{"type": "Running", "status": true, "time": 1.5, "reason": ..., "message": ...}, ...],
 * with the conditions that are or were true, ordered by time.
 */
json_t *conditions_json (const struct conditions *c);

/* Fill 'order' with the same conditions in the same order, and return how many there are. */
int conditions_order (const struct conditions *c, enum life_condition order[LIFE_CONDITIONS]);
