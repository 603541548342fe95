/* SPDX-License-Identifier: Apache-2.0 */
/* Commit the training state to memory, and copy slabs to another rank. */
#include "runtime/comm/elastic/elastic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/device_memory.h"
#include "runtime/base/error.h"

/* ---- lists of pieces ---- */

struct elastic_piece *pieces_find (const struct pieces *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp (p->list[i].name, name))
            return &p->list[i];
    return NULL;
}

static struct elastic_piece *pieces_add (struct pieces *p, const struct elastic_piece *like)
{
    struct elastic_piece *list = realloc (p->list, (p->n + 1) * sizeof (*list));
    struct elastic_piece *new;

    if (!list)
        return NULL;
    p->list = list;
    new = &list[p->n];
    *new = *like;
    /* at least one byte, so that NULL means out of memory */
    if (!(new->data = malloc (like->bytes + 1)))
        return NULL;
    p->n++;
    return new;
}

static void pieces_cut (struct pieces *p, size_t n)
{
    while (p->n > n)
        free (p->list[--p->n].data);
}

void pieces_free (struct pieces *p)
{
    pieces_cut (p, 0);
    free (p->list);
    *p = (struct pieces){ NULL, 0 };
}

void slot_clear (struct slot *s)
{
    pieces_free (&s->own);
    pieces_free (&s->copies);
    *s = (struct slot){ 0 };
}

/* Do not compare the structs with memcmp(): they have gaps. */
int box_compare (const struct slab *a, const struct slab *b)
{
    int c = memcmp (a->offset, b->offset, sizeof (a->offset));

    if (a->ndims != b->ndims)
        return a->ndims < b->ndims ? -1 : 1;
    return c ? c : memcmp (a->dims, b->dims, sizeof (a->dims));
}

bool piece_is_same (const struct elastic_piece *a, const struct elastic_piece *b)
{
    return a->kind == b->kind && a->type == b->type && a->bytes == b->bytes
           && !strcmp (a->name, b->name) && box_compare (&a->box, &b->box) == 0
           && !memcmp (a->dims, b->dims, sizeof (a->dims));
}

/* Make the pieces of 'p' after the first 'keep' match the 'n' in 'like'.  Reuse the
 * memory of pieces that are the same, which is the usual case.
 */
static int shape_pieces (struct pieces *p, size_t keep, const struct elastic_piece *like, size_t n)
{
    size_t same = keep, end = keep + n;

    while (same < end && same < p->n && piece_is_same (&p->list[same], like))
        same++, like++;
    pieces_cut (p, same);
    for (; p->n < end; like++)
        if (!pieces_add (p, like))
            return -1;
    return 0;
}

/* ---- copies ---- */

static int piece_load (void *ours, const struct elastic_piece *program)
{
    const struct memory_ops *ops = memory_ops_of (program->data);

    if (ops)
        return ops->to_host (ours, program->data, program->bytes);
    memcpy (ours, program->data, program->bytes);
    return 0;
}

int piece_store (const struct elastic_piece *program, const void *ours)
{
    const struct memory_ops *ops = memory_ops_of (program->data);

    if (ops)
        return ops->to_device (program->data, ours, program->bytes);
    memcpy (program->data, ours, program->bytes);
    return 0;
}

static int copy_own (struct slurmdl_elastic *e, struct slot *s, struct slurmdl_error *err)
{
    if (shape_pieces (&s->own, 0, e->wants.list, e->wants.n) < 0)
        return errorf (err, "out of memory: no copy of the state");
    for (size_t i = 0; i < e->wants.n; i++)
        if (e->wants.list[i].bytes && piece_load (s->own.list[i].data, &e->wants.list[i]) < 0)
            return errorf (err, "%s: cannot copy it from the device", e->wants.list[i].name);
    return 0;
}

/* ---- the ring ---- */

static long place_on_node (const struct mesh *m, long rank)
{
    return mesh_local_rank (m, rank) * mesh_nodes (m) + mesh_node_of (m, rank);
}

void ring_find (struct slurmdl_elastic *e)
{
    const struct mesh *m = e->comm->mesh;
    long size = mesh_size (m), rank = mesh_rank (m);
    long own = place_on_node (m, rank);
    long first = rank, last = rank;

    e->next = e->before = -1;
    if (size == 1)
        return;
    for (long r = 0; r < size; r++) {
        long p = place_on_node (m, r);
        if (p < place_on_node (m, first))
            first = r;
        if (p > place_on_node (m, last))
            last = r;
        if (p > own && (e->next < 0 || p < place_on_node (m, e->next)))
            e->next = r;
        if (p < own && (e->before < 0 || p > place_on_node (m, e->before)))
            e->before = r;
    }
    if (e->next < 0)
        e->next = first;
    if (e->before < 0)
        e->before = last;
}

/* ---- copying slabs to another rank ---- */

/* The slabs of a list, without data. */
static struct elastic_piece *slabs_of (const struct pieces *p, uint64_t *n)
{
    struct elastic_piece *list = calloc (p->n + 1, sizeof (*list));

