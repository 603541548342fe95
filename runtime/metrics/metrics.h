/* SPDX-License-Identifier: Apache-2.0 */
/* Logged values on their way to the file. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "runtime/metrics/file.h"
#include "runtime/metrics/ring.h"
#include "runtime/run/retain.h"
#include "runtime/slurmdl.h"

/* This folder: queue.c accepts logged values, recorder.c writes them into a file with file.c,
 * metrics.c opens and closes both, and table.c reads the file.
 */

enum {
    HASH_SIZE = 4096, /* > 2 * NAMES_MAX */
    BATCH = 16384,    /* rows written at once */
    GROUP = 64,       /* records */
    RECORD_MAX = 16 << 20,
    RECORDS_MAX = 64 << 20, /* bytes in the queue */
};

/* In the name of a row, or as the step of a record: the writer fills in the step of the last row.
 */
enum { STEP_OF_LAST = 1u << 31 };
#define NO_STEP INT64_MIN

struct slurmdl_metric {
    struct slurmdl_metrics *metrics; /* NULL: a rank that does not write */
    struct retention *scored;        /* NULL: no checkpoint is kept for this metric */
    uint32_t index;
};

/* A record in the queue, followed by its data. */
struct item {
    struct item *next;
    struct record record;
    _Alignas(16) char data[];
};

static inline size_t item_size (const struct item *item)
{
    return sizeof (*item) + item->record.bytes;
}

struct slurmdl_metrics {
    struct ring ring;
    _Alignas(CACHE_LINE) atomic_uint idle; /* the writer waits for a row */
    unsigned generation;                   /* of fork(): a child has no writer */

    /* names; an entry of the table never changes */
    pthread_mutex_t lock; /* to add one */
    char (*names)[NAME_SIZE];
    struct slurmdl_metric *metrics;
    struct retention *retention;
    atomic_uint nnames;
    _Atomic uint16_t hash[HASH_SIZE]; /* index in names + 1 */

    _Atomic (struct item *) items; /* newest first */
    atomic_size_t waiting;         /* bytes of these and of 'pending' */

    /* between the writer and other threads */
    atomic_uint wakeups;  /* a futex: incremented when there is something to do */
    atomic_uint asked;    /* flushes requested ... */
    atomic_uint answered; /* ... and completed */
    atomic_uint ended;    /* the writer has ended */
    atomic_bool closing;
    atomic_ulong written; /* rows */
    atomic_int named;     /* number in the name of the file, plus one; 0: no name yet */
    atomic_uint room;     /* changes when rows are removed from the ring */
    atomic_uint waiters;  /* for that */
    atomic_ulong stalled; /* the head of the ring when a wait failed */
    atomic_long lost;
    atomic_int error;     /* errno of the last write, 0: it succeeded */
    atomic_uint troubles; /* problems to report ... */
    atomic_uint told;     /* ... and those reported */

    /* only the writer uses these */
    pthread_t writer;
    struct metrics_file file;
    struct row *rows; /* to write next */
    size_t nrows;
    struct item *pending; /* likewise, oldest first */
    int64_t last_step;
    long lost_noted;
    long pause; /* ms, after a failure */
    struct timespec synced;
};

/* queue.c: what any thread may call */

/* Make this process, without its children, the user of the metrics; whether it is the user; return
 * -1 with EPERM because it is not.
 */
void metrics_adopt (struct slurmdl_metrics *m);
bool metrics_ours (const struct slurmdl_metrics *m);
int metrics_not_ours (struct slurmdl_error *err);

void metrics_lose (struct slurmdl_metrics *m, long n);

/* Wake the thread that writes. */
void metrics_wake (struct slurmdl_metrics *m);

/* Find or add a metric.  Returns NULL with EINVAL, ENOSPC or EPERM. */
struct slurmdl_metric *metrics_name (struct slurmdl_metrics *m, const char *name);

/* As slurmdl_epoch(). */
int metrics_epoch (struct slurmdl_metrics *m, double epoch);

/* Allocate a record with room for its data (NULL with errno); then queue it. */
struct item *item_create (struct slurmdl_metrics *m, const char *name, int64_t step,
                          enum slurmdl_kind kind, size_t size);
void item_put (struct slurmdl_metrics *m, struct item *item);

/* records.c */
int metrics_event (struct slurmdl_metrics *m, const char *kind, int64_t step, const char *json);

/* recorder.c: start the writer; wait at most 'ms' until it has ended. */
int recorder_start (struct slurmdl_metrics *m);
bool recorder_join (struct slurmdl_metrics *m, long ms);

/* metrics.c: create a file in 'dir'; 'folder' is the open directory, or -1; 'retention' may be
 * NULL.
 */
struct metrics_file_about metrics_about (const char *experiment, long trial, long attempt);
struct slurmdl_metrics *metrics_create (const char *dir, int folder,
                                        const struct metrics_file_about *about,
                                        struct retention *retention, struct slurmdl_error *err);

/* The two halves of slurmdl_metrics_flush(). */
unsigned metrics_flush_begin (struct slurmdl_metrics *m);
int metrics_flush_end (struct slurmdl_metrics *m, unsigned ticket, struct slurmdl_error *err);

/* Whether this is the name of the file, which may have none yet. */
bool metrics_has_name (const struct slurmdl_metrics *m, const char *name);

/* As metrics_create(), for a future attempt of this experiment: an empty file in 'dir' with this
 * hidden name, until metrics_move().
 */
struct slurmdl_metrics *metrics_spare (const char *dir, const char *name,
                                       const struct metrics_file_about *about);

/* Move them to the directory of an attempt, which must have no metrics.h5.  Returns -1 with errno
 * if they cannot be used.
 */
int metrics_move (struct slurmdl_metrics *m, const char *dir, int folder,
                  const struct metrics_file_about *about);

/* Destroy them and remove their file, in which nothing was logged. */
void metrics_discard (struct slurmdl_metrics *m);

/* Log the event "resumed": the run was restored to this step.  NULL is accepted. */
void metrics_resumed (struct slurmdl_metrics *m, int64_t step);

/* Log the event 'what', "saved" or "restored", at the end of a call for which the program waited so
 * many seconds.  Does nothing if 'm' is NULL.
 */
void metrics_took (struct slurmdl_metrics *m, const char *what, int64_t step, double seconds);
