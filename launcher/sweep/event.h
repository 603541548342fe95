/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the decision log and their two encodings, JSON and packed. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/sweep/conditions.h"

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
    EVENT_START, /* flows only: a step is about to be submitted */
    EVENT_DONE,  /* flows only: a task has its result */
    EVENT_OPS,
};

/* One event.  Each kind uses some of the members; the others are 0 or NULL.  The table in event.c
 * says which, and doc/formats.md explains them.  All pointers are borrowed.  A log_event_f may use
 * them only until it returns.
 */
struct event {
    enum event_op op;
    double time;    /* s since the epoch, by the writer's clock */
    const char *by; /* worker or user */
    int64_t trial;
    int64_t attempt;
    int64_t length;
    double metric;
    double *metrics; /* all of them, if there are several */
    size_t nmetrics;
    double seconds;
    bool stopped;
    int64_t ended;
    bool free;     /* the attempt does not count towards max_restarts */
    bool progress; /* it got further than the failed attempts before it, which no longer count */
    const char *why;
    enum condition_reason cause; /* the class of 'why' */
    const char *host;
    const char *gpus;
    const char *owner; /* nonce of the worker that claimed the attempt */
    double *x;
    size_t nx;
    json_t *hparams; /* the hyperparameters of x, for people; not read back */
    int64_t memory;  /* bytes that a trial gets from now on, or that a job has */
    int64_t from;
    int64_t from_length;
    const char *state;
    int64_t version;
    const char *name;
    const char *dir;
    int64_t seed;
    json_t *json;           /* the known points ("create"), or the task's result ("done") */
    const char *id;         /* of the experiment; random */
    const char *digest;     /* of experiment.conf */
    const char *code;       /* digest of the frozen code */
    const char *root;       /* the folder that was frozen */
    const char *provenance; /* digest of provenance.json */
    const char *source;     /* the experiment from which this one was forked */
    const char *job;
    int64_t first;
    int64_t last;
    int64_t workers;
    const char *slots; /* "JOB_1 JOB_2 ..." */
    int64_t max_trials;
    int64_t max_length;
    const char *label;
    bool off;
    const char *step;   /* of a flow */
    int64_t task;       /* number of the task in the step */
    int64_t start;      /* number of the start to which the event belongs */
    const char *mode;   /* what the start submits: "step", "submit", "next" or "local" */
    int64_t pid, began; /* the process, and when it began (process_id.h) */
    const char *jobs;   /* the jobs that the start waits for: "12 13" */
    int64_t status;     /* exit status, as in a shell */
};

/* The outcome of appending an entry to the log. */
enum published {
    PUBLISH_FAILED = -1, /* errno says why */
    PUBLISH_DONE,
    PUBLISH_LATE, /* another process wrote this entry first */
};

/* The name of a kind of event in the log, such as "begin". */
const char *event_name (enum event_op op);

/* The current time for an event, in seconds since the epoch with a resolution of 1 ms.  Whole
 * seconds would let a search of a few seconds run for one more.
 */
double event_clock (void);

/* Return 'e' with the current time. */
struct event event_now (struct event e);

/* Return an event as JSON, a new reference. */
json_t *event_json (const struct event *e);

/* Read 'json', which must outlive the event, into 'e'; release it with event_free().  Returns -1
 * with EINVAL if this version does not know the kind of event.
 */
int event_read (const json_t *json, struct event *e);
void event_free (struct event *e);

/* Check the members that dl puts into commands and paths, because others may have written the log:
 * job IDs, digests, and the names of nodes, workers, slots and steps.  Also check that EVENT_CREATE
 * has what it must have.  Returns the name of the first bad member; NULL: all are fine.
 */
const char *event_unfit (const struct event *e);

/* ---- packed ---- */

/* Several packed events in the host's byte order, each aligned to 8 bytes. */
struct packed {
    char *data;
    size_t size;
    size_t capacity;
};

/* Append an event. */
void event_pack (struct packed *p, const struct event *e);
void packed_free (struct packed *p);

enum unpacked {
    UNPACK_INVALID = -1, /* the bytes are not an event; errno is EINVAL */
    UNPACK_END,
    UNPACK_EVENT,
};

/* Read the event at *at and advance *at.  The event's pointers point into 'data', except 'json',
 * which the caller releases with json_decref().
 */
enum unpacked event_unpack (const char *data, size_t size, size_t *at, struct event *e);

/* A hash of the packed layout.  Do not read packed events that were written with another one. */
uint64_t event_layout (void);
