/* SPDX-License-Identifier: Apache-2.0 */
/* Move slabs of the training state between ranks. */
#include "runtime/comm/elastic/directory.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"

/* What goes from one rank to another for one tensor. */
struct move {
    const struct elastic_piece *from; /* the box that is there, */
    const struct elastic_piece *to;   /* and the one that is wanted */
};

/* Who gives the box of the entries i .. end to rank 'to'. */
static long box_giver (const struct directory *d, size_t i, size_t end, long to)
{
    for (size_t k = i; k < end; k++)
        if (d->list[k].rank == to)
            return to;
    return d->list[i + (size_t)to % (end - i)].rank;
}

typedef int (*move_f) (const struct move *m, long giver, long taker, void *arg);

/* Each overlap of what there is of a tensor (entries i .. end) and what is
 * wanted of it (w .. wend), the taker's rank first, in one order for all.
 */
static int each_move (const struct directory *d, size_t i, size_t end, size_t w, size_t wend,
                      move_f f, void *arg)
{
    for (; w < wend; w++)
        for (size_t k = i, next; k < end; k = next) {
            struct move m = { &d->list[k].piece, &d->list[w].piece };
            struct slab both;
            int rv;
            next = run_end (d, k, same_box);
            if (slab_overlap (&m.from->box, &m.to->box, &both)
                && (rv = f (&m, box_giver (d, k, next, d->list[w].rank), d->list[w].rank, arg)))
                return rv;
        }
    return 0;
}

struct packing {
    struct slurmdl_elastic *e;
    const struct slot *slot;
    size_t *to, *from; /* bytes */
    size_t *at_out, *at_in;
    unsigned char *out, *in;
    uint64_t size; /* of an element */
    struct elastic_piece *want;
    unsigned char *local; /* of what is wanted, in host memory */
};

static size_t move_bytes (const struct move *m, uint64_t size)
{
    struct slab both;

    slab_overlap (&m->from->box, &m->to->box, &both);
    return slab_elements (&both) * size;
}

static int count_move (const struct move *m, long giver, long taker, void *arg)
{
    struct packing *p = arg;

    if (giver == p->e->membership.rank)
        p->to[taker] += move_bytes (m, p->size);
    if (taker == p->e->membership.rank)
        p->from[giver] += move_bytes (m, p->size);
    return 0;
}

static const struct elastic_piece *held (const struct slot *s, const struct elastic_piece *like)
{
    const struct pieces *lists[] = { &s->own, &s->copies };

    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->n; i++)
            if (piece_is_same (&lists[l]->list[i], like))
                return &lists[l]->list[i];
    return NULL;
}

static int pack (const struct move *m, long giver, long taker, void *arg)
{
    struct packing *p = arg;
    const struct elastic_piece *mine;
    struct slab both;

    if (giver != p->e->membership.rank)
        return 0;
    if (!(mine = held (p->slot, m->from)))
        return -1;
    slab_overlap (&m->from->box, &m->to->box, &both);
    slab_copy (&both, p->out + p->at_out[taker], &mine->box, mine->data, p->size);
    p->at_out[taker] += move_bytes (m, p->size);
    return 0;
}

static int unpack (const struct move *m, long giver, long taker, void *arg)
{
    struct packing *p = arg;
    struct slab both;

    if (taker != p->e->membership.rank)
        return 0;
    slab_overlap (&m->from->box, &m->to->box, &both);
    slab_copy (&m->to->box, p->local, &both, p->in + p->at_in[giver], p->size);
    p->at_in[giver] += move_bytes (m, p->size);
    return 0;
}

static void places (size_t *at, const size_t *bytes, size_t size)
{
    size_t sum = 0;

    for (size_t r = 0; r < size; r++) {
        at[r] = sum;
        sum += bytes[r];
    }
}

static size_t sum (const size_t *bytes, size_t size)
{
    size_t n = 0;

    for (size_t r = 0; r < size; r++)
        n += bytes[r];
    return n;
}

static int move_tensor (struct packing *p, const struct directory *d, const size_t at[4],
                        struct slurmdl_error *err)
{
    size_t size = (size_t)slurmdl_comm_size (p->e->comm);
    int rv = -1;

    memset (p->to, 0, size * sizeof (*p->to));
    memset (p->from, 0, size * sizeof (*p->from));
    each_move (d, at[0], at[1], at[2], at[3], count_move, p);
    places (p->at_out, p->to, size);
    places (p->at_in, p->from, size);
    p->out = malloc (sum (p->to, size) + 1);
    p->in = malloc (sum (p->from, size) + 1);
    p->want = pieces_find (&p->e->wants, d->list[at[0]].piece.name);
    p->local = malloc (p->want ? p->want->bytes + 1 : 1);
    if (!p->out || !p->in || !p->local) {
        errorf (err, "out of memory");
        goto done;
    }
    if (each_move (d, at[0], at[1], at[2], at[3], pack, p) < 0) {
        errorf (err, "an announced slab is missing");
        goto done;
    }
    if (slurmdl_alltoall (p->e->comm, p->out, p->to, p->in, p->from, err) < 0)
        goto done;
    each_move (d, at[0], at[1], at[2], at[3], unpack, p);
    rv = 0;
    if (p->want && p->want->bytes && piece_store (p->want, p->local) < 0)
        rv = errorf (err, "%s: cannot copy it to the device", p->want->name);
done:
    free (p->out);
    free (p->in);
    free (p->local);
    return rv;
}

/* Entries of the name of entry 'i' that are wanted: at[2] .. at[3]. */
static bool find_wants (const struct directory *d, size_t i, size_t at[4])
{
    size_t w = d->n;

    while (w > 0 && d->list[w - 1].id == 0)
        w--;
    while (w < d->n && strcmp (d->list[w].piece.name, d->list[i].piece.name) != 0)
        w++;
    at[2] = w;
    at[3] = w < d->n ? run_end (d, w, same_name) : w;
    return w < d->n;
}

int restore_slabs (struct slurmdl_elastic *e, const struct directory *d, struct slurmdl_error *err)
{
    size_t size = (size_t)slurmdl_comm_size (e->comm);
    size_t *numbers = calloc (size * 4, sizeof (*numbers));
    struct packing p = { .e = e,
                         .slot = elastic_slot (e, d->id),
                         .to = numbers,
                         .from = numbers + size,
                         .at_out = numbers + 2 * size,
                         .at_in = numbers + 3 * size };
    int rv = numbers ? 0 : errorf (err, "out of memory");
    size_t at[4];

    for (size_t i = 0; i < d->n && rv == 0; i = at[1]) {
        at[0] = i;
        at[1] = i + 1;
        if (d->list[i].id != d->id || d->list[i].summary)
            continue;
        at[1] = run_end (d, i, same_name);
        if (!find_wants (d, i, at))
            continue;
        p.size = slurmdl_type_size (d->list[i].piece.type);
        rv = move_tensor (&p, d, at, err);
    }
    free (numbers);
    return rv;
}
