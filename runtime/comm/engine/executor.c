/* SPDX-License-Identifier: Apache-2.0 */
/* The executor thread, which runs batches of named tensors. */
#include <errno.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/comm/engine/engine.h"

/* Horovod's event names, for tools that read its timelines. */
static const struct {
    const char *negotiation, *collective;
} events[] = {
    [SLURMDL_ALLREDUCE] = { "NEGOTIATE_ALLREDUCE", "ALLREDUCE" },
    [SLURMDL_ALLGATHER] = { "NEGOTIATE_ALLGATHER", "ALLGATHER" },
    [SLURMDL_BROADCAST] = { "NEGOTIATE_BROADCAST", "BROADCAST" },
    [SLURMDL_REDUCE_SCATTER] = { "NEGOTIATE_REDUCESCATTER", "REDUCESCATTER" },
};

static size_t result_bytes (const struct engine *e, const struct engine_item *i)
{
    return tensor_total (i->t, e->size) * tensor_item (i->t);
}

static void draw_batch (struct engine *e, const struct engine_batch *b, double now)
{
    size_t all = 0;

    for (size_t i = 0; i < b->n; i++) {
        const struct engine_item *it = &b->items[i];
        const char *row = it->name->text;
        size_t bytes = result_bytes (e, it);
        all += bytes;
        if (!it->task)
            continue;
        timeline_span (e->timeline, row, events[it->t->what].negotiation, it->task->submitted,
                       b->agreed, 0);
        timeline_span (e->timeline, row, "QUEUE", b->agreed, b->packing, 0);
        timeline_span (e->timeline, row, "PACK", b->packing, b->packed, 0);
        timeline_span (e->timeline, row, events[it->t->what].collective, b->started, b->ended,
                       bytes);
        timeline_span (e->timeline, row, "UNPACK", b->ended, now, 0);
    }
    timeline_span (e->timeline, "batches", "BATCH", b->started, b->ended, all);
    timeline_flush (e->timeline);
}

/* The caller holds the lock.  The first batch of the queue is done or has failed. */
static void retire (struct engine *e, int code, const char *text)
{
    struct engine_batch *b = e->queue;

    if (!code) {
        e->stats.seconds += b->ended - b->started;
        if (e->timeline)
            draw_batch (e, b, monotonic ());
    }
    for (size_t i = 0; i < b->n; i++) {
        struct engine_item *it = &b->items[i];
        e->stats.tensors += !code;
        e->stats.bytes += code ? 0 : result_bytes (e, it);
        it->name->parts--;
        if (it->task)
            engine_finish (e, it->task, code, text);
        else
            name_tidy (e, it->name);
        tensor_free (it->t);
    }
    if (!(e->queue = b->next))
        e->queue_tail = &e->queue;
    e->batches--;
    if (e->hungry)
        engine_wake (e);
    free (b);
}

/* The caller holds the lock, which is released meanwhile. */
static int pack_batch (struct engine *e, struct engine_batch *b, int slot)
{
    struct slurmdl_error err = { "" };
    int rv;

    b->state = BATCH_PACKING;
    b->slot = slot;
    pthread_mutex_unlock (&e->lock);
    b->packing = monotonic ();
    rv = batch_pack (e, b, &err);
    b->packed = monotonic ();
    pthread_mutex_lock (&e->lock);
    b->state = BATCH_PACKED;
    if (rv < 0)
        engine_fail_locked (e, errno, err.text);
    pthread_cond_broadcast (&e->work);
    return rv;
}

bool executor_help (struct engine *e)
{
    struct engine_batch *b;
    bool found;

    pthread_mutex_lock (&e->lock);
    b = e->running && !e->code ? e->queue->next : NULL;
    found = b && b->state == BATCH_NEW && batch_may_pack (e, b);
    if (found)
        pack_batch (e, b, !e->queue->slot);
    pthread_mutex_unlock (&e->lock);
    return found;
}

/* The caller holds the lock, which is released meanwhile. */
static int reduce_next (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    int rv;

    e->running = true;
    if (b->next && b->next->state == BATCH_NEW)
        engine_wake (e); /* the control thread may pack it */
    pthread_mutex_unlock (&e->lock);
    b->started = monotonic ();
    rv = batch_run (e, b, err);
    b->ended = monotonic ();
    if (rv == 0)
        rv = batch_unpack (e, b, err);
    pthread_mutex_lock (&e->lock);
    e->running = false;
    return rv;
}

static void execute_next (struct engine *e)
{
    struct engine_batch *b = e->queue;
    struct slurmdl_error err = { "" };

    if (b->state == BATCH_NEW && !e->code)
        pack_batch (e, b, 0);
    while (b->state == BATCH_PACKING)
        pthread_cond_wait (&e->work, &e->lock);
    if (!e->code && reduce_next (e, b, &err) < 0) {
        engine_fail_locked (e, errno ? errno : EIO, err.text);
        engine_wake (e);
    }
    retire (e, e->code, e->why.text);
}

void *executor_main (void *arg)
{
    struct engine *e = arg;

    pthread_setname_np (pthread_self (), "dl-reduce");
    pthread_mutex_lock (&e->lock);
    for (;;) {
        while (!e->queue && !e->over)
            pthread_cond_wait (&e->work, &e->lock);
        if (!e->queue)
            break;
        execute_next (e);
    }
    pthread_mutex_unlock (&e->lock);
    return NULL;
}
