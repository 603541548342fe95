/* SPDX-License-Identifier: Apache-2.0 */
/* Pack, compute and unpack a batch of named tensors in device memory. */
#include <errno.h>
#include <stdlib.h>

#include "runtime/base/error.h"
#include "runtime/comm/engine/batch.h"

/* A batch in progress, and the next copies. */
struct queue_plan {
    struct engine *e;
    struct engine_batch *b;
    const struct comm_queue *queue;
    void *self;
    struct comm_copy *list;
    size_t n;
    struct slurmdl_error *err;
};

static void queue_copy (struct queue_plan *p, void *to, const void *from, size_t n)
{
    if (n && to != from)
        p->list[p->n++] = (struct comm_copy){ to, from, n };
}

static int queue_flush_copies (struct queue_plan *p)
{
    size_t n = p->n;

    p->n = 0;
    return n ? p->queue->copy (p->self, p->list, n, p->err) : 0;
}

static void *queue_buffer (struct queue_plan *p, int which, size_t n)
{
    return p->queue->room (p->self, which, n ? n : 1, p->err);
}

/* Whether the collective can use the tensor's own memory. */
static bool is_direct (const struct queue_plan *p)
{
    return p->b->n == 1 && p->b->items->task;
}

static size_t item_bytes (const struct engine_item *it, size_t elements)
{
    return elements * tensor_item (it->t);
}

static void queue_set_factor (struct queue_plan *p)
{
    const struct tensor *t = p->b->items->t;
    double factor = t->prescale * t->postscale;

    if (factor != 1)
        p->queue->factor (p->self, factor);
}

/* ---- all-reduce ---- */

static int queue_allreduce (struct queue_plan *p, const void *in, void *out)
{
    const struct tensor *t = p->b->items->t;

    queue_set_factor (p);
    return slurmdl_allreduce (p->e->channel, in, out, batch_elements (p->b), t->type, t->op,
                              p->err);
}

static int queue_reduce (struct queue_plan *p)
{
    const struct engine_batch *b = p->b;
    const struct engine_item *it = b->items;
    char *all, *at;

    if (is_direct (p))
        return queue_allreduce (p, it->task->in, batch_target (it->task));
    if (!(all = queue_buffer (p, 0, item_bytes (it, batch_elements (b)))))
        return -1;
    for (at = all, it = b->items; it < b->items + b->n; it++) {
        queue_copy (p, at, it->task ? it->task->in : NULL, item_bytes (it, it->t->n));
        at += item_bytes (it, it->t->n);
    }
    if (queue_flush_copies (p) < 0 || queue_allreduce (p, all, all) < 0)
        return -1;
    for (at = all, it = b->items; it < b->items + b->n; it++) {
        if (it->task)
            queue_copy (p, batch_target (it->task), at, item_bytes (it, it->t->n));
        at += item_bytes (it, it->t->n);
    }
    return queue_flush_copies (p);
}

/* ---- reduce-scatter: for each rank, its parts of all tensors together ---- */

static int reduce_scatter_batch (struct queue_plan *p, const void *in, void *out)
{
    const struct tensor *t = p->b->items->t;
    struct engine *e = p->e;
    size_t *counts = calloc ((size_t)e->size, sizeof (*counts));
    int rv;

    if (!counts)
        return errorf (p->err, "no memory for a reduce-scatter");
    for (long r = 0; r < e->size; r++)
        for (size_t i = 0; i < p->b->n; i++)
            counts[r] += batch_part (e, p->b->items[i].t, r);
    queue_set_factor (p);
    rv = slurmdl_reduce_scatter (e->channel, in, out, batch_elements (p->b), counts, t->type, t->op,
                                 p->err);
    free (counts);
    return rv;
}

static void put_parts (struct queue_plan *p, char *to)
{
    const struct engine *e = p->e;

    for (long r = 0; r < e->size; r++)
        for (size_t i = 0; i < p->b->n; i++) {
            const struct engine_item *it = &p->b->items[i];
            size_t begin = item_bytes (it, batch_part_at (e, it->t, r));
            size_t n = item_bytes (it, batch_part (e, it->t, r));
            const char *from = it->task ? it->task->in : NULL;
            queue_copy (p, to, from ? from + begin : NULL, n);
            to += n;
        }
}

static int queue_scatter (struct queue_plan *p)
{
    const struct engine_batch *b = p->b;
    const struct engine_item *it = b->items;
    size_t bytes = item_bytes (it, batch_elements (b));
    char *in, *out;

    if (is_direct (p))
        return reduce_scatter_batch (p, it->task->in, batch_target (it->task));
    if (!(in = queue_buffer (p, 0, bytes)) || !(out = queue_buffer (p, 1, bytes)))
        return -1;
    put_parts (p, in);
    if (queue_flush_copies (p) < 0 || reduce_scatter_batch (p, in, out) < 0)
        return -1;
    for (size_t i = 0; i < b->n; i++) {
        size_t n;
        it = &b->items[i];
        n = item_bytes (it, batch_part (p->e, it->t, p->e->rank));
        if (it->task)
            queue_copy (p, batch_target (it->task), out, n);
        out += n;
    }
    return queue_flush_copies (p);
}

/* ---- all-gather: each rank's rows of all tensors together ---- */

