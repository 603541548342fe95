/* SPDX-License-Identifier: Apache-2.0 */
/* Put the tensors of a batch together, reduce them, and take them apart. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/engine.h"
#include "runtime/comm/reduce.h"
#include "runtime/comm/topk.h"
#include "runtime/error.h"

enum { CHUNK = 1024 }; /* elements that stay in the cache */

void *buffer_room (struct buffer *b, size_t n)
{
    if (b->room < n) {
        size_t room = (n + n / 4 + 4095) & ~(size_t)4095;
        void *data = aligned_alloc (4096, room);
        if (!data)
            return NULL;
        free (b->data);
        b->data = data;
        b->room = room;
    }
    return b->data ? b->data : (b->data = calloc (1, 64));
}

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
    if (t->op == SLURMDL_AVERAGE
        && (wire_type (t) != t->type || t->compression == SLURMDL_TOP_K))
        return t->postscale / (double)e->size;
    return t->postscale;
}

static size_t result_elements (const struct engine *e, const struct tensor *t)
{
    size_t rank = (size_t)e->rank;
    size_t size = (size_t)e->size;

    if (t->what == SLURMDL_REDUCE_SCATTER)
        return t->n / size + (rank < t->n % size);
    return tensor_total (t, e->size);
}

static size_t part (const struct engine *e, const struct tensor *t, long rank)
{
    return t->n / (size_t)e->size + ((size_t)rank < t->n % (size_t)e->size);
}

/* ---- memory of tasks ---- */

static int to_host (void *host, const void *from, size_t n)
{
    const struct memory_ops *ops = n ? memory_ops_of (from) : NULL;

    if (ops)
        return ops->begin () | ops->end () | ops->to_host (host, from, n);
    if (n)
        memcpy (host, from, n);
    return 0;
}

static int from_host (void *to, const void *host, size_t n)
{
    const struct memory_ops *ops = n ? memory_ops_of (to) : NULL;

    if (ops)
        return ops->to_device (to, host, n);
    if (n && to != host)
        memmove (to, host, n);
    return 0;
}

/* Host memory that holds what is at 'p'; a copy in 'b' if it must be. */
static const void *on_host (const void *p, size_t n, struct buffer *b)
{
    if (!n || !memory_ops_of (p))
        return p;
    if (!buffer_room (b, n) || to_host (b->data, p, n) < 0)
        return NULL;
    return b->data;
}

static void *target (struct task *t)
{
    return t->take ? t->result : t->out;
}

static int make_result (const struct engine *e,
                        const struct item *it,
                        struct slurmdl_error *err)
{
    struct task *t = it->task;
    size_t n = result_elements (e, it->t);
    size_t each = sizeof (*t->counts);

    if (!t || !t->take)
        return 0;
    t->nresult = n;
    t->result = malloc (n * slurmdl_type_size (it->t->type) + 1);
    if (it->t->counts && (t->counts = malloc ((size_t)e->size * each)))
        memcpy (t->counts, it->t->counts, (size_t)e->size * each);
    if (t->result && (t->counts || !it->t->counts))
        return 0;
    return errorf (err, "no memory for the result of %.80s", it->name->text);
}

/* ---- all-reduce ---- */

static void scale_copy (
    void *out, const void *in, size_t n, enum slurmdl_type type, double factor)
{
    size_t size = slurmdl_type_size (type);

    if (factor == 1) {
        if (n && out != in)
            memcpy (out, in, n * size);
        return;
    }
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        char *to = (char *)out + i * size;
        if (out != in)
            memcpy (to, (const char *)in + i * size, some * size);
        reduce_scale (to, some, type, factor);
    }
}

/* Scaled before it is rounded. */
static void narrow (void *out,
                    enum slurmdl_type wire,
                    const void *in,
                    enum slurmdl_type type,
                    size_t n,
                    double factor)
{
    size_t size = slurmdl_type_size (type);
    double chunk[CHUNK];

    if (wire == type) {
        scale_copy (out, in, n, type, factor);
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
        reduce_convert ((char *)out + i * slurmdl_type_size (wire),
                        wire,
                        chunk,
                        type,
                        some);
    }
}