    *n = 0;
    for (size_t i = 0; list && i < p->n; i++)
        if (p->list[i].kind == PIECE_SHARD) {
            list[*n] = p->list[i];
            list[(*n)++].data = NULL;
        }
    return list;
}

/* Send to one rank and receive from another at once; -1 means none. */
static int exchange_slabs (struct slurmdl_elastic *e, const long peers[2], const void *out,
                           size_t nout, void *in, size_t nin, struct slurmdl_error *err)
{
    struct mesh *m = e->comm->mesh;
    bool to = peers[0] >= 0 && nout > 0, from = peers[1] >= 0 && nin > 0;

    if (to && from)
        return mesh_exchange (m, peers[0], out, nout, peers[1], in, nin, err);
    if (to)
        return mesh_send (m, peers[0], out, nout, err);
    return from ? mesh_recv (m, peers[1], in, nin, err) : 0;
}

/* Send the data of our slabs, and receive the copies from 'k' on.  The lists may
 * differ in length.
 */
static int pass_data (struct slurmdl_elastic *e, const long peers[2], struct slot *s, size_t k,
                      struct slurmdl_error *err)
{
    size_t i = 0;

    for (;;) {
        const struct elastic_piece *out = NULL, *in = NULL;
        while (peers[0] >= 0 && i < s->own.n && !out)
            if (s->own.list[i++].kind == PIECE_SHARD)
                out = &s->own.list[i - 1];
        if (peers[1] >= 0 && k < s->copies.n)
            in = &s->copies.list[k++];
        if (!out && !in)
            return 0;
        if (exchange_slabs (e, peers, out ? out->data : NULL, out ? out->bytes : 0,
                            in ? in->data : NULL, in ? in->bytes : 0, err)
            < 0)
            return -1;
    }
}

/* Send our slabs to peers[0].  Receive those of peers[1] into the copies, after the
 * first 'keep' of them.
 */
static int pass_slabs (struct slurmdl_elastic *e, const long peers[2], struct slot *s, size_t keep,
                       struct slurmdl_error *err)
{
    uint64_t out = 0, in = 0;
    struct elastic_piece *mine = slabs_of (&s->own, &out), *theirs = NULL;
    int rv = -1;

    if (!mine) {
        errorf (err, "out of memory");
        goto done;
    }
    if (exchange_slabs (e, peers, &out, sizeof (out), &in, sizeof (in), err) < 0)
        goto done;
    if (in > 1 << 20 || !(theirs = calloc (in + 1, sizeof (*theirs)))) {
        errorf (err, "out of memory");
        goto done;
    }
    if (exchange_slabs (e, peers, mine, out * sizeof (*mine), theirs, in * sizeof (*theirs), err)
        < 0)
        goto done;
    if (shape_pieces (&s->copies, keep, theirs, in) < 0)
        errorf (err, "out of memory: no copies of another rank's slabs");
    else
        rv = pass_data (e, peers, s, keep, err);
done:
    free (mine);
    free (theirs);
    return rv;
}

/* The last ranks, which are to leave, hand their slabs to the others in turn. */
static int hand_over_slabs (struct slurmdl_elastic *e, struct slot *s, long stay,
                            struct slurmdl_error *err)
{
    long size = e->membership.generation->size;

    for (long r = stay; r < size; r++) {
        long taker = r % stay;
        long peers[2] = { e->membership.rank == r ? taker : -1,
                          e->membership.rank == taker ? r : -1 };
        if ((peers[0] >= 0 || peers[1] >= 0) && pass_slabs (e, peers, s, s->copies.n, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- a commit ---- */

/* Everybody has arrived, so all ranks have their parts of the commit. */
static int agree_on_resize (struct slurmdl_elastic *e, int64_t step, long *request,
                            struct slurmdl_error *err)
{
    int64_t all[3] = { *request, step, -step };

    if (slurmdl_allreduce (e->comm, all, all, 3, SLURMDL_I64, SLURMDL_MAX, err) < 0)
        return -1;
    *request = (long)all[0];
    if (*request == REQUEST_OVER) {
        errno = ESTALE;
        return errorf (err,
                       "generation %lld has ended: the other ranks declared "
                       "this rank lost and formed a new one",
                       (long long)e->membership.generation->number);
    }
    if (all[1] == -all[2])
        return 0;
    errno = EPROTO;
    return errorf (err, "ranks commit different steps, from %lld to %lld", (long long)-all[2],
                   (long long)all[1]);
}

int state_commit (struct slurmdl_elastic *e, int64_t step, long *request, struct slurmdl_error *err)
{
    int which = e->slots[e->newest].id ? !e->newest : e->newest;
    const long ring[2] = { e->next, e->before };
    struct slot *s = &e->slots[which];

    s->id = 0;
    s->step = step;
    if (copy_own (e, s, err) < 0 || (e->next >= 0 && pass_slabs (e, ring, s, 0, err) < 0))
        return -1;
    s->id = e->membership.generation->number << 32 | ++e->commits;
    if (agree_on_resize (e, step, request, err) < 0)
        return -1;
    e->newest = which;
    return *request > 0 && *request < e->membership.generation->size
               ? hand_over_slabs (e, s, *request, err)
               : 0;
}
