/* SPDX-License-Identifier: Apache-2.0 */
/* Run a batch of named tensors: pack small ones into one buffer, on the host or on
 * a device, reduce or move it, and unpack it.
 */
#include "runtime/comm/engine/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/reduce/reduce.h"

static bool tensor_reduces (const struct tensor *t)
{
    return t->what == SLURMDL_ALLREDUCE || t->what == SLURMDL_REDUCE_SCATTER;
}

static double factor_of (const struct tensor *t)
{
    return t->prescale * t->postscale;
}

static bool is_sum (const struct tensor *t)
{
    return t->op == SLURMDL_SUM || t->op == SLURMDL_AVERAGE;
}

/* Eight-bit types cannot hold a factor accurately enough. */
static bool scales_well (const struct tensor *t)
{
    return factor_of (t) == 1
           || (is_sum (t) && t->type != SLURMDL_F8_E4M3 && t->type != SLURMDL_F8_E5M2);
}

/* Whether the batch can run in device memory, without the host.  All ranks answer
 * the same.
 */
static bool device_suits (const struct engine *e, const struct engine_batch *b)
{
    const struct tensor *t = b->items->t;

    if (!t->device || t->compression != SLURMDL_PLAIN)
        return false;
    return !tensor_reduces (t) || (e->size == 1 ? factor_of (t) == 1 : scales_well (t));
}

/* Memory of this rank's tensors, or NULL if it has joined. */
static const void *batch_memory (const struct engine_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->items[i].task)
            return batch_target (b->items[i].task);
    return NULL;
}

/* Sets '*takes' to whether the library of the device reduces this batch. */
static int device_takes_batch (struct engine *e, const struct engine_batch *b, bool *takes,
                               struct slurmdl_error *err)
{
    const struct tensor *t = b->items->t;
    const struct comm_backend *d;

    if (atomic_load (&e->device) == DEVICE_UNKNOWN
        && comm_find_device (e->channel, batch_memory (b), err) < 0)
        return -1;
    d = e->channel->device;
    atomic_store (&e->device, e->size == 1 || (d && d->queue) ? DEVICE_HERE : DEVICE_NONE);
    *takes = e->size == 1
             || (d && d->queue
                 && (!tensor_reduces (t) || !d->takes
                     || d->takes (e->channel->device_self, t->type, t->op)));
    return 0;
}

static int await_one (struct engine *e, const struct engine_task *t, double deadline,
                      struct slurmdl_error *err)
{
    struct timespec nap = { 0, 50000 };
    enum mark_state state;

    while ((state = t->memory->state (t->mark)) == MARK_PENDING) {
        if ((errno = engine_code (e)))
            return errorf (err, "the communicator is broken");
        if (monotonic () > deadline) {
            errno = ETIMEDOUT;
            return errorf (
                err, "rank %ld (%s): the work on its stream before %.80s took more than %g s",
                e->rank, slurmdl_comm_host (e->owner, e->rank), t->name->text, e->timeout);
        }
        nanosleep (&nap, NULL);
    }
    if (state == MARK_PASSED)
        return 0;
    return errorf (err, "rank %ld (%s): the work on its stream before %.80s has failed", e->rank,
                   slurmdl_comm_host (e->owner, e->rank), t->name->text);
}

/* Wait until the streams have released the tensors of the batch. */
static int batch_await (struct engine *e, const struct engine_batch *b, struct slurmdl_error *err)
{
    double deadline = monotonic () + e->timeout;

    for (size_t i = 0; i < b->n; i++) {
        const struct engine_task *t = b->items[i].task;
        if (t && t->mark && await_one (e, t, deadline, err) < 0)
            return -1;
    }
    return 0;
}

static int reduce_alone (struct engine *e, const struct engine_batch *b, struct slurmdl_error *err)
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

static int device_run (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    return e->size == 1 ? reduce_alone (e, b, err) : queue_run (e, b, err);
}

enum { CHUNK = 1024 }; /* elements that fit into the cache */

static enum slurmdl_type wire_type (const struct tensor *t)
{
    if (t->compression == SLURMDL_AS_F16)
        return SLURMDL_F16;
    return t->compression == SLURMDL_AS_BF16 ? SLURMDL_BF16 : t->type;
}

/* If the data are compressed, divide only after they have their full width again. */
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

