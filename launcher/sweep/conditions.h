/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of a job, a trial or a step of a flow: one state machine.
 *
 * It is a pure function of events: it reads no file and no clock.  Whoever feeds
 * it says when each event was.  Conditions and their rules are those of
 * Kubeflow's operators:
 *  - Created stays true.
 *  - Of Running, Restarting, Suspended, Succeeded and Failed one at most is true;
 *    those that were are false from then on, and keep their time and reason.
 *  - What has succeeded or failed changes only if it is begun again.
 *  - A condition that is true, of the same reason, stays as it is.
 *  - Restarting that ends in the moment it began, other than by a start, never was: the
 *    failure was the last one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum life_condition {
    CONDITION_CREATED,
    CONDITION_RUNNING,    /* its processes run */
    CONDITION_RESTARTING, /* they have ended, and begin again */
    CONDITION_SUSPENDED,  /* they have ended, until somebody resumes it */
    CONDITION_SUCCEEDED,
    CONDITION_FAILED,
    LIFE_CONDITIONS,
};

enum life_event_kind {
    LIFE_CREATED,
    LIFE_STARTED,   /* its processes have begun */
    LIFE_BROKEN,    /* they have ended, and others are to follow */
    LIFE_SUSPENDED, /* it is to have none for now */
    LIFE_RESUMED,   /* it may have some again */
    LIFE_SUCCEEDED,
    LIFE_FAILED,
    LIFE_REVIVED, /* it had ended, and is to begin again */
    LIFE_EVENTS,
};

struct life_event {
    enum life_event_kind kind;
    double time;         /* s since the epoch */
    const char *reason;  /* of condition_reasons: static */
    const char *message; /* for people, or NULL */
};

struct condition_entry {
    double time; /* of its last change */
    bool is_true;
    const char *reason;
    char *message; /* or NULL */
};

struct conditions {
    bool is_there;                    /* it was created */
    enum life_condition last;         /* of the true ones the one that says most */
    struct condition_entry restarted; /* Restarting as it was before it last became true */
    struct condition_entry list[LIFE_CONDITIONS];
};

/* The table of transitions: what leads from one condition (bits of "1 << from")
 * to another.  What no row has changes nothing.
 */
struct condition_change {
    enum life_event_kind kind;
    unsigned from;
    enum life_condition to;
};
extern const struct condition_change condition_changes[]; /* ended by .from 0 */

/* Why a condition is true, for programs, and what that means, for people.  Ended
 * by .word NULL.
 */
struct condition_reason {
    const char *word; /* "NodeLost" */
    const char *text;
};
extern const struct condition_reason condition_reasons[];

/* The word of the table that equals 'word', else 'otherwise'. */
const char *condition_reason (const char *word, const char *otherwise);

/* "Created", "Running" ...; "created", "started" ... */
extern const char *const condition_names[LIFE_CONDITIONS];
extern const char *const life_event_names[LIFE_EVENTS];

/* Where an event leads; LIFE_CONDITIONS: it changes nothing.  'from' LIFE_CONDITIONS: it is
 * not there yet.
 */
enum life_condition condition_after (enum life_condition from, enum life_event_kind kind);

/* Apply an event.  Returns whether it changed something.  All zero bytes are
 * the conditions of what is not there yet.
 */
bool conditions_apply (struct conditions *c, const struct life_event *e);
void conditions_free (struct conditions *c);

/* [{"type": "Running", "status": true, "time": 1.5, "reason": ..., "message":
 * ...}, ...]: those that are or were true, in the order of their times.
 */
json_t *conditions_json (const struct conditions *c);

/* The same order: fill in the indices, and return how many there are. */
int conditions_order (const struct conditions *c, enum life_condition order[LIFE_CONDITIONS]);
