/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: all ranks' largest values are gathered and added. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/engine/batch.h"
#include "runtime/comm/engine/topk.h"

static double after (const struct engine *e, const struct tensor *t)
{
    return t->op == SLURMDL_AVERAGE ? t->postscale / (double)e->size
                                    : t->postscale;
}

static size_t chosen_bytes (const struct tensor *t)
{
    return top_k_bytes (top_k_count (t->n, t->keep), t->type);
}

static size_t all_chosen (const struct batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += chosen_bytes (b->items[i].t);
    return n;
}

static void *residual_of (const struct item *it)
{
    struct name *n = it->name;

    if (n->residual && n->kept == it->t->n && n->kept_type == it->t->type)
        return n->residual;
    free (n->residual);
    n->residual = calloc (it->t->n + 1, slurmdl_type_size (it->t->type));
    n->kept = it->t->n;
    n->kept_type = it->t->type;
    return n->residual;
}

static int
pack_top_k (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    struct buffer *slot = e->slots[b->slot];
    size_t bytes = all_chosen (b);
    char *to = buffer_room (&slot[0], bytes);

    if (!to || !buffer_room (&slot[1], bytes * (size_t)e->size))
        return errorf (err, "no memory for the largest values");
    memset (to, 0, bytes);
    b->in = to;
    b->out = slot[1].data;
    for (size_t i = 0; i < b->n; i++) {
        const struct item *it = &b->items[i];
        size_t k = top_k_count (it->t->n, it->t->keep);
        const void *in = NULL;
        void *residual = it->task ? residual_of (it) : NULL;
        if (it->task) {
            in = batch_view (it->task->in, tensor_weight (it->t), &slot[1]);
            b->out = slot[1].data;
        }
        if (it->task && ((!in && it->t->n) || !residual))
            return errorf (err, "%.80s cannot be read", it->name->text);
        if (in)
            top_k_choose (
                residual, in, it->t->prescale, it->t->n, k, it->t->type, to);
        to += chosen_bytes (it->t);
    }
    if (!(b->out = buffer_room (&slot[1], bytes * (size_t)e->size)))
        return errorf (err, "no memory for the largest values");
    return 0;
}

static int
run_top_k (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    return slurmdl_allgather (
        e->channel, b->in, all_chosen (b), b->out, NULL, err);
}

static int
unpack_top_k (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    size_t each = all_chosen (b);
    const char *from = b->out;

    for (size_t i = 0; i < b->n; i++) {
        const struct item *it = &b->items[i];
        size_t n = tensor_weight (it->t);
        size_t k = top_k_count (it->t->n, it->t->keep);
        void *to = it->task ? batch_target (it->task) : NULL;
        void *sum = to;
        if (to && n && memory_ops_of (to))
            sum = buffer_room (&e->slots[b->slot][0], n);
        if (to && !sum)
            return errorf (err, "no memory for the largest values");
        if (to) {
            memset (sum, 0, n);
            for (long r = 0; r < e->size; r++)
                top_k_add (
                    sum, from + (size_t)r * each, it->t->n, k, it->t->type);
            batch_scale (sum, sum, it->t->n, it->t->type, after (e, it->t));
            if (batch_write (to, sum, n) < 0)
                return errorf (err, "%.80s cannot be written", it->name->text);
        }
        from += chosen_bytes (it->t);
    }
    return 0;
}

const struct steps steps_largest = { pack_top_k, run_top_k, unpack_top_k };
