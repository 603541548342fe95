/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: start and end, names, tasks. */
#include "runtime/comm/engine/engine.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/futex.h"
#include "runtime/comm/engine/users.h"

/* Guards the pointers to engines in communicators. */
static pthread_mutex_t engines = PTHREAD_MUTEX_INITIALIZER;
static atomic_llong next_ticket = 1;

void engine_wake (struct engine *e)
{
    uint64_t one = 1;

    if (!atomic_exchange (&e->awake, true))
        if (write (e->wake, &one, sizeof (one)) < 0)
            return; /* it counts already */
}

struct name *name_find (struct engine *e, const char *text, bool make)
{
    uint64_t hash = map_hash (text);
    struct name *head = map_get (&e->names, hash);
    struct name *n = head;

    while (n && strcmp (n->text, text))
        n = n->same;
    if (n || !make)
        return n;
    if (!(n = calloc (1, sizeof (*n))) || !(n->text = strdup (text))) {
        free (n);
        return NULL;
    }
    n->same = head;
    if (map_set (&e->names, hash, n) < 0) {
        free (n->text);
        free (n);
        return NULL;
    }
    return n;
}

static void name_free (struct name *n)
{
    tensor_free (n->now);
    free (n->residual);
    free (n->text);
    free (n);
}

void name_tidy (struct engine *e, struct name *n)
{
    uint64_t hash;
    struct name *p;

    if (n->task || n->parts || n->id || n->residual)
        return;
    hash = map_hash (n->text);
    p = map_get (&e->names, hash);
    if (p == n) {
        map_set (&e->names, hash, n->same);
    } else {
        while (p->same != n)
            p = p->same;
        p->same = n->same;
    }
    name_free (n);
}

void engine_answered (struct engine *e, struct task *t)
{
    if (t->state == TASK_BATCH)
        return;
    *(t->before ? &t->before->after : &e->oldest) = t->after;
    *(t->after ? &t->after->before : &e->newest) = t->before;
    e->unanswered--;
    t->state = TASK_BATCH;
}

void engine_finish (struct engine *e,
                    struct task *t,
                    int code,
                    const char *text)
{
    struct name *n = t->name;

    t->code = code;
    if (code)
        errorf (&t->err, "%s", text);
    n->task = NULL;
    name_tidy (e, n);
    if (!--e->unfinished)
        pthread_cond_broadcast (&e->idle);
    atomic_store (&t->done, 1);
    if (t->awaited)
        futex_wake (&t->done);
}

/* Those that are fresh have no other list that knows of them. */
void engine_fail_unanswered (struct engine *e, int code, const char *text)
{
    while (e->oldest) {
        struct task *t = e->oldest;
        engine_answered (e, t);
        engine_finish (e, t, code, text);
    }
    e->fresh = NULL;
    e->fresh_tail = &e->fresh;
    e->nfresh = 0;
    e->fresh_bytes = 0;
}

void engine_wake_joined (struct engine *e)
{
    atomic_fetch_add (&e->joined, 1);
    futex_wake (&e->joined);
}

void engine_abort_channel (struct engine *e)
{
    if (!e->aborted)
        slurmdl_comm_abort (e->channel, e->why.text);
    e->aborted = true;
}

void engine_fail_locked (struct engine *e, int code, const char *text)
{
    if (!e->code) {
        e->code = code;
        errorf (&e->why, "%s", text);
    }
    engine_fail_unanswered (e, e->code, e->why.text);
    pthread_cond_broadcast (&e->work);
    engine_wake_joined (e);
}

void engine_fail (struct engine *e, int code, const char *text)
{
    pthread_mutex_lock (&e->lock);
    engine_fail_locked (e, code, text);
    pthread_mutex_unlock (&e->lock);
    engine_wake (e);
}

static double from_environment (const char *name, double otherwise)
{
    const char *text = getenv (name);
    char *end;
    double v = text ? strtod (text, &end) : 0;

    return text && end != text && v >= 0 ? v : otherwise;
}

static void settings (struct engine *e)
{
    e->timeout = mesh_timeout (e->channel->mesh);
    e->fusion = (size_t)from_environment ("DL_FUSION_BYTES", 1 << 26);
    e->cycle = from_environment ("DL_CYCLE_MS", 1) * 1e-3;
    e->stall_seconds = from_environment ("DL_STALL_SECONDS", 60);
    e->stall_abort = from_environment ("DL_STALL_ABORT", 0);
    e->fresh_tail = &e->fresh;
    e->queue_tail = &e->queue;
}

/* The program's signals are not for our threads. */
static int start_threads (struct engine *e)
{
    sigset_t all, before;
    int rc;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    if (!(rc = pthread_create (&e->runner, NULL, runner_main, e))
        && (rc = pthread_create (&e->control, NULL, control_main, e))) {
        pthread_mutex_lock (&e->lock);
        e->over = true;
        pthread_cond_broadcast (&e->work);
        pthread_mutex_unlock (&e->lock);
        pthread_join (e->runner, NULL);
    }
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    errno = rc;
    return rc ? -1 : 0;
}

static void engine_free (struct engine *e)
{
    struct name *n, *same;
    size_t at = 0;

    for (struct task *t = e->all; t; t = e->all) {
        e->all = t->earlier;
        task_free (e, t);
    }
    for (struct task *t = e->spare; t; t = e->spare) {
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
    slurmdl_comm_close (e->channel);
    pthread_mutex_destroy (&e->lock);
    pthread_cond_destroy (&e->work);
    pthread_cond_destroy (&e->idle);
    free (e);
}

static struct engine *engine_open (struct slurmdl_comm *c,
                                   struct slurmdl_error *err)
{
    struct engine *e = calloc (1, sizeof (*e));
    const char *path = getenv ("DL_TIMELINE");

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
    settings (e);
    if (path && *path
        && !(e->timeline = timeline_open (
                 path, e->rank, slurmdl_comm_host (c, e->rank), err)))
        goto fail;
    if (start_threads (e) == 0)
        return e;
    errorf (err, "no thread for named tensors: %s", strerror (errno));
fail:
    engine_free (e);
    return NULL;
}

struct engine *
engine_enter (struct slurmdl_comm *c, bool start, struct slurmdl_error *err)
{
    struct engine *e;

    error_clear (err);
    pthread_mutex_lock (&engines);
    if (!c->engine && start && !c->broken)
        c->engine = engine_open (c, err);
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

bool ticket_was_given (int64_t ticket)
{
    return ticket > 0 && ticket < atomic_load (&next_ticket);
}

int64_t ticket_next (void)
{
    return atomic_fetch_add (&next_ticket, 1);
}

/* New ones find it no more, and those inside get out: all tasks are done. */
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

int engine_close (struct engine *e)
{
    int code;

    if (!e)
        return 0;
    complete_all (e);
    wait_for_users (e);
    pthread_join (e->control, NULL);
    pthread_join (e->runner, NULL);
    code = e->code;
    engine_free (e);
    errno = code;
    return code ? -1 : 0;
}

void engine_abort (struct engine *e, const char *why)
{
    char text[256];

    if (!e)
        return;
    snprintf (text,
              sizeof (text),
              "rank %ld (%s): %s",
              e->rank,
              slurmdl_comm_host (e->owner, e->rank),
              why);
    engine_fail (e, ECONNRESET, text);
    pthread_mutex_lock (&e->lock);
    engine_abort_channel (e);
    pthread_mutex_unlock (&e->lock);
}
