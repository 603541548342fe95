/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: start and stop the engine. */
#include "runtime/comm/engine/engine.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/error.h"

/* Guards the pointers to engines in communicators. */
static pthread_mutex_t engines = PTHREAD_MUTEX_INITIALIZER;

static double from_environment (const char *name, double otherwise)
{
    const char *text = getenv (name);
    char *end;
    double v = text ? strtod (text, &end) : 0;

    return text && end != text && v >= 0 ? v : otherwise;
}

static void read_engine_settings (struct engine *e)
{
    e->timeout = mesh_timeout (e->channel->mesh);
    e->fusion = (size_t)from_environment ("DL_FUSION_BYTES", 1 << 26);
    e->cycle = from_environment ("DL_CYCLE_MS", 1) * 1e-3;
    e->stall_seconds = from_environment ("DL_STALL_SECONDS", 60);
    e->stall_abort = from_environment ("DL_STALL_ABORT", 0);
    e->fresh_tail = &e->fresh;
    e->queue_tail = &e->queue;
}

/* Block all signals in our threads: they are for the program. */
static int start_threads (struct engine *e)
{
    sigset_t all, before;
    int rc;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    if (!(rc = pthread_create (&e->executor, NULL, executor_main, e))
        && (rc = pthread_create (&e->control, NULL, control_main, e))) {
        pthread_mutex_lock (&e->lock);
        e->over = true;
        pthread_cond_broadcast (&e->work);
        pthread_mutex_unlock (&e->lock);
        pthread_join (e->executor, NULL);
    }
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    errno = rc;
    return rc ? -1 : 0;
}

static void engine_free (struct engine *e)
{
    struct name *n, *same;
    size_t at = 0;

    for (struct engine_task *t = e->all; t; t = e->all) {
        e->all = t->earlier;
        task_free (e, t);
    }
    for (struct engine_task *t = e->spare; t; t = e->spare) {
        e->spare = t->next;
        free (t);
    }
    while ((n = map_next (&e->names, &at)))
        for (; n; n = same) {
            same = n->same;
            name_free (n);
        }
    map_free (&e->names);
    map_free (&e->tickets);
    for (int i = 0; i < 4; i++)
        free (e->slots[i / 2][i % 2].data);
    timeline_close (e->timeline);
    if (e->wake >= 0)
        close (e->wake);
    slurmdl_comm_close (e->channel, NULL);
    pthread_mutex_destroy (&e->lock);
    pthread_cond_destroy (&e->work);
    pthread_cond_destroy (&e->idle);
    free (e);
}

static struct engine *engine_open (struct slurmdl_comm *c, struct slurmdl_error *err)
{
    struct engine *e = calloc (1, sizeof (*e));
    const char *path = getenv ("DL_TIMELINE");
    const char *cycles = getenv ("DL_TIMELINE_CYCLES");

    if (!e)
        return NULL;
    pthread_mutex_init (&e->lock, NULL);
    pthread_cond_init (&e->work, NULL);
    pthread_cond_init (&e->idle, NULL);
    e->owner = c;
    e->rank = slurmdl_comm_rank (c);
    e->size = slurmdl_comm_size (c);
    e->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->channel = comm_channel (c, COMM_CHANNEL_ENGINE, err);
    if (e->wake < 0 || !e->channel)
        goto fail;
    read_engine_settings (e);
    if (path && *path
        && timeline_open (&e->timeline, path, e->rank, slurmdl_comm_host (c, e->rank),
                          cycles && *cycles && strcmp (cycles, "0"), err)
               < 0)
        goto fail;
    if (start_threads (e) == 0)
        return e;
    errorf (err, "cannot start a thread for named tensors: %s", strerror (errno));
fail:
    engine_free (e);
    return NULL;
}

/* Hide the engine from new callers, and wait for those inside.  All tasks are done
 * by now.
 */
static void wait_for_users (struct engine *e)
{
    struct timespec nap = { 0, 100000 };

    pthread_mutex_lock (&engines);
    e->owner->engine = NULL;
    pthread_mutex_unlock (&engines);
    while (atomic_load (&e->users))
        nanosleep (&nap, NULL);
}

static void complete_all (struct engine *e)
{
    pthread_mutex_lock (&e->lock);
    e->closing = true;
    e->hurry = true;
    engine_wake (e);
    while (e->unfinished)
        pthread_cond_wait (&e->idle, &e->lock);
    e->leave = true;
    pthread_mutex_unlock (&e->lock);
    engine_wake (e);
}

static int engine_close (struct engine *e, struct slurmdl_error *err)
{
    int code;

    complete_all (e);
    wait_for_users (e);
    pthread_join (e->control, NULL);
    pthread_join (e->executor, NULL);
    if ((code = e->code))
        errorf (err, "%s", e->why.text);
    engine_free (e);
    errno = code;
    return code ? -1 : 0;
}

static void engine_abort (struct engine *e, const char *why)
{
    char text[256];

    snprintf (text, sizeof (text), "rank %ld (%s): %s", e->rank,
              slurmdl_comm_host (e->owner, e->rank), why);
    engine_fail (e, ECONNRESET, text);
    pthread_mutex_lock (&e->lock);
    engine_abort_channel (e);
    pthread_mutex_unlock (&e->lock);
}

static const struct comm_engine engine_calls = { engine_close, engine_abort };

struct engine *engine_enter (struct slurmdl_comm *c, bool start, struct slurmdl_error *err)
{
    struct engine *e;

    error_clear (err);
    pthread_mutex_lock (&engines);
    if (!c->engine && start && !c->broken) {
        c->engine_calls = &engine_calls;
        c->engine = engine_open (c, err);
    }
    if ((e = c->engine))
        atomic_fetch_add (&e->users, 1);
    pthread_mutex_unlock (&engines);
    if (!e && start && c->broken) {
        errno = ENOTCONN;
        errorf (err, "%s", c->why.text);
    }
    return e;
}

void engine_leave (struct engine *e)
{
    atomic_fetch_sub (&e->users, 1);
}
