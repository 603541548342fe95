/* SPDX-License-Identifier: Apache-2.0 */
/* Save now or in a thread, verify the result, and remove old checkpoints. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/commit.h"
#include "runtime/checkpoint/fetch.h"
#include "runtime/metrics/metrics.h"

enum { IN_FLIGHT = 2 };

/* slurmdl_save_wait() records waits of at least so many seconds. */
static const double LONG_WAIT = 0.001;

struct saver {
    struct slurmdl *run;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* a ring; the thread works on the oldest job */
    struct save_job jobs[IN_FLIGHT];
    int used[IN_FLIGHT]; /* index of each job's buffer */
    struct buffer buffers[IN_FLIGHT];
    unsigned put, done;
    struct save_job coming; /* the job to allocate buffers[0] for */
    bool prepares;
    /* to read back before older checkpoints are removed */
    char unverified[PATH_MAX];
    int64_t unverified_step;
    bool verifying;
    atomic_int hurry; /* the run is closing: stop verifying */
    bool last;
    int error; /* errno of a save by the thread, not yet returned */
    struct slurmdl_error why;
};

/* ---- after a save ---- */

static void remove_older_step (struct slurmdl *run, const char *path, int64_t step)
{
    char folder[PATH_MAX];

    memcpy (folder, path, strlen (path) + 1);
    *strrchr (folder, '/') = '\0';
    retain_saved (&run->retention, folder, step);
}

/* Small files were read back before they got their names. */
static bool was_read_back (const char *path)
{
    struct stat st;

    return stat (path, &st) == 0 && st.st_size <= SMALL_FILE;
}

/* Remove an older checkpoint only after the new one was read back. */
static void verify_saved (struct saver *s)
{
    char path[PATH_MAX];
    int64_t step = s->unverified_step;
    int rv;

    memcpy (path, s->unverified, sizeof (path));
    *s->unverified = '\0';
    s->verifying = true;
    pthread_mutex_unlock (&s->lock);
    rv = was_read_back (path) ? 0 : check_file (path, step, &s->hurry);
    if (rv == 0)
        remove_older_step (s->run, path, step);
    pthread_mutex_lock (&s->lock);
    s->verifying = false;
    if (rv < 0 && !atomic_load (&s->hurry) && !s->error) {
        s->error = errno ? errno : EIO;
        *s->why.text = '\0';
        errorf (&s->why, "%s: was saved, but is damaged on the disk", path);
    }
}

/* ---- one save ---- */

static int save_checkpoint_now (struct saver *s, struct save_job *job, struct slurmdl_error *err)
{
    struct slurmdl *run = s->run;
    char path[PATH_MAX];
    double begin = monotonic ();

    /* A run that resumes from here will not log earlier steps again.  Save the
     * checkpoint even if a metric cannot be written.
     */
    slurmdl_flush (run, NULL);
    if (!job->shared && run->rank != 0)
        return 0;
    if (commit (run, job, path, err) < 0)
        return -1;
    stop_saved (monotonic () - begin);
    if (*path) {
        pthread_mutex_lock (&s->lock);
        memcpy (s->unverified, path, sizeof (path));
        s->unverified_step = job->step;
        pthread_mutex_unlock (&s->lock);
    }
    return 0;
}

/* ---- the thread ---- */

static void take_job (struct saver *s)
{
    struct save_job *job = &s->jobs[s->done % IN_FLIGHT];
    struct slurmdl_error err = { "" };
    int rv;
    int e;

    pthread_mutex_unlock (&s->lock);
    rv = save_checkpoint_now (s, job, &err);
    e = errno;
    job_free (job);
    pthread_mutex_lock (&s->lock);
    if (rv < 0 && !s->error) {
        s->error = e ? e : EIO;
        s->why = err;
    }
    s->done++;
}

