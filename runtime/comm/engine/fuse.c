/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: all-reduce, and reduce-scatter, of several at once. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/engine/batch.h"
#include "runtime/comm/reduce/reduce.h"

enum { CHUNK = 1024 }; /* elements that stay in the cache */

static enum slurmdl_type wire_type (const struct tensor *t)
{
    if (t->compression == SLURMDL_AS_F16)
        return SLURMDL_F16;
    return t->compression == SLURMDL_AS_BF16 ? SLURMDL_BF16 : t->type;
}

/* Averages are made of what has its full width again. */
static enum slurmdl_op wire_op (const struct tensor *t)
{
    bool later = t->op == SLURMDL_AVERAGE && wire_type (t) != t->type;

    return later ? SLURMDL_SUM : t->op;
}

static double scale_after (const struct engine *e, const struct tensor *t)
{
    if (t->op == SLURMDL_AVERAGE && wire_type (t) != t->type)
        return t->postscale / (double)e->size;
    return t->postscale;
}

/* Scaled before it is rounded. */
static void narrow (void *out, enum slurmdl_type wire, const void *in, enum slurmdl_type type,
                    size_t n, double factor)
{
    size_t size = slurmdl_type_size (type);
    double chunk[CHUNK];

    if (wire == type) {
        batch_scale (out, in, n, type, factor);
        return;
    }
    if (factor == 1) {
        reduce_convert (out, wire, in, type, n);
        return;
    }
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        memcpy (chunk, (const char *)in + i * size, some * size);
        reduce_scale (chunk, some, type, factor);
        reduce_convert ((char *)out + i * slurmdl_type_size (wire), wire, chunk, type, some);
    }
}

static void widen (void *out, enum slurmdl_type type, const void *in, enum slurmdl_type wire,
                   size_t n, double factor)
{
    if (wire == type) {
        batch_scale (out, in, n, type, factor);
        return;
    }
    reduce_convert (out, type, in, wire, n);
    if (factor != 1)
        reduce_scale (out, n, type, factor);
}

/* One tensor that needs no copy, or only one in its own memory. */
static bool reduce_in_place (struct engine_batch *b)
{
    struct engine_item *it = b->items;
    struct engine_task *task = it->task;

    if (b->n != 1 || !task || wire_type (it->t) != it->t->type)
        return false;
    b->in = task->in;
    b->out = batch_target (task);
    if (!it->t->n || memory_ops_of (b->in) || memory_ops_of (b->out))
        return false;
    if (it->t->prescale != 1) {
        batch_scale (b->out, b->in, it->t->n, it->t->type, it->t->prescale);
        b->in = b->out;
    }
    return true;
}

static int pack_reduce (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    enum slurmdl_type wire = wire_type (b->items->t);
    size_t each = slurmdl_type_size (wire);
    char *to;

    if (reduce_in_place (b))
        return 0;
    if (!(to = engine_buffer_room (&e->slots[b->slot][0], batch_elements (b) * each)))
        return errorf (err, "no memory to put tensors together");
    b->in = b->out = to;
    for (size_t i = 0; i < b->n; i++) {
        const struct engine_item *it = &b->items[i];
        const void *in = NULL;
        if (it->task
            && !(in = batch_view (it->task->in, tensor_weight (it->t), &e->slots[b->slot][1]))
            && it->t->n)
            return errorf (err, "%.80s cannot be read", it->name->text);
        if (in)
            narrow (to, wire, in, it->t->type, it->t->n, it->t->prescale);
        else
            memset (to, 0, it->t->n * each);
        to += it->t->n * each;
    }
    return 0;
}

static int run_reduce (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    const struct tensor *t = b->items->t;

    return slurmdl_allreduce (e->channel, b->in, b->out, batch_elements (b), wire_type (t),
                              wire_op (t), err);
}

/* Elements of the result, from host memory to wherever they belong. */
static int deliver (struct engine *e, struct engine_batch *b, const struct engine_item *it,
                    const void *from, size_t n)
{
    enum slurmdl_type type = it->t->type;
    struct engine_buffer *between = &e->slots[b->slot][1];
    void *to = it->task ? batch_target (it->task) : NULL;
    size_t bytes = n * slurmdl_type_size (type);

    if (!to || !n)
        return 0;
    if (!memory_ops_of (to)) {
        widen (to, type, from, wire_type (it->t), n, scale_after (e, it->t));
        return 0;
    }
    if (!engine_buffer_room (between, bytes))
        return -1;
    widen (between->data, type, from, wire_type (it->t), n, scale_after (e, it->t));
    return batch_write (to, between->data, bytes);
}

static int unpack_reduce (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    const char *from = b->out;

    for (size_t i = 0; i < b->n; i++) {
        const struct engine_item *it = &b->items[i];
        if (deliver (e, b, it, from, it->t->n) < 0)
            return errorf (err, "%.80s cannot be written", it->name->text);
        from += it->t->n * slurmdl_type_size (wire_type (it->t));
    }
    return 0;
}

const struct batch_steps batch_steps_reduce = { pack_reduce, run_reduce, unpack_reduce };

/* ---- reduce-scatter: the parts of each rank, of all tensors, together ---- */

static int pack_scatter (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    size_t each = slurmdl_type_size (b->items->t->type);
    size_t total = batch_elements (b) * each;
    char *to = engine_buffer_room (&e->slots[b->slot][0], total);

    if (!to || !engine_buffer_room (&e->slots[b->slot][1], total))
        return errorf (err, "no memory to put tensors together");
    b->in = to;
    b->out = e->slots[b->slot][1].data;
    for (long r = 0; r < e->size; r++)
        for (size_t i = 0; i < b->n; i++) {
            const struct engine_item *it = &b->items[i];
            size_t n = batch_part (e, it->t, r);
            size_t begin = batch_part_at (e, it->t, r) * each;
            if (!it->task)
                memset (to, 0, n * each);
            else if (batch_read (to, (const char *)it->task->in + begin, n * each) < 0)
                return errorf (err, "%.80s cannot be read", it->name->text);
            if (it->t->prescale != 1)
                reduce_scale (to, n, it->t->type, it->t->prescale);
            to += n * each;
        }
    return 0;
}

static int run_scatter (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    const struct tensor *t = b->items->t;
    size_t *counts = calloc ((size_t)e->size, sizeof (*counts));
    int rv;

    if (!counts)
        return errorf (err, "no memory for a reduce-scatter");
    for (long r = 0; r < e->size; r++)
        for (size_t i = 0; i < b->n; i++)
            counts[r] += batch_part (e, b->items[i].t, r);
    rv = slurmdl_reduce_scatter (e->channel, b->in, b->out, batch_elements (b), counts, t->type,
                                 t->op, err);
    free (counts);
    return rv;
}

static int unpack_scatter (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    size_t each = slurmdl_type_size (b->items->t->type);
    char *from = b->out;

    for (size_t i = 0; i < b->n; i++) {
        const struct engine_item *it = &b->items[i];
        size_t n = batch_part (e, it->t, e->rank);
        if (it->t->postscale != 1)
            reduce_scale (from, n, it->t->type, it->t->postscale);
        if (it->task && batch_write (batch_target (it->task), from, n * each) < 0)
            return errorf (err, "%.80s cannot be written", it->name->text);
        from += n * each;
    }
    return 0;
}

const struct batch_steps batch_steps_scatter = { pack_scatter, run_scatter, unpack_scatter };
