/* SPDX-License-Identifier: Apache-2.0 */
/* The node's reduce-scatter and all-gather: each rank has its own parts. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/node/sync.h"
#include "runtime/comm/reduce/reduce.h"

/* Elements of rank r's blocks that step 's' has. */
static size_t part_at (const struct node_work *w, long r, size_t s)
{
    size_t from = s * w->step, all = w->totals[r];

    if (all <= from)
        return 0;
    return all - from < w->step ? all - from : w->step;
}

/* A part of one of a rank's blocks, where it is in the tensor ('whole') and
 * in the row of its blocks. */
typedef void (*piece_f) (char *row, char *whole, size_t bytes);

static void into_row (char *row, char *whole, size_t bytes)
{
    memcpy (row, whole, bytes);
}

static void into_whole (char *row, char *whole, size_t bytes)
{
    memcpy (whole, row, bytes);
}

/* Elements from..from + n of the row of rank r's blocks. */
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

/* What each rank has; NULL: out of memory. */
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

static int run (struct node_work *w, enum node_kind kind, node_step_f put, node_step_f take,
                struct slurmdl_error *err)
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

/* Our own block is where it is; several of them are made a row. */
static void scatter_put (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;
    char *slot = node_slot (n, n->rank, w->first + s);

    for (long r = 0; r < n->size; r++)
        if (r != n->rank || w->layout.blocks > 1)
            each_piece (w, r, s * w->step, part_at (w, r, s), slot + (size_t)r * w->step * w->size,
                        (char *)w->in, into_row);
}

static void scatter_take (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;
    size_t count = part_at (w, n->rank, s), from = s * w->step;
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

    return run (&w, NODE_SCATTER, scatter_put, scatter_take, err);
}

static void gather_put (const struct node_work *w, size_t s)
{
    struct node_group *n = w->node;
    size_t count = part_at (w, n->rank, s);
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
            each_piece (w, r, s * w->step, part_at (w, r, s), node_slot (n, r, w->first + s),
                        w->out, into_whole);
}

int node_allgather (struct node_group *n, const void *in, void *out, const struct node_layout *l,
                    struct slurmdl_error *err)
{
    struct node_work w = {
        .node = n, .in = in, .out = out, .size = 1, .layout = *l, .step = n->chunk, .root = -1
    };

    return run (&w, NODE_GATHER, gather_put, gather_take, err);
}
