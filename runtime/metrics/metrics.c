/* SPDX-License-Identifier: Apache-2.0 */
/* Open, flush and close a metrics file, and report errors. */
#include "runtime/metrics/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/base/futex.h"
#include "runtime/run/run.h"
#include "runtime/storage/inside.h"

enum {
    FLUSH_MOST = 30000, /* ms that a hanging disk may hold up training */
    CLOSE_MOST = 10000,
};

static void free_metrics (struct slurmdl_metrics *m)
{
    int e = errno;

    ring_close (&m->ring);
    pthread_mutex_destroy (&m->lock);
    free (m->rows);
    free (m->names);
    free (m->metrics);
    free (m);
    errno = e;
}

static struct slurmdl_metrics *allocate_metrics (void)
{
    struct slurmdl_metrics *m = aligned_alloc (CACHE_LINE, sizeof (*m));

    if (!m)
        return NULL;
    memset (m, 0, sizeof (*m));
    pthread_mutex_init (&m->lock, NULL);
    atomic_init (&m->stalled, ULONG_MAX);
    m->names = calloc (NAMES_MAX, sizeof (*m->names));
    m->metrics = calloc (NAMES_MAX, sizeof (*m->metrics));
    m->rows = malloc (BATCH * sizeof (*m->rows));
    if (m->names && m->metrics && m->rows && ring_open (&m->ring) == 0)
        return m;
    free_metrics (m);
    return NULL;
}

struct metrics_file_about metrics_about (const char *experiment, long trial, long attempt)
{
    struct metrics_file_about about = { .trial = trial, .attempt = attempt };

    snprintf (about.experiment, sizeof (about.experiment), "%s", experiment);
    return about;
}

static struct slurmdl_metrics *create_metrics (const char *dir, int folder, const char *held,
                                               const struct metrics_file_about *about,
                                               struct retention *retention,
                                               struct slurmdl_error *err)
{
    struct slurmdl_metrics *m = allocate_metrics ();

    if (!m) {
        errorf (err, "out of memory");
        return NULL;
    }
    metrics_adopt (m);
    m->retention = retention;
    metrics_name (m, "slurmdl");
    if (metrics_file_create (&m->file, dir, folder, held, about, err) == 0) {
        m->file.named = &m->named;
        m->file.held = held;
        if (recorder_start (m) == 0)
            return m;
        errorf (err, "cannot start a thread: %s", strerror (errno));
        metrics_file_close (&m->file);
    }
    free_metrics (m);
    return NULL;
}

struct slurmdl_metrics *metrics_create (const char *dir, int folder,
                                        const struct metrics_file_about *about,
                                        struct retention *retention, struct slurmdl_error *err)
{
    return create_metrics (dir, folder, NULL, about, retention, err);
}

struct slurmdl_metrics *metrics_spare (const char *dir, const char *name,
                                       const struct metrics_file_about *about)
{
    struct slurmdl_metrics *m = create_metrics (dir, -1, name, about, NULL, NULL);

    if (m)
        metrics_flush_begin (m);
    return m;
}

int metrics_move (struct slurmdl_metrics *m, const char *dir, int folder,
                  const struct metrics_file_about *about)
{
    /* after the flush, the thread sleeps until the next request */
    if (metrics_flush_end (m, atomic_load (&m->asked), NULL) < 0)
        return -1;
    return metrics_file_move (&m->file, dir, folder, about);
}

struct slurmdl_metrics *slurmdl_metrics_create (const char *dir, struct slurmdl_error *err)
{
    const struct metrics_file_about about = metrics_about (
        environment_text ("DL_EXPERIMENT", ""), (long)environment_number ("DL_TRIAL", 0),
        (long)environment_number ("DL_ATTEMPT", 0));

    error_clear (err);
    return metrics_create (dir, -1, &about, NULL, err);
}

/* Sets 'name' to "" if the file has no name yet. */
static void own_name (const struct slurmdl_metrics *m, char name[32])
{
    int number = atomic_load (&m->named) - 1;

    *name = '\0';
    if (number >= 0)
        snprintf (name, 32, number ? "metrics.%d.h5" : "metrics.h5", number);
}

bool metrics_has_name (const struct slurmdl_metrics *m, const char *name)
{
    char own[32];

    own_name (m, own);
    return !strcmp (name, own);
}

static long metrics_lost (const struct slurmdl_metrics *m)
{
    return atomic_load (&m->lost);
}

/* Returns -1 and the message for the user, or 0 if nothing is lost. */
static int report_loss (const struct slurmdl_metrics *m, struct slurmdl_error *err)
{
    int e = atomic_load (&m->error);
    long lost = atomic_load (&m->lost);

    errno = e ? e : ENOSPC;
    if (e)
        return errorf (err, "%s: cannot write: %s; %lu metrics wait in memory, %ld are lost",
                       m->file.path,
                       e == ENOENT ? "the file or its folder was removed" : strerror (e),
                       ring_count (&m->ring) - atomic_load (&m->written), lost);
    if (lost)
        return errorf (err, "%s: %ld metrics are lost: the disk was full or did not respond",
                       m->file.path, lost);
    return 0;
}

