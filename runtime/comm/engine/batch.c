/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of named tensors: memory, and whose steps it takes. */
#include "runtime/comm/engine/batch.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"

static size_t result_elements (const struct engine *e, const struct tensor *t)
{
    if (t->what == SLURMDL_REDUCE_SCATTER)
        return batch_part (e, t, e->rank);
    return tensor_total (t, e->size);
}

static int make_result (const struct engine *e, const struct engine_item *it,
                        struct slurmdl_error *err)
{
    struct engine_task *t = it->task;
    size_t n = result_elements (e, it->t);
    size_t each = sizeof (*t->counts);

    if (!t || !t->take)
        return 0;
    t->nresult = n;
    t->result = malloc (n * tensor_item (it->t) + 1);
    if (it->t->counts && (t->counts = malloc ((size_t)e->size * each)))
        memcpy (t->counts, it->t->counts, (size_t)e->size * each);
    if (t->result && (t->counts || !it->t->counts))
        return 0;
    return errorf (err, "no memory for the result of %.80s", it->name->text);
}

static const struct batch_steps *const steps[] = {
    [SLURMDL_ALLREDUCE] = &batch_steps_reduce,
    [SLURMDL_ALLGATHER] = &batch_steps_gather,
    [SLURMDL_BROADCAST] = &batch_steps_broadcast,
    [SLURMDL_REDUCE_SCATTER] = &batch_steps_scatter,
};

static const struct batch_steps *steps_of (const struct engine_batch *b)
{
    return steps[b->items->t->what];
}

/* Where it goes is known, or the executor finds out. */
static bool is_for_device (const struct engine *e, const struct engine_batch *b)
{
    return atomic_load (&e->device) != DEVICE_NONE && device_suits (e, b);
}

bool batch_may_pack (const struct engine *e, const struct engine_batch *b)
{
    if (is_for_device (e, b))
        return true;
    for (size_t i = 0; i < b->n; i++) {
        const struct engine_task *t = b->items[i].task;
        if (t && t->mark && t->memory->passed (t->mark) == 0)
            return false;
    }
    return true;
}

static int pack_on_host (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    return batch_await (e, b, err) < 0 ? -1 : steps_of (b)->pack (e, b, err);
}

int batch_pack (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    for (size_t i = 0; i < b->n; i++)
        if (make_result (e, &b->items[i], err) < 0)
            return -1;
    b->device = is_for_device (e, b);
    return b->device ? 0 : pack_on_host (e, b, err);
}

int batch_run (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    int there = b->device ? device_find (e, b, err) : 0;

    if (there < 0)
        return -1;
    if (there)
        return device_run (e, b, err);
    if (b->device && pack_on_host (e, b, err) < 0)
        return -1;
    b->device = false;
    return steps_of (b)->run (e, b, err);
}

int batch_unpack (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    return b->device ? 0 : steps_of (b)->unpack (e, b, err);
}
