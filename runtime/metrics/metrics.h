/* SPDX-License-Identifier: Apache-2.0 */
/* What is logged, on its way to the file; inside the library only. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "runtime/metrics/file.h"
#include "runtime/metrics/ring.h"
#include "runtime/run/retain.h"
#include "runtime/slurmdl.h"

/* This folder: queue.c takes what is logged, recorder.c writes it by file.c
 * into a file, metrics.c opens and closes both, table.c reads the file.
 */

enum {
    HASH_SIZE = 4096, /* > 2 * NAMES_MAX */
    BATCH = 16384,    /* rows that are written at once */
    GROUP = 64,       /* records */
    RECORD_MAX = 16 << 20,
    RECORDS_MAX = 64 << 20, /* bytes that wait */
};

/* In a row's name, or a record's step: the writer puts the last row's step. */
enum { STEP_OF_LAST = 1u << 31 };
#define NO_STEP INT64_MIN

struct slurmdl_metric {
    struct slurmdl_metrics *metrics; /* NULL: of a rank that does not write */
    struct retention *scored;        /* NULL: decides about no checkpoint */
    uint32_t index;
};

/* A record in the queue; its data follow. */
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
    unsigned generation;                   /* of forks: a child has no writer */

    /* names: one that is in the table never changes */
    pthread_mutex_t lock; /* of those who add one */
    char (*names)[NAME_SIZE];
    struct slurmdl_metric *metrics;
    struct retention *retention;
    atomic_uint nnames;
    _Atomic uint16_t hash[HASH_SIZE]; /* index in names + 1 */

    _Atomic (struct item *) items; /* newest first */
    atomic_size_t waiting;         /* bytes of them and of pending */

    /* between the writer and the others */
    atomic_uint bell;     /* changes: there is something to do */
    atomic_uint asked;    /* flushes that were asked for ... */
    atomic_uint answered; /* ... and answered */
    atomic_uint ended;    /* the writer is no more */
    atomic_bool closing;
    atomic_ulong written; /* rows */
    atomic_int named;     /* the number of the file is one less; 0: no name */
    atomic_uint room;     /* changes: rows were taken out of the ring */
    atomic_uint waiters;  /* for that */
    atomic_ulong stalled; /* the ring's head when waiting was in vain */
    atomic_long lost;
    atomic_int error;     /* errno of the last try to write, 0: it went well */
    atomic_uint troubles; /* things that the user should know ... */
    atomic_uint told;     /* ... and does */

    /* the writer's */
    pthread_t writer;
    struct metrics_file file;
    struct row *rows; /* to be written next */
    size_t nrows;
    struct item *pending; /* likewise, oldest first */
    int64_t last_step;
    long lost_noted;
    long pause; /* ms, after a failure */
    struct timespec synced;
};

/* queue.c: what any thread may call */

/* This process, and no child of it, uses the metrics; whether it does; -1
 * with EPERM, as it does not.
 */
void metrics_adopt (struct slurmdl_metrics *m);
bool metrics_ours (const struct slurmdl_metrics *m);
int metrics_not_ours (struct slurmdl_error *err);

void metrics_lose (struct slurmdl_metrics *m, long n);

/* Wake the thread that writes. */
void metrics_ring (struct slurmdl_metrics *m);

/* NULL with EINVAL, ENOSPC or EPERM */
struct slurmdl_metric *metrics_name (struct slurmdl_metrics *m, const char *name);

/* The same as slurmdl_epoch(). */
int metrics_epoch (struct slurmdl_metrics *m, double epoch);

/* Room for the data of a record, NULL with errno; then queue it. */
struct item *item_create (struct slurmdl_metrics *m, const char *name, int64_t step,
                          enum slurmdl_kind kind, size_t size);
void item_put (struct slurmdl_metrics *m, struct item *item);

/* records.c */
int metrics_event (struct slurmdl_metrics *m, const char *kind, int64_t step, const char *json);

/* recorder.c: the thread that writes; wait until it has ended, at most so
 * long.
 */
int recorder_start (struct slurmdl_metrics *m);
bool recorder_join (struct slurmdl_metrics *m, long ms);

/* metrics.c: a file in 'dir', which may be open as 'folder' (else -1);
 * 'retention' may be NULL.
 */
struct metrics_file_about metrics_about (const char *experiment, long trial, long attempt);
struct slurmdl_metrics *metrics_create (const char *dir, int folder,
                                        const struct metrics_file_about *about,
                                        struct retention *retention, struct slurmdl_error *err);

/* The two halves of slurmdl_metrics_flush(). */
unsigned metrics_flush_begin (struct slurmdl_metrics *m);
int metrics_flush_end (struct slurmdl_metrics *m, unsigned ticket, struct slurmdl_error *err);

/* Whether a name is that of their file, which may have none yet. */
bool metrics_has_name (const struct slurmdl_metrics *m, const char *name);

/* The same for an attempt of this experiment that comes: an empty file, in
 * 'dir' and of this hidden name until then.
 */
struct slurmdl_metrics *metrics_spare (const char *dir, const char *name,
                                       const struct metrics_file_about *about);

/* Have them in this folder, which has no metrics.h5, as those of this attempt;
 * -1 with errno: they are of no use.
 */
int metrics_move (struct slurmdl_metrics *m, const char *dir, int folder,
                  const struct metrics_file_about *about);

/* Destroy them and remove their file: nothing was logged. */
void metrics_discard (struct slurmdl_metrics *m);

/* The run was restored to this step: an event "resumed".  NULL is
 * accepted.
 */
void metrics_resumed (struct slurmdl_metrics *m, int64_t step);

/* Log the event 'what', "saved" or "restored", at the end of a call for which the program waited so
 * many seconds.  Does nothing if 'm' is NULL.
 */
void metrics_took (struct slurmdl_metrics *m, const char *what, int64_t step, double seconds);