static int metrics_trouble (struct slurmdl_metrics *m, struct slurmdl_error *err)
{
    unsigned n = atomic_load_explicit (&m->troubles, memory_order_relaxed);

    if (n == atomic_load_explicit (&m->told, memory_order_relaxed)
        || atomic_exchange (&m->told, n) == n || !metrics_ours (m))
        return 0;
    if (report_loss (m, err) == 0)
        errorf (err, "%s: could not be written for a while", m->file.path);
    return 1;
}

static int explain_recorder (const struct slurmdl_metrics *m, struct slurmdl_error *err)
{
    errno = ETIMEDOUT;
    return errorf (err, "%s: the disk does not answer; %lu metrics wait in memory", m->file.path,
                   ring_count (&m->ring) - atomic_load (&m->written));
}

unsigned metrics_flush_begin (struct slurmdl_metrics *m)
{
    unsigned ticket = atomic_fetch_add (&m->asked, 1) + 1;

    metrics_wake (m);
    return ticket;
}

int metrics_flush_end (struct slurmdl_metrics *m, unsigned ticket, struct slurmdl_error *err)
{
    struct timespec begin;
    unsigned done;
    long left;

    clock_gettime (CLOCK_MONOTONIC, &begin);
    while ((int)((done = atomic_load (&m->answered)) - ticket) < 0) {
        if ((left = FLUSH_MOST - elapsed (&begin)) <= 0)
            return explain_recorder (m, err);
        futex_wait (&m->answered, done, left);
    }
    return report_loss (m, err);
}

int slurmdl_metrics_flush (struct slurmdl_metrics *m, struct slurmdl_error *err)
{
    error_clear (err);
    if (!metrics_ours (m))
        return metrics_not_ours (err);
    return metrics_flush_end (m, metrics_flush_begin (m), err);
}

static int end_metrics (struct slurmdl_metrics *m, int remove_in)
{
    char name[32];
    int rv;

    atomic_store (&m->closing, true);
    metrics_wake (m);
    if (!recorder_join (m, CLOSE_MOST)) {
        /* The thread is stuck in a system call and will use the memory afterwards.
         * The run's own memory goes away, so detach from it.
         */
        pthread_mutex_lock (&m->lock);
        m->retention = NULL;
        pthread_mutex_unlock (&m->lock);
        errno = ETIMEDOUT;
        return -1;
    }
    rv = report_loss (m, NULL);
    own_name (m, name);
    if (remove_in >= 0)
        unlinkat (remove_in, *m->file.tmp ? m->file.tmp : name, 0);
    free_metrics (m);
    return rv;
}

int slurmdl_metrics_destroy (struct slurmdl_metrics *m)
{
    /* in a child of fork(), leave everything alone: it belongs to the parent too */
    return m && metrics_ours (m) ? end_metrics (m, -1) : 0;
}

void metrics_discard (struct slurmdl_metrics *m)
{
    /* the thread closes its own descriptor when it ends */
    int folder = fcntl (m->file.folder, F_DUPFD_CLOEXEC, 0);

    end_metrics (m, folder);
    inside_close (folder, 0);
}

/* ---- metrics of a run; on ranks without a file these calls do nothing ---- */

/* Metric on ranks that write no file. */
static struct slurmdl_metric nowhere;

struct slurmdl_metric *slurmdl_metric (struct slurmdl *run, const char *name)
{
    return run->metrics ? metrics_name (run->metrics, name) : &nowhere;
}

int slurmdl_log (struct slurmdl *run, const char *name, int64_t step, double value)
{
    return run->metrics ? slurmdl_metrics_log (run->metrics, name, step, value) : 0;
}

int slurmdl_epoch (struct slurmdl *run, double epoch)
{
    return run->metrics ? metrics_epoch (run->metrics, epoch) : 0;
}

int slurmdl_event (struct slurmdl *run, const char *kind, const char *json)
{
    return run->metrics ? metrics_event (run->metrics, kind, NO_STEP, json) : 0;
}

/* 'row' is the first row logged after the restore.  Earlier rows with a higher step
 * are superseded.
 */
void metrics_resumed (struct slurmdl_metrics *m, int64_t step)
{
    char json[80];

    if (!m)
        return;
    snprintf (json, sizeof (json), "{\"step\": %lld, \"row\": %lu}", (long long)step,
              ring_count (&m->ring) + 1);
    metrics_event (m, "resumed", step, json);
}

void metrics_took (struct slurmdl_metrics *m, const char *what, int64_t step, double seconds)
{
    char json[80];

    if (!m)
        return;
    snprintf (json, sizeof (json), "{\"step\": %lld, \"seconds\": %.3f}", (long long)step, seconds);
    metrics_event (m, what, step, json);
}

int64_t slurmdl_lost (const struct slurmdl *run)
{
    return run->metrics ? metrics_lost (run->metrics) : 0;
}

int slurmdl_trouble (struct slurmdl *run, struct slurmdl_error *err)
{
    error_clear (err);
    return run->metrics ? metrics_trouble (run->metrics, err) : 0;
}

int slurmdl_flush (struct slurmdl *run, struct slurmdl_error *err)
{
    error_clear (err);
    return run->metrics ? slurmdl_metrics_flush (run->metrics, err) : 0;
}