static void widen (void *out,
                   enum slurmdl_type type,
                   const void *in,
                   enum slurmdl_type wire,
                   size_t n,
                   double factor)
{
    if (wire == type) {
        scale_copy (out, in, n, type, factor);
        return;
    }
    reduce_convert (out, type, in, wire, n);
    if (factor != 1)
        reduce_scale (out, n, type, factor);
}

static size_t elements (const struct batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += b->items[i].t->n;
    return n;
}

/* One tensor that needs no copy, or only one in its own memory. */
static bool reduce_in_place (struct batch *b)
{
    struct item *it = b->items;
    struct task *task = it->task;

    if (b->n != 1 || !task || wire_type (it->t) != it->t->type)
        return false;
    b->in = task->in;
    b->out = target (task);
    if (it->t->device)
        return true;
    if (!it->t->n || memory_ops_of (b->in) || memory_ops_of (b->out))
        return false;
    if (it->t->prescale != 1) {
        scale_copy (b->out, b->in, it->t->n, it->t->type, it->t->prescale);
        b->in = b->out;
    }
    return true;
}

static int
pack_reduce (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    enum slurmdl_type wire = wire_type (b->items->t);
    size_t each = slurmdl_type_size (wire);
    char *to;

    if (reduce_in_place (b))
        return 0;
    if (!(to = buffer_room (&e->slots[b->slot][0], elements (b) * each)))
        return errorf (err, "no memory to put tensors together");
    b->in = b->out = to;
    for (size_t i = 0; i < b->n; i++) {
        const struct item *it = &b->items[i];
        const void *in = NULL;
        if (it->task
            && !(in = on_host (it->task->in,
                               tensor_weight (it->t),
                               &e->slots[b->slot][1]))
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

static int
run_reduce (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    const struct tensor *t = b->items->t;

    return slurmdl_allreduce (e->channel,
                              b->in,
                              b->out,
                              elements (b),
                              wire_type (t),
                              wire_op (t),
                              err);
}

/* Elements of the result, from host memory to wherever they belong. */
static int deliver (struct engine *e,
                    struct batch *b,
                    const struct item *it,
                    const void *from,
                    size_t n)
{
    enum slurmdl_type type = it->t->type;
    struct buffer *between = &e->slots[b->slot][1];
    void *to = it->task ? target (it->task) : NULL;
    size_t bytes = n * slurmdl_type_size (type);

    if (!to || !n)
        return 0;
    if (!memory_ops_of (to)) {
        widen (to, type, from, wire_type (it->t), n, scale_after (e, it->t));
        return 0;
    }
    if (!buffer_room (between, bytes))
        return -1;
    widen (between->data,
           type,
           from,
           wire_type (it->t),
           n,
           scale_after (e, it->t));
    return from_host (to, between->data, bytes);
}

static int
unpack_reduce (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    const char *from = b->out;

    if (b->items->t->device)
        return 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct item *it = &b->items[i];
        if (deliver (e, b, it, from, it->t->n) < 0)
            return errorf (err, "%.80s cannot be written", it->name->text);
        from += it->t->n * slurmdl_type_size (wire_type (it->t));
    }
    return 0;
}

/* ---- reduce-scatter: the parts of each rank, of all tensors, together ---- */

static int
pack_scatter (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    size_t each = slurmdl_type_size (b->items->t->type);
    size_t total = elements (b) * each;
    char *to = buffer_room (&e->slots[b->slot][0], total);
    size_t begin = 0;

    if (!to || !buffer_room (&e->slots[b->slot][1], total))
        return errorf (err, "no memory to put tensors together");
    b->in = to;
    b->out = e->slots[b->slot][1].data;
    for (long r = 0; r < e->size; r++)
        for (size_t i = 0; i < b->n; i++) {
            const struct item *it = &b->items[i];
            size_t n = part (e, it->t, r);
            size_t at = (size_t)r * (it->t->n / (size_t)e->size);
            size_t more = it->t->n % (size_t)e->size;
            at += (size_t)r < more ? (size_t)r : more;
            begin = at * each;
            if (!it->task)
                memset (to, 0, n * each);
            else if (to_host (to, (const char *)it->task->in + begin, n * each)
                     < 0)
                return errorf (err, "%.80s cannot be read", it->name->text);
            if (it->t->prescale != 1)
                reduce_scale (to, n, it->t->type, it->t->prescale);
            to += n * each;
        }
    return 0;
}

static int
run_scatter (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    const struct tensor *t = b->items->t;
    size_t *counts = calloc ((size_t)e->size, sizeof (*counts));
    int rv;

    if (!counts)
        return errorf (err, "no memory for a reduce-scatter");
    for (long r = 0; r < e->size; r++)
        for (size_t i = 0; i < b->n; i++)
            counts[r] += part (e, b->items[i].t, r);
    rv = slurmdl_reduce_scatter (
        e->channel, b->in, b->out, elements (b), counts, t->type, t->op, err);
    free (counts);
    return rv;
}

static int
unpack_scatter (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    size_t each = slurmdl_type_size (b->items->t->type);
    char *from = b->out;

    for (size_t i = 0; i < b->n; i++) {
        const struct item *it = &b->items[i];
        size_t n = part (e, it->t, e->rank);
        if (it->t->postscale != 1)
            reduce_scale (from, n, it->t->type, it->t->postscale);
        if (it->task && from_host (target (it->task), from, n * each) < 0)
            return errorf (err, "%.80s cannot be written", it->name->text);
        from += n * each;
    }
    return 0;
}

/* ---- all-gather: what a rank has, of all tensors, together ---- */

static size_t block (const struct batch *b, long rank)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += b->items[i].t->counts[rank]
             * slurmdl_type_size (b->items[i].t->type);
    return n;
}

static size_t blocks (const struct engine *e, const struct batch *b)
{
    size_t n = 0;

    for (long r = 0; r < e->size; r++)
        n += block (b, r);
    return n;
}

static int
pack_gather (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    const struct item *it = b->items;
    struct buffer *slot = e->slots[b->slot];
    bool direct = b->n == 1 && it->task;
    char *to;

    if (direct && (it->t->device || !memory_ops_of (target (it->task)))
        && (it->t->device || !memory_ops_of (it->task->in))) {
        b->in = it->task->in;
        b->out = target (it->task);
        return 0;
    }
    if (!(to = buffer_room (&slot[0], block (b, e->rank)))
        || !buffer_room (&slot[1], blocks (e, b)))
        return errorf (err, "no memory to put tensors together");
    b->in = to;
    b->out = slot[1].data;
    for (size_t i = 0; i < b->n; i++) {
        size_t n;
        it = &b->items[i];
        n = it->t->counts[e->rank] * slurmdl_type_size (it->t->type);
        if (it->task && to_host (to, it->task->in, n) < 0)
            return errorf (err, "%.80s cannot be read", it->name->text);
        to += n;
    }
    return 0;
}

static int
run_gather (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    size_t *bytes = calloc ((size_t)e->size, sizeof (*bytes));
    int rv;

    if (!bytes)
        return errorf (err, "no memory for an all-gather");
    for (long r = 0; r < e->size; r++)
        bytes[r] = block (b, r);
    rv = slurmdl_allgather (
        e->channel, b->in, bytes[e->rank], b->out, bytes, err);
    free (bytes);
    return rv;
}

static int
unpack_gather (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    const char *from = b->out;

    if (from != e->slots[b->slot][1].data)
        return 0;
    for (size_t i = 0; i < b->n; i++)
        b->items[i].done = 0;
    for (long r = 0; r < e->size; r++)
        for (size_t i = 0; i < b->n; i++) {
            struct item *it = &b->items[i];
            size_t n = it->t->counts[r] * slurmdl_type_size (it->t->type);
            if (it->task
                && from_host ((char *)target (it->task) + it->done, from, n)
                       < 0)
                return errorf (err, "%.80s cannot be written", it->name->text);
            it->done += n;
            from += n;
        }
    return 0;
}

/* ---- broadcast ---- */

static size_t batch_bytes (const struct batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += tensor_weight (b->items[i].t);
    return n;
}

static int
pack_broadcast (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    const struct item *it = b->items;
    bool is_root = it->t->root == e->rank;
    char *to;

    if (b->n == 1 && it->task) {
        b->in = is_root ? it->task->in : target (it->task);
        b->out = (void *)b->in;
        if (it->t->device || !memory_ops_of (b->out))
            return 0;
    }
    if (!(to = buffer_room (&e->slots[b->slot][0], batch_bytes (b))))
        return errorf (err, "no memory to put tensors together");
    b->out = to;
    for (size_t i = 0; is_root && i < b->n; i++) {
        it = &b->items[i];
        if (to_host (to, it->task->in, tensor_weight (it->t)) < 0)
            return errorf (err, "%.80s cannot be read", it->name->text);
        to += tensor_weight (it->t);
    }
    return 0;
}

static int
run_broadcast (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    return slurmdl_broadcast (
        e->channel, b->out, batch_bytes (b), b->items->t->root, err);
}

static int
unpack_broadcast (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    const char *from = b->out;

    (void)e;
    for (size_t i = 0; i < b->n; i++) {
        const struct item *it = &b->items[i];
        size_t n = tensor_weight (it->t);
        void *to = it->task ? target (it->task) : NULL;
        if (to && !it->t->device && to != from && from_host (to, from, n) < 0)
            return errorf (err, "%.80s cannot be written", it->name->text);
        from += n;
    }
    return 0;
}

/* ---- the largest values of each rank ---- */

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
            in = on_host (it->task->in, tensor_weight (it->t), &slot[1]);
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
        void *to = it->task ? target (it->task) : NULL;
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
            scale_copy (
                sum, sum, it->t->n, it->t->type, scale_after (e, it->t));
            if (from_host (to, sum, n) < 0)
                return errorf (err, "%.80s cannot be written", it->name->text);
        }
        from += chosen_bytes (it->t);
    }
    return 0;
}

