/* SPDX-License-Identifier: Apache-2.0 */
/* All-gather and broadcast several named tensors at once. */
#include <stdlib.h>

#include "runtime/base/error.h"
#include "runtime/comm/engine/batch.h"

static size_t bytes_of_rank (const struct engine_batch *b, long rank)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += b->items[i].t->counts[rank] * tensor_item (b->items[i].t);
    return n;
}

static size_t gather_blocks (const struct engine *e, const struct engine_batch *b)
{
    size_t n = 0;

    for (long r = 0; r < e->size; r++)
        n += bytes_of_rank (b, r);
    return n;
}

static int pack_gather (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    const struct engine_item *it = b->items;
    struct engine_buffer *slot = e->slots[b->slot];
    bool direct = b->n == 1 && it->task;
    char *to;

    if (direct && !memory_ops_of (batch_target (it->task)) && !memory_ops_of (it->task->in)) {
        b->in = it->task->in;
        b->out = batch_target (it->task);
        return 0;
    }
    if (!(to = engine_buffer_room (&slot[0], bytes_of_rank (b, e->rank)))
        || !engine_buffer_room (&slot[1], gather_blocks (e, b)))
        return errorf (err, "no memory to fuse tensors");
    b->in = to;
    b->out = slot[1].data;
    for (size_t i = 0; i < b->n; i++) {
        size_t n;
        it = &b->items[i];
        n = it->t->counts[e->rank] * tensor_item (it->t);
        if (it->task && batch_read (to, it->task->in, n) < 0)
            return errorf (err, "%.80s cannot be read", it->name->text);
        to += n;
    }
    return 0;
}

static int gather_batch (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    size_t *bytes = calloc ((size_t)e->size, sizeof (*bytes));
    int rv;

    if (!bytes)
        return errorf (err, "no memory for an all-gather");
    for (long r = 0; r < e->size; r++)
        bytes[r] = bytes_of_rank (b, r);
    rv = slurmdl_allgather (e->channel, b->in, bytes[e->rank], b->out, bytes, err);
    free (bytes);
    return rv;
}

static int unpack_gather (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    const char *from = b->out;

    if (from != e->slots[b->slot][1].data)
        return 0;
    for (size_t i = 0; i < b->n; i++)
        b->items[i].done = 0;
    for (long r = 0; r < e->size; r++)
        for (size_t i = 0; i < b->n; i++) {
            struct engine_item *it = &b->items[i];
            size_t n = it->t->counts[r] * tensor_item (it->t);
            if (it->task && batch_write ((char *)batch_target (it->task) + it->done, from, n) < 0)
                return errorf (err, "%.80s cannot be written", it->name->text);
            it->done += n;
            from += n;
        }
    return 0;
}

const struct batch_steps batch_steps_gather = { pack_gather, gather_batch, unpack_gather };

static size_t batch_bytes (const struct engine_batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += tensor_weight (b->items[i].t);
    return n;
}

static int pack_broadcast (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    const struct engine_item *it = b->items;
    bool is_root = it->t->root == e->rank;
    char *to;

    if (b->n == 1 && it->task) {
        b->in = is_root ? it->task->in : batch_target (it->task);
        b->out = (void *)b->in;
        if (!memory_ops_of (b->out))
            return 0;
    }
    if (!(to = engine_buffer_room (&e->slots[b->slot][0], batch_bytes (b))))
        return errorf (err, "no memory to fuse tensors");
    b->out = to;
    for (size_t i = 0; is_root && i < b->n; i++) {
        it = &b->items[i];
        if (batch_read (to, it->task->in, tensor_weight (it->t)) < 0)
            return errorf (err, "%.80s cannot be read", it->name->text);
        to += tensor_weight (it->t);
    }
    return 0;
}

static int broadcast_batch (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    return slurmdl_broadcast (e->channel, b->out, batch_bytes (b), b->items->t->root, err);
}

static int unpack_broadcast (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    const char *from = b->out;

    (void)e;
    for (size_t i = 0; i < b->n; i++) {
        const struct engine_item *it = &b->items[i];
        size_t n = tensor_weight (it->t);
        void *to = it->task ? batch_target (it->task) : NULL;
        if (to && to != from && batch_write (to, from, n) < 0)
            return errorf (err, "%.80s cannot be written", it->name->text);
        from += n;
    }
    return 0;
}

const struct batch_steps batch_steps_broadcast = { pack_broadcast, broadcast_batch,
                                                   unpack_broadcast };
