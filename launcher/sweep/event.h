/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the decision log, and their two forms: JSON and packed. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_op {
    EVENT_CREATE,
    EVENT_BEGIN,
    EVENT_REPORT,
    EVENT_RESULT,
    EVENT_FAIL,
    EVENT_LOST,
    EVENT_PARK,
    EVENT_REJECT,
    EVENT_EXIT,
    EVENT_PAUSE,
    EVENT_RESUME,
    EVENT_STOP,
    EVENT_KILL,
    EVENT_CONTINUE,
    EVENT_RETRY,
    EVENT_EXPIRE,
    EVENT_END,
    EVENT_SUBMIT,
    EVENT_SCALE,
    EVENT_EXCLUDE,
    EVENT_LABEL,
    EVENT_ARCHIVE,
    EVENT_START, /* of a flow: a step is about to be submitted */
    EVENT_DONE,  /* of a flow: a task has its result */
    EVENT_OPS,
};

/* One event.  Only the members of its kind count (event.c has the table, doc/formats.md their
 * meaning); the others are 0 or NULL.  All pointers are borrowed: in an event that was read they
 * are valid until the function that received it returns.
 */
struct event {
    enum event_op op;
    double time;    /* s since the epoch on its writer's clock, for people */
    const char *by; /* worker or user */
    int64_t trial;
    int64_t attempt;
    int64_t length;
    double metric;
    double *metrics; /* of several metrics all */
    size_t nmetrics;
    double seconds;
    bool stopped;
    int64_t ended;
    bool free;     /* the attempt does not count towards max_restarts */
    bool progress; /* nor do those before it: it got further than they did */
    const char *why;
    const char *cause; /* the same as a word (conditions.h), or NULL */
    const char *host;
    const char *gpus;
    const char *owner; /* nonce of the worker that claimed the attempt */
    double *x;
    size_t nx;
    json_t *hparams; /* of x, for people; not read back */
    int64_t memory;  /* bytes that a trial gets from now on; bytes of a job */
    int64_t from;
    int64_t from_length;
    const char *state;
    int64_t version;
    const char *name;
    const char *dir;
    int64_t seed;
    json_t *json;           /* of "create" the known points, of "done" what the task left */
    const char *id;         /* of the experiment, random */
    const char *digest;     /* of its experiment.conf */
    const char *code;       /* of its frozen code, ... */
    const char *root;       /* ... the folder that it was, ... */
    const char *provenance; /* ... and of its provenance.json */
    const char *source;     /* experiment that it is forked from */
    const char *job;
    int64_t first;
    int64_t last;
    int64_t workers;
    const char *slots; /* "JOB_1 JOB_2 ..." */
    int64_t max_trials;
    int64_t max_length;
    const char *label;
    bool off;
    const char *step; /* of a flow, with the number of its task, ... */
    int64_t task;
    int64_t start;      /* ... and the number of the start that it belongs to */
    const char *mode;   /* what that submits: "step", "submit", "next", or "local" */
    int64_t pid, began; /* its process, and when that began (process_id.h) */
    const char *jobs;   /* "12 13": for which it waits */
    int64_t status;     /* as of a shell */
};

/* What came of appending an entry of events to the log. */
enum published {
    PUBLISH_FAILED = -1, /* errno says why */
    PUBLISH_DONE,
    PUBLISH_LATE, /* another process was faster */
};

/* The word of a kind of event in the log, as "begin". */
const char *event_name (enum event_op op);

/* The present time as events have it, in milliseconds: whole seconds would let a search of a few
 * seconds go on for one more.
 */
double event_clock (void);

/* The event 'e' with the present time. */
struct event event_now (struct event e);

/* JSON of an event; NULL if out of memory. */
json_t *event_json (const struct event *e);

/* Read 'json' into an event; release it with event_free().  Returns -1 with errno EINVAL if this
 * version does not know the event.
 */
int event_read (const json_t *json, struct event *e);
void event_free (struct event *e);

/* The name of a member that must not reach a command or a path: a job that is no job ID, a node,
 * worker or slot with characters that names do not have.  NULL: all are fine.
 */
const char *event_unfit (const struct event *e);

/* ---- packed ---- */

/* Bytes of several events, each aligned to 8; host's byte order. */
struct packed {
    char *data;
    size_t size;
    size_t capacity;
};

/* Append an event. */
void event_pack (struct packed *p, const struct event *e);
void packed_free (struct packed *p);

enum unpacked {
    UNPACK_INVALID = -1, /* the bytes are no event; errno EINVAL */
    UNPACK_END,
    UNPACK_EVENT,
};

/* Read the event at *at and advance *at.  Pointers lead into 'data', except 'json', which the
 * caller releases with json_decref().
 */
enum unpacked event_unpack (const char *data, size_t size, size_t *at, struct event *e);

/* Changes whenever packed events of another version must not be read. */
uint64_t event_layout (void);
