/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives within a node: what goes through which slot, and when. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/native/native.h"
#include "runtime/comm/reduce/reduce.h"

/* Up to this many bytes of all ranks together, each rank reduces everything. */
enum { SMALL = 32 << 10 };
/* Parts of a chunk begin at multiples of this many elements. */
enum { GRAIN = 64 };

static uint64_t mix_hash (uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15;
    return h ^ h >> 29;
}

/* Reserve the step numbers.  Neighbours compare the arguments. */
static void node_begin (struct node_work *w, enum node_kind kind, uint64_t n, int type, int op)
{
    struct node_group *node = w->node;
    uint64_t h = mix_hash ((uint64_t)kind + 1, n);

    h = mix_hash (mix_hash (h, (uint64_t)type), (uint64_t)op);
    node->call = mix_hash (h, (uint64_t)w->root);
    w->first = node->step;
    node->step += w->steps;
}

/* Both pointers may be NULL if there is nothing to copy. */
static void copy_nonempty (char *to, const char *from, size_t n)
{
    if (n > 0)
        memcpy (to, from, n);
}

static size_t least_size (size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t step_count (size_t n, size_t step)
{
    return (n + step - 1) / step;
}

/* ---- all-reduce and reduce ---- */

/* The number of elements in step 's'. slice_at() returns those that rank 'r' reduces. */
static size_t length_at (const struct node_work *w, size_t s)
{
    return least_size (w->step, w->n - s * w->step);
}

static void slice_at (const struct node_work *w, size_t s, long r, size_t *from, size_t *n)
{
    size_t all = length_at (w, s), size = (size_t)w->node->size;
    size_t each = ((all + size - 1) / size + GRAIN - 1) / GRAIN * GRAIN;

    *from = least_size (all, (size_t)r * each);
    *n = least_size (each, all - *from);
}

/* Publish everything except what we reduce ourselves. */
static uint64_t publish_slice (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;
    char *slot = node_slot (n, n->rank, w->first + s);
    const char *in = w->in + s * w->step * w->size;
    size_t from, count, after;

    slice_at (w, s, n->rank, &from, &count);
    after = (from + count) * w->size;
    copy_nonempty (slot, in, from * w->size);
    copy_nonempty (slot + after, in + after, length_at (w, s) * w->size - after);
    return node_barrier_arrive (n);
}

static uint64_t reduce_slice (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;
    size_t from, count;
    char *to;

    slice_at (w, s, n->rank, &from, &count);
    to = node_result (n, w->first + s) + from * w->size;
    for (long r = 0; r < n->size; r++)
        n->parts[r] = node_slot (n, r, w->first + s) + from * w->size;
    n->parts[n->rank] = w->in + (s * w->step + from) * w->size;
    reduce_many (to, n->parts, (size_t)n->size, count, w->type, w->op);
    if (w->factor != 1)
        reduce_scale (to, count, w->type, w->factor);
    return node_barrier_arrive (n);
}

static void reduce_slices (const struct node_work *w, size_t s)
{
    if (w->root < 0 || w->root == w->node->rank)
        copy_nonempty (w->out + s * w->step * w->size, node_result (w->node, w->first + s),
                       length_at (w, s) * w->size);
}

/* Publish the next step before waiting for this one, and collect the last result
 * while the others reduce.
 */
static int reduce_steps (const struct node_work *w, struct slurmdl_error *err)
{
    uint64_t in = publish_slice (w, 0), out = 0;

    for (size_t s = 0; s < w->steps; s++) {
        uint64_t next = s + 1 < w->steps ? publish_slice (w, s + 1) : 0, last = out;

        if (node_barrier_wait (w->node, in, err) < 0)
            return -1;
        out = reduce_slice (w, s);
        if (s > 0) {
            if (node_barrier_wait (w->node, last, err) < 0)
                return -1;
            reduce_slices (w, s - 1);
        }
        in = next;
    }
    if (node_barrier_wait (w->node, out, err) < 0)
        return -1;
    reduce_slices (w, w->steps - 1);
    return 0;
}

/* Small reductions need only one barrier: every rank sees all data and reduces them
 * in the same order.
 */
static int reduce_small (const struct node_work *w, struct slurmdl_error *err)
{
    struct node_group *n = w->node;

    copy_nonempty (node_slot (n, n->rank, w->first), w->in, w->n * w->size);
    if (node_barrier_wait (n, node_barrier_arrive (n), err) < 0)
        return -1;
    if (w->root >= 0 && w->root != n->rank)
        return 0;
    for (long r = 0; r < n->size; r++)
        n->parts[r] = node_slot (n, r, w->first);
    reduce_many (w->out, n->parts, (size_t)n->size, w->n, w->type, w->op);
    if (w->factor != 1)
        reduce_scale (w->out, w->n, w->type, w->factor);
    return 0;
}

/* The factor at the end of a reduction. */
static double node_factor (const struct node_group *n, enum slurmdl_op op)
{
    return op == SLURMDL_AVERAGE ? 1.0 / (double)n->size : 1;
}

static int reduce_to (struct node_group *n, const struct collective *c, long root,
                      struct slurmdl_error *err)
{
    size_t size = slurmdl_type_size (c->type);
    struct node_work w = { .node = n,
                           .in = c->in,
                           .out = c->out,
                           .size = size,
                           .type = c->type,
                           .op = c->op,
                           .factor = node_factor (n, c->op),
                           .n = c->n,
                           .step = n->chunk / size,
                           .root = root };
    bool small = c->n * size * (size_t)n->size <= SMALL;

    if (c->n == 0)
        return 0;
    w.steps = step_count (c->n, w.step);
    node_begin (&w, NODE_REDUCE, c->n, (int)c->type, (int)c->op);
    return small ? reduce_small (&w, err) : reduce_steps (&w, err);
}

static int node_reduce (struct node_group *n, const struct collective *c, struct slurmdl_error *err)
{
    return reduce_to (n, c, c->root, err);
}

static int node_allreduce (struct node_group *n, const struct collective *c,
                           struct slurmdl_error *err)
{
    return reduce_to (n, c, -1, err);
}

/* ---- steps with one barrier each ---- */

static int node_each_step (const struct node_work *w, node_step_f put, node_step_f take,
                           struct slurmdl_error *err)
{
    uint64_t here, next = 0;

    if (w->steps == 0)
        return 0;
    put (w, 0);
    here = node_barrier_arrive (w->node);
    for (size_t s = 0; s < w->steps; s++) {
        if (s + 1 < w->steps) {
            put (w, s + 1);
            next = node_barrier_arrive (w->node);
        }
        if (node_barrier_wait (w->node, here, err) < 0)
            return -1;
        take (w, s);
        here = next;
    }
    return 0;
}

/* Elements per step if each rank has a part of its slot for each other rank. */
static size_t node_step_of (const struct node_group *n, size_t size)
{
    size_t step = n->chunk / size / (size_t)n->size;

    return step > GRAIN ? step / GRAIN * GRAIN : step;
}

/* ---- broadcast ---- */

static void root_put (const struct node_work *w, size_t s)
{
    if (w->root == w->node->rank)
        copy_nonempty (node_slot (w->node, w->root, w->first + s), w->in + s * w->step,
                       length_at (w, s));
}

static void root_take (const struct node_work *w, size_t s)
{
    if (w->root != w->node->rank)
        copy_nonempty (w->out + s * w->step, node_slot (w->node, w->root, w->first + s),
                       length_at (w, s));
}

static int node_broadcast (struct node_group *n, const struct collective *c,
                           struct slurmdl_error *err)
{
    struct node_work w = { .node = n,
                           .in = c->out,
                           .out = c->out,
                           .size = 1,
                           .n = c->n,
                           .step = n->chunk,
                           .steps = step_count (c->n, n->chunk),
                           .root = c->root };

    node_begin (&w, NODE_BROADCAST, c->n, 0, 0);
    return node_each_step (&w, root_put, root_take, err);
}

/* ---- all-to-all ---- */

/* w.layout describes what we send; this describes what we receive. */
struct node_exchange {
    struct node_work w;
    const size_t *from, *places;
};

static size_t step_part (size_t all, size_t s, size_t step)
{
    return all > s * step ? least_size (step, all - s * step) : 0;
}

static void exchange_put (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;
    char *slot = node_slot (n, n->rank, w->first + s);

    for (long r = 0; r < n->size; r++)
        if (r != n->rank)
            copy_nonempty (slot + (size_t)r * w->step, w->in + w->layout.starts[r] + s * w->step,
                           step_part (w->layout.counts[r], s, w->step));
}

static void exchange_take (const struct node_work *w, size_t s)
{
    const struct node_exchange *x = (const struct node_exchange *)w;
    struct node_group *n = w->node;

    for (long r = 0; r < n->size; r++)
        if (r != n->rank)
            copy_nonempty (w->out + x->places[r] + s * w->step,
                           node_slot (n, r, w->first + s) + (size_t)n->rank * w->step,
                           step_part (x->from[r], s, w->step));
}

/* Agree on the most that one rank has for another, so that all ranks make the same
 * number of steps.
 */
static int agree_on_most (struct node_group *n, size_t *most, struct slurmdl_error *err)
{
    struct node_work w = { .node = n, .root = -1 };
    uint64_t barrier;

    node_begin (&w, NODE_ALLTOALL, 0, 0, 0);
    n->value = *most;
    barrier = node_barrier_arrive (n);
    if (node_barrier_wait (n, barrier, err) < 0)
        return -1;
    for (long r = 0; r < n->size; r++)
        if (node_barrier_value (n, r, barrier) > *most)
            *most = node_barrier_value (n, r, barrier);
    return 0;
}

/* Set 'starts' to the prefix sums of 'counts'.  Returns the largest count. */
static size_t sum_counts (const size_t *counts, long size, size_t *starts)
{
    size_t at = 0, most = 0;

    for (long r = 0; r < size; r++) {
        starts[r] = at;
        at += counts[r];
        most = counts[r] > most ? counts[r] : most;
    }
    return most;
}

static int node_alltoall (struct node_group *n, const struct collective *c,
                          struct slurmdl_error *err)
{
    size_t *starts = calloc (2 * (size_t)n->size, sizeof (*starts));
    size_t *places = starts + n->size, most;
    struct node_exchange x = { .w = { .node = n,
                                      .in = c->in,
                                      .out = c->out,
                                      .size = 1,
                                      .layout = { 1, starts, c->counts },
                                      .step = node_step_of (n, 1),
                                      .root = -1 },
                               .from = c->from,
                               .places = places };
    int rv = -1;

    if (!starts)
        return errorf (err, "out of memory");
    most = sum_counts (c->counts, n->size, starts);
    sum_counts (c->from, n->size, places);
    if (agree_on_most (n, &most, err) < 0)
        goto out;
    copy_nonempty (x.w.out + places[n->rank], x.w.in + starts[n->rank], c->counts[n->rank]);
    x.w.steps = step_count (most, x.w.step);
    node_begin (&x.w, NODE_ALLTOALL, most, 0, 0);
    rv = node_each_step (&x.w, exchange_put, exchange_take, err);
out:
    free (starts);
    return rv;
}

static int node_barrier (struct node_group *n, const struct collective *c,
                         struct slurmdl_error *err)
{
    struct node_work w = { .node = n, .root = -1 };

    (void)c;
    node_begin (&w, NODE_BARRIER, 0, 0, 0);
    return node_barrier_wait (n, node_barrier_arrive (n), err);
}

int node_run (struct node_group *n, const struct collective *c, struct slurmdl_error *err)
{
    static int (*const run[COMM_KINDS]) (struct node_group *, const struct collective *,
                                         struct slurmdl_error *) = {
        [COMM_ALLREDUCE] = node_allreduce, [COMM_REDUCE] = node_reduce,
        [COMM_BROADCAST] = node_broadcast, [COMM_ALLTOALL] = node_alltoall,
        [COMM_BARRIER] = node_barrier,
    };

    return run[c->what](n, c, err);
}

/* The number of elements of rank r's blocks in step 's'. */
static size_t rank_part (const struct node_work *w, long r, size_t s)
{
    size_t from = s * w->step, all = w->totals[r];

    if (all <= from)
        return 0;
    return all - from < w->step ? all - from : w->step;
}

/* Handle a part of one of a rank's blocks, at its place in the tensor ('whole') and
 * in the row of the rank's blocks.
 */
typedef void (*piece_f) (char *row, char *whole, size_t bytes);

static void into_row (char *row, char *whole, size_t bytes)
{
    memcpy (row, whole, bytes);
}

static void into_whole (char *row, char *whole, size_t bytes)
{
    memcpy (whole, row, bytes);
}

/* Call 'f' for the pieces of elements from .. from + n of rank r's row. */
static void each_piece (const struct node_work *w, long r, size_t from, size_t n, char *row,
                        char *whole, piece_f f)
{
    const struct node_layout *l = &w->layout;
    size_t first = (size_t)r * l->blocks, at = 0;

    for (size_t b = first; b < first + l->blocks && n > 0; b++) {
        size_t skip = from > at ? from - at : 0, part;

        at += l->counts[b];
        if (l->counts[b] <= skip)
            continue;
        part = l->counts[b] - skip < n ? l->counts[b] - skip : n;
        f (row, whole + (l->starts[b] + skip) * w->size, part * w->size);
        row += part * w->size;
        from += part;
        n -= part;
    }
}

/* The number of elements of each rank, or NULL if out of memory. */
static size_t *totals_of (const struct node_group *n, const struct node_layout *l, size_t *most)
{
    size_t *totals = calloc ((size_t)n->size, sizeof (*totals));

    *most = 0;
    for (long r = 0; totals && r < n->size; r++) {
        for (size_t b = 0; b < l->blocks; b++)
            totals[r] += l->counts[(size_t)r * l->blocks + b];
        *most = totals[r] > *most ? totals[r] : *most;
    }
    return totals;
}

static int run_node_steps (struct node_work *w, enum node_kind kind, node_step_f put,
                           node_step_f take, struct slurmdl_error *err)
{
    size_t most, *totals = totals_of (w->node, &w->layout, &most);
    int rv;

    if (!totals)
        return errorf (err, "out of memory");
    w->totals = totals;
    w->steps = (most + w->step - 1) / w->step;
    node_begin (w, kind, most, (int)w->type, (int)w->op);
    rv = node_each_step (w, put, take, err);
    free (totals);
    return rv;
}

/* A single block of ours stays in place; several are copied into a row. */
static void scatter_put (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;
    char *slot = node_slot (n, n->rank, w->first + s);

    for (long r = 0; r < n->size; r++)
        if (r != n->rank || w->layout.blocks > 1)
            each_piece (w, r, s * w->step, rank_part (w, r, s),
                        slot + (size_t)r * w->step * w->size, (char *)w->in, into_row);
}

static void scatter_take (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;
    size_t count = rank_part (w, n->rank, s), from = s * w->step;
    char *to;

    if (count == 0)
        return;
    to = w->out + from * w->size;
    for (long r = 0; r < n->size; r++)
        n->parts[r] = node_slot (n, r, w->first + s) + (size_t)n->rank * w->step * w->size;
    if (w->layout.blocks == 1)
        n->parts[n->rank] = w->in + (w->layout.starts[n->rank] + from) * w->size;
    reduce_many (to, n->parts, (size_t)n->size, count, w->type, w->op);
    if (w->factor != 1)
        reduce_scale (to, count, w->type, w->factor);
}

int node_reduce_scatter (struct node_group *n, const struct collective *c, void *out,
                         const struct node_layout *l, struct slurmdl_error *err)
{
    size_t size = slurmdl_type_size (c->type);
    struct node_work w = { .node = n,
                           .in = c->in,
                           .out = out,
                           .size = size,
                           .type = c->type,
                           .op = c->op,
                           .factor = node_factor (n, c->op),
                           .layout = *l,
                           .step = node_step_of (n, size),
                           .root = -1 };

    return run_node_steps (&w, NODE_SCATTER, scatter_put, scatter_take, err);
}

static void gather_put (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;
    size_t count = rank_part (w, n->rank, s);
    char *row;

    if (count == 0)
        return;
    row = (char *)w->in + s * w->step;
    memcpy (node_slot (n, n->rank, w->first + s), row, count);
    if (w->layout.blocks > 1 || row != w->out + w->layout.starts[n->rank] + s * w->step)
        each_piece (w, n->rank, s * w->step, count, row, w->out, into_whole);
}

static void gather_take (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;

    for (long r = 0; r < n->size; r++)
        if (r != n->rank)
            each_piece (w, r, s * w->step, rank_part (w, r, s), node_slot (n, r, w->first + s),
                        w->out, into_whole);
}

int node_allgather (struct node_group *n, const void *in, void *out, const struct node_layout *l,
                    struct slurmdl_error *err)
{
    struct node_work w = {
        .node = n, .in = in, .out = out, .size = 1, .layout = *l, .step = n->chunk, .root = -1
    };

    return run_node_steps (&w, NODE_GATHER, gather_put, gather_take, err);
}
