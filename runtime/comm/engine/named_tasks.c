/* SPDX-License-Identifier: Apache-2.0 */
/* Names and tasks of named tensors, and how tasks end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/futex.h"
#include "runtime/comm/engine/engine.h"

void engine_wake (struct engine *e)
{
    uint64_t one = 1;

    if (!atomic_exchange (&e->awake, true))
        if (write (e->wake, &one, sizeof (one)) < 0)
            return; /* EAGAIN: the counter is nonzero already */
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

void name_free (struct name *n)
{
    tensor_free (n->now);
    free (n->text);
    free (n);
}

void name_tidy (struct engine *e, struct name *n)
{
    uint64_t hash;
    struct name *p;

    if (n->task || n->parts || n->id)
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

void engine_answered (struct engine *e, struct engine_task *t)
{
    if (t->state == TASK_BATCH)
        return;
    *(t->before ? &t->before->after : &e->oldest) = t->after;
    *(t->after ? &t->after->before : &e->newest) = t->before;
    e->unanswered--;
    t->state = TASK_BATCH;
}

void engine_finish (struct engine *e, struct engine_task *t, int code, const char *text)
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

/* Clear the list of fresh tasks as well, because no other list points to them. */
void engine_fail_unanswered (struct engine *e, int code, const char *text)
{
    while (e->oldest) {
        struct engine_task *t = e->oldest;
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

int engine_code (struct engine *e)
{
    int code;

    pthread_mutex_lock (&e->lock);
    code = e->code;
    pthread_mutex_unlock (&e->lock);
    return code;
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

void task_free (struct engine *e, struct engine_task *t)
{
    if (t->mark)
        t->memory->unmark (t->mark);
    free (t->t.group);
    free (t->result);
    free (t->counts);
    t->next = e->spare;
    e->spare = t;
}
