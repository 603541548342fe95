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

struct life_event {
    enum life_event_kind kind;
    double time;         /* s since the epoch */
    const char *reason;  /* a word of condition_reasons, not copied */
    const char *message; /* for people, or NULL */
};

struct condition_entry {
    double time; /* of the last change, in s since the epoch */
    bool is_true;
    const char *reason;
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

/* The reasons for which a condition can be true: a word for programs and a text for people.  The
 * table ends with .word NULL.
 */
struct condition_reason {
    const char *word; /* "NodeLost" */
    const char *text;
};
extern const struct condition_reason condition_reasons[];

/* The table's own copy of 'word', or 'otherwise' if the table does not have it. */
const char *condition_reason (const char *word, const char *otherwise);

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
