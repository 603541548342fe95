/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors in device memory: together, without the host. */
#include <errno.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/engine/batch.h"

static bool reduces (const struct tensor *t)
{
    return t->what == SLURMDL_ALLREDUCE || t->what == SLURMDL_REDUCE_SCATTER;
}

static double factor_of (const struct tensor *t)
{
    return t->prescale * t->postscale;
}

static bool sums (const struct tensor *t)
{
    return t->op == SLURMDL_SUM || t->op == SLURMDL_AVERAGE;
}

/* A factor of eight bits would be too far from what was asked for. */
static bool scales_well (const struct tensor *t)
{
    return factor_of (t) == 1
           || (sums (t) && t->type != SLURMDL_F8_E4M3 && t->type != SLURMDL_F8_E5M2);
}

bool device_suits (const struct engine *e, const struct engine_batch *b)
{
    const struct tensor *t = b->items->t;

    if (!t->device || t->compression != SLURMDL_PLAIN)
        return false;
    return !reduces (t) || (e->size == 1 ? factor_of (t) == 1 : scales_well (t));
}

/* Of this rank, if it has not joined. */
static const void *memory_of (const struct engine_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->items[i].task)
            return batch_target (b->items[i].task);
    return NULL;
}

int device_find (struct engine *e, const struct engine_batch *b, struct slurmdl_error *err)
{
    const struct tensor *t = b->items->t;
    const struct comm_backend *d;

    if (atomic_load (&e->device) == DEVICE_UNKNOWN
        && comm_find_device (e->channel, memory_of (b), err) < 0)
        return -1;
    d = e->channel->device;
    atomic_store (&e->device, e->size == 1 || (d && d->queue) ? DEVICE_HERE : DEVICE_NONE);
    if (e->size == 1)
        return 1;
    return d && d->queue
           && (!reduces (t) || !d->takes || d->takes (e->channel->device_self, t->type, t->op));
}

static int await_one (struct engine *e, const struct engine_task *t, double deadline,
                      struct slurmdl_error *err)
{
    struct timespec nap = { 0, 50000 };
    int passed;

    while ((passed = t->memory->passed (t->mark)) == 0) {
        if ((errno = engine_code (e)))
            return errorf (err, "the communicator is broken");
        if (monotonic () > deadline) {
            errno = ETIMEDOUT;
            return errorf (err,
                           "rank %ld (%s): the work on its stream before %.80s "
                           "took more than %g s",
                           e->rank, slurmdl_comm_host (e->owner, e->rank), t->name->text,
                           e->timeout);
        }
        nanosleep (&nap, NULL);
    }
    return passed > 0 ? 0
                      : errorf (err,
                                "rank %ld (%s): what its stream had to do "
                                "before %.80s has failed",
                                e->rank, slurmdl_comm_host (e->owner, e->rank), t->name->text);
}

int batch_await (struct engine *e, const struct engine_batch *b, struct slurmdl_error *err)
{
    double deadline = monotonic () + e->timeout;

    for (size_t i = 0; i < b->n; i++) {
        const struct engine_task *t = b->items[i].task;
        if (t && t->mark && await_one (e, t, deadline, err) < 0)
            return -1;
    }
    return 0;
}

static int alone (struct engine *e, const struct engine_batch *b, struct slurmdl_error *err)
{
    if (batch_await (e, b, err) < 0)
        return -1;
    for (size_t i = 0; i < b->n; i++) {
        const struct engine_item *it = &b->items[i];
        if (it->task
            && slurmdl_allgather (e->channel, it->task->in, tensor_weight (it->t),
                                  batch_target (it->task), NULL, err)
                   < 0)
            return -1;
    }
    return 0;
}

int device_run (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    return e->size == 1 ? alone (e, b, err) : queue_run (e, b, err);
}