/* Nothing is in flight, so the first buffer is idle. save_async() waits for us. */
static void wait_for_buffer (struct saver *s)
{
    pthread_mutex_unlock (&s->lock);
    snapshot_prepare (&s->buffers[0], &s->coming);
    job_free (&s->coming);
    pthread_mutex_lock (&s->lock);
    s->prepares = false;
}

static void *saver_main (void *arg)
{
    struct saver *s = arg;

    pthread_mutex_lock (&s->lock);
    for (;;) {
        if (*s->unverified && !atomic_load (&s->hurry))
            verify_saved (s);
        else if (s->put != s->done)
            take_job (s);
        else if (s->prepares)
            wait_for_buffer (s);
        else if (s->last)
            break;
        else {
            pthread_cond_wait (&s->changed, &s->lock);
            continue;
        }
        pthread_cond_broadcast (&s->changed);
    }
    pthread_mutex_unlock (&s->lock);
    return NULL;
}

static int start_saver (struct saver *s)
{
    if (s->started)
        return 0;
    if ((errno = pthread_create (&s->thread, NULL, saver_main, s)))
        return -1;
    s->started = true;
    return 0;
}

static struct saver *saver_of (struct slurmdl *run)
{
    struct saver *s = run->saver;

    if (s)
        return s;
    if (!(s = calloc (1, sizeof (*s))))
        return NULL;
    s->run = run;
    pthread_mutex_init (&s->lock, NULL);
    pthread_cond_init (&s->changed, NULL);
    run->saver = s;
    return s;
}

int saver_destroy (struct saver *s)
{
    int e;

    if (!s)
        return 0;
    atomic_store (&s->hurry, 1);
    if (s->started) {
        pthread_mutex_lock (&s->lock);
        s->last = true;
        pthread_cond_broadcast (&s->changed);
        pthread_mutex_unlock (&s->lock);
        pthread_join (s->thread, NULL);
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        buffer_free (&s->buffers[i]);
    pthread_cond_destroy (&s->changed);
    pthread_mutex_destroy (&s->lock);
    e = s->error;
    free (s);
    errno = e;
    return e ? -1 : 0;
}

/* ---- calls ---- */

/* Wait until at most 'most' saves are in flight.  For 0, wait for verification as
 * well.
 */
static void wait_for_saves (struct saver *s, unsigned most)
{
    pthread_mutex_lock (&s->lock);
    while (s->put - s->done > most || s->prepares
           || (most == 0 && s->started && (*s->unverified || s->verifying)))
        pthread_cond_wait (&s->changed, &s->lock);
    pthread_mutex_unlock (&s->lock);
}

static int take_save_error (struct saver *s, struct slurmdl_error *err)
{
    int e;

    pthread_mutex_lock (&s->lock);
    e = s->error;
    if (e)
        errorf (err, "%s", s->why.text);
    s->error = 0;
    pthread_mutex_unlock (&s->lock);
    errno = e;
    return e ? -1 : 0;
}

static int begin_save (struct slurmdl *run, int64_t step, struct saver **s, struct save_job *job,
                       struct slurmdl_error *err)
{
    error_clear (err);
    if (step < 0) {
        errno = EINVAL;
        return errorf (err, "cannot save step %lld: it is negative", (long long)step);
    }
    if (!(*s = saver_of (run)) || job_create (job, run, step) < 0)
        return errorf (err, "out of memory");
    stop_reached (run, step);
    return 0;
}

/* Small files were read back before they got their names.  The thread verifies
 * large ones.
 */
static void verify_later (struct saver *s)
{
    char path[PATH_MAX];
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->run->regions.n; i++)
        bytes += s->run->regions.list[i].bytes;
    if (bytes * (uint64_t)s->run->size > SMALL_FILE && start_saver (s) == 0) {
        pthread_mutex_lock (&s->lock);
        pthread_cond_broadcast (&s->changed);
        pthread_mutex_unlock (&s->lock);
        return;
    }
    pthread_mutex_lock (&s->lock);
    memcpy (path, s->unverified, sizeof (path));
    *s->unverified = '\0';
    pthread_mutex_unlock (&s->lock);
    if (*path)
        remove_older_step (s->run, path, s->unverified_step);
}