/* Scale before rounding. */
static void scale_to_wire (void *out, enum slurmdl_type wire, const void *in,
                           enum slurmdl_type type, size_t n, double factor)
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

static void scale_from_wire (void *out, enum slurmdl_type type, const void *in,
                             enum slurmdl_type wire, size_t n, double factor)
{
    if (wire == type) {
        batch_scale (out, in, n, type, factor);
        return;
    }
    reduce_convert (out, type, in, wire, n);
    if (factor != 1)
        reduce_scale (out, n, type, factor);
}

/* Use a single tensor in place if it needs no copy, or only one in its own memory. */
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
        return errorf (err, "no memory to fuse tensors");
    b->in = b->out = to;
    for (size_t i = 0; i < b->n; i++) {
        const struct engine_item *it = &b->items[i];
        const void *in = NULL;
        if (it->task
            && !(in = batch_view (it->task->in, tensor_weight (it->t), &e->slots[b->slot][1]))
            && it->t->n)
            return errorf (err, "%.80s cannot be read", it->name->text);
        if (in)
            scale_to_wire (to, wire, in, it->t->type, it->t->n, it->t->prescale);
        else
            memset (to, 0, it->t->n * each);
        to += it->t->n * each;
    }
    return 0;
}

static int reduce_packed (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    const struct tensor *t = b->items->t;

    return slurmdl_allreduce (e->channel, b->in, b->out, batch_elements (b), wire_type (t),
                              wire_op (t), err);
}

/* Copy elements of the result from host memory to their destination. */
static int deliver_result (struct engine *e, struct engine_batch *b, const struct engine_item *it,
                           const void *from, size_t n)
{
    enum slurmdl_type type = it->t->type;
    struct engine_buffer *between = &e->slots[b->slot][1];
    void *to = it->task ? batch_target (it->task) : NULL;
    size_t bytes = n * slurmdl_type_size (type);

    if (!to || !n)
        return 0;
    if (!memory_ops_of (to)) {
        scale_from_wire (to, type, from, wire_type (it->t), n, scale_after (e, it->t));
        return 0;
    }
    if (!engine_buffer_room (between, bytes))
        return -1;
    scale_from_wire (between->data, type, from, wire_type (it->t), n, scale_after (e, it->t));
    return batch_write (to, between->data, bytes);
}

static int unpack_reduce (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    const char *from = b->out;

    for (size_t i = 0; i < b->n; i++) {
        const struct engine_item *it = &b->items[i];
        if (deliver_result (e, b, it, from, it->t->n) < 0)
            return errorf (err, "%.80s cannot be written", it->name->text);
        from += it->t->n * slurmdl_type_size (wire_type (it->t));
    }
    return 0;
}

const struct batch_steps batch_steps_reduce = { pack_reduce, reduce_packed, unpack_reduce };

/* ---- reduce-scatter: for each rank, its parts of all tensors together ---- */

static int pack_scatter (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    size_t each = slurmdl_type_size (b->items->t->type);
    size_t total = batch_elements (b) * each;
    char *to = engine_buffer_room (&e->slots[b->slot][0], total);

    if (!to || !engine_buffer_room (&e->slots[b->slot][1], total))
        return errorf (err, "no memory to fuse tensors");
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

static int scatter_packed (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
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

const struct batch_steps batch_steps_scatter = { pack_scatter, scatter_packed, unpack_scatter };

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

static const struct batch_steps *batch_steps_of (const struct engine_batch *b)
{
    return steps[b->items->t->what];
}

/* Whether the batch runs on a device, unless the executor finds out later that it
 * cannot.
 */
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
        if (t && t->mark && t->memory->state (t->mark) == MARK_PENDING)
            return false;
    }
    return true;
}

static int pack_on_host (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    return batch_await (e, b, err) < 0 ? -1 : batch_steps_of (b)->pack (e, b, err);
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
    bool takes = false;

    if (b->device && device_takes_batch (e, b, &takes, err) < 0)
        return -1;
    if (takes)
        return device_run (e, b, err);
    if (b->device && pack_on_host (e, b, err) < 0)
        return -1;
    b->device = false;
    return batch_steps_of (b)->run (e, b, err);
}

int batch_unpack (struct engine *e, struct engine_batch *b, struct slurmdl_error *err)
{
    return b->device ? 0 : batch_steps_of (b)->unpack (e, b, err);
}