static size_t *queue_blocks (const struct queue_plan *p, size_t *all)
{
    size_t size = (size_t)p->e->size;
    size_t *bytes = calloc (size, sizeof (*bytes));

    *all = 0;
    for (size_t r = 0; bytes && r < size; r++) {
        for (size_t i = 0; i < p->b->n; i++)
            bytes[r] += item_bytes (&p->b->items[i], p->b->items[i].t->counts[r]);
        *all += bytes[r];
    }
    if (!bytes)
        errorf (p->err, "no memory for an all-gather");
    return bytes;
}

/* Copy this rank's rows of all tensors into one buffer. */
static int queue_pack (struct queue_plan *p, char *to)
{
    for (size_t i = 0; i < p->b->n; i++) {
        const struct engine_item *it = &p->b->items[i];
        size_t n = item_bytes (it, it->t->counts[p->e->rank]);
        queue_copy (p, to, it->task ? it->task->in : NULL, n);
        to += n;
    }
    return queue_flush_copies (p);
}

/* Copy the rows of all ranks, which 'from' holds rank by rank, into the tensors. */
static int queue_unpack (struct queue_plan *p, const char *from)
{
    for (size_t i = 0; i < p->b->n; i++)
        p->b->items[i].done = 0;
    for (long r = 0; r < p->e->size; r++)
        for (size_t i = 0; i < p->b->n; i++) {
            struct engine_item *it = &p->b->items[i];
            size_t n = item_bytes (it, it->t->counts[r]);
            if (it->task)
                queue_copy (p, (char *)batch_target (it->task) + it->done, from, n);
            it->done += n;
            from += n;
        }
    return queue_flush_copies (p);
}

static int queue_allgatherv (struct queue_plan *p, const size_t *bytes, size_t all)
{
    const struct engine_item *it = p->b->items;
    size_t own = bytes[p->e->rank];
    const void *in;
    void *out;

    if (is_direct (p)) {
        in = it->task->in;
        out = batch_target (it->task);
    } else {
        void *rows = queue_buffer (p, 0, own);
        if (!rows || !(out = queue_buffer (p, 1, all)) || queue_pack (p, rows) < 0)
            return -1;
        in = rows;
    }
    if (slurmdl_allgather (p->e->channel, in, own, out, bytes, p->err) < 0)
        return -1;
    return is_direct (p) ? 0 : queue_unpack (p, out);
}

static int queue_gather (struct queue_plan *p)
{
    size_t all;
    size_t *bytes = queue_blocks (p, &all);
    int rv = bytes ? queue_allgatherv (p, bytes, all) : -1;

    free (bytes);
    return rv;
}

/* ---- broadcast ---- */

static void put_values (struct queue_plan *p, char *to)
{
    for (size_t i = 0; i < p->b->n; i++) {
        const struct engine_item *it = &p->b->items[i];
        queue_copy (p, to, it->task->in, tensor_weight (it->t));
        to += tensor_weight (it->t);
    }
}

static int queue_broadcast (struct queue_plan *p)
{
    const struct engine_batch *b = p->b;
    const struct engine_item *it = b->items;
    bool is_root = it->t->root == p->e->rank;
    size_t bytes = item_bytes (it, batch_elements (b));
    char *all;

    if (is_direct (p))
        all = is_root ? (void *)it->task->in : batch_target (it->task);
    else if (!(all = queue_buffer (p, 0, bytes)))
        return -1;
    if (is_root && !is_direct (p))
        put_values (p, all);
    if (queue_flush_copies (p) < 0
        || slurmdl_broadcast (p->e->channel, all, bytes, it->t->root, p->err) < 0)
        return -1;
    for (it = b->items; it < b->items + b->n; it++) {
        if (it->task)
            queue_copy (p, batch_target (it->task), all, tensor_weight (it->t));
        all += tensor_weight (it->t);
    }
    return queue_flush_copies (p);
}

/* ---- the table of operations ---- */

static int (*const runs[]) (struct queue_plan *) = {
    [SLURMDL_ALLREDUCE] = queue_reduce,
    [SLURMDL_ALLGATHER] = queue_gather,
    [SLURMDL_BROADCAST] = queue_broadcast,
    [SLURMDL_REDUCE_SCATTER] = queue_scatter,
};

static int queue_all (struct queue_plan *p)
{
    int rv = p->queue->begin (p->self, p->err);

    for (size_t i = 0; rv == 0 && i < p->b->n; i++) {
        const struct engine_task *t = p->b->items[i].task;
        if (t && t->mark)
            rv = p->queue->after (p->self, t->mark, p->err);
    }
    if (rv == 0)
        rv = runs[p->b->items->t->what](p);
    return rv;
}

int queue_run (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    struct queue_plan p = { .e = e, .b = b, .err = err };
    int rv, saved, end;

    p.queue = e->channel->device->queue;
    p.self = e->channel->device_self;
    p.list = calloc (b->n * (size_t)e->size, sizeof (*p.list));
    if (!p.list)
        return errorf (err, "no memory to fuse tensors");
    rv = queue_all (&p);
    saved = errno;
    free (p.list);
    end = p.queue->end (p.self, err);
    if (rv < 0)
        errno = saved;
    return rv < 0 || end < 0 ? -1 : 0;
}