/* ---- whatever it is ---- */

typedef int step_f (struct engine *, struct batch *, struct slurmdl_error *);

static const struct steps {
    step_f *pack, *run, *unpack;
} steps[] = {
    [SLURMDL_ALLREDUCE] = { pack_reduce, run_reduce, unpack_reduce },
    [SLURMDL_ALLGATHER] = { pack_gather, run_gather, unpack_gather },
    [SLURMDL_BROADCAST] = { pack_broadcast, run_broadcast, unpack_broadcast },
    [SLURMDL_REDUCE_SCATTER] = { pack_scatter, run_scatter, unpack_scatter },
};

static const struct steps top_k = { pack_top_k, run_top_k, unpack_top_k };

static const struct steps *steps_of (const struct batch *b)
{
    const struct tensor *t = b->items->t;

    return t->compression == SLURMDL_TOP_K ? &top_k : &steps[t->what];
}

int batch_pack (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    for (size_t i = 0; i < b->n; i++)
        if (make_result (e, &b->items[i], err) < 0)
            return -1;
    return steps_of (b)->pack (e, b, err);
}

int batch_run (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    return steps_of (b)->run (e, b, err);
}

int batch_unpack (struct engine *e, struct batch *b, struct slurmdl_error *err)
{
    return steps_of (b)->unpack (e, b, err);
}