static int save_now (struct saver *s, struct save_job *job, struct slurmdl_error *err)
{
    int rv;
    int e;

    wait_for_saves (s, 0);
    rv = save_checkpoint_now (s, job, err);
    e = errno;
    job_free (job);
    if (rv == 0)
        verify_later (s);
    errno = e;
    return rv;
}

/* Record how long the program could not train. */
static void note_save (const struct slurmdl *run, int64_t step, double begin)
{
    int e = errno;

    metrics_took (run->metrics, "saved", step, monotonic () - begin);
    errno = e;
}

int slurmdl_save (struct slurmdl *run, int64_t step, struct slurmdl_error *err)
{
    double begin = monotonic ();
    struct saver *s;
    struct save_job job;
    int rv;

    if (begin_save (run, step, &s, &job, err) < 0)
        return -1;
    rv = save_now (s, &job, err);
    note_save (run, step, begin);
    return rv;
}

/* Use the second buffer only while a save is in flight. */
static int idle_buffer (struct saver *s)
{
    int at;

    pthread_mutex_lock (&s->lock);
    at = s->put == s->done ? 0 : !s->used[s->done % IN_FLIGHT];
    pthread_mutex_unlock (&s->lock);
    return at;
}

static int put_job (struct saver *s, struct save_job *job, struct slurmdl_error *err)
{
    unsigned at = s->put % IN_FLIGHT;
    bool copied;

    /* rank 0 saves what all ranks have in common; this rank has nothing to do */
    if (job->n == 0 && !job->shared)
        return save_now (s, job, err);
    wait_for_saves (s, IN_FLIGHT - 1);
    s->used[at] = idle_buffer (s);
    copied = snapshot_take (&s->buffers[s->used[at]], job) == 0;
    if (!copied || start_saver (s) < 0) {
        int rv = save_now (s, job, err);
        if (rv == 0)
            errorf (err, "this save was not asynchronous: %s",
                    copied ? "cannot start a thread" : "no memory for a copy (DL_SNAPSHOT_MAX)");
        return rv;
    }
    pthread_mutex_lock (&s->lock);
    s->jobs[at] = *job;
    s->put++;
    pthread_cond_broadcast (&s->changed);
    pthread_mutex_unlock (&s->lock);
    return 0;
}

int slurmdl_save_async (struct slurmdl *run, int64_t step, struct slurmdl_error *err)
{
    double begin = monotonic ();
    struct saver *s;
    struct save_job job;
    int failed, rv;
    int e;

    if (begin_save (run, step, &s, &job, err) < 0)
        return -1;
    /* The error is from an earlier save.  Start this one anyway, because other
     * ranks may not know of the error.
     */
    failed = take_save_error (s, err);
    e = errno;
    rv = put_job (s, &job, err);
    note_save (run, step, begin);
    if (rv < 0)
        return -1;
    errno = e;
    return failed;
}

void slurmdl_save_prepare (struct slurmdl *run)
{
    struct saver *s;
    struct save_job job;

    if (begin_save (run, 0, &s, &job, NULL) < 0)
        return;
    wait_for_saves (s, 0);
    if (job.n == 0 || start_saver (s) < 0) {
        job_free (&job);
        return;
    }
    pthread_mutex_lock (&s->lock);
    s->coming = job;
    s->prepares = true;
    pthread_cond_broadcast (&s->changed);
    pthread_mutex_unlock (&s->lock);
}

int slurmdl_save_wait (struct slurmdl *run, struct slurmdl_error *err)
{
    double begin = monotonic ();

    error_clear (err);
    if (!run->saver)
        return 0;
    wait_for_saves (run->saver, 0);
    if (monotonic () - begin >= LONG_WAIT)
        note_save (run, run->saver->unverified_step, begin);
    return take_save_error (run->saver, err);
}
