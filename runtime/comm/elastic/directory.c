/* SPDX-License-Identifier: Apache-2.0 */
/* Directory of the commits that the members of a new generation have. */
#include "runtime/comm/elastic/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"

static void add (struct directory_entry *list, size_t *n, const struct slurmdl_elastic *e,
                 const struct slot *s, const struct elastic_piece *p)
{
    struct directory_entry *x = &list[(*n)++];

    memset (x, 0, sizeof (*x));
    x->rank = e->membership.rank;
    x->summary = !p;
    if (s) {
        x->id = s->id;
        x->step = s->step;
    }
    if (p)
        x->piece = *p;
    x->piece.data = NULL;
}

static struct directory_entry *say (const struct slurmdl_elastic *e, size_t *n)
{
    size_t room = 2 + e->wants.n;
    struct directory_entry *list;

    for (int i = 0; i < 2; i++)
        room += e->slots[i].own.n + e->slots[i].copies.n;
    *n = 0;
    if (!(list = calloc (room, sizeof (*list))))
        return NULL;
    for (size_t k = 0; k < e->wants.n; k++)
        if (e->wants.list[k].kind == PIECE_SHARD)
            add (list, n, e, NULL, &e->wants.list[k]);
    for (int i = 0; i < 2; i++) {
        const struct slot *s = &e->slots[i];
        if (s->id == 0)
            continue;
        add (list, n, e, s, NULL);
        for (size_t k = 0; k < s->own.n; k++)
            if (s->own.list[k].kind == PIECE_SHARD)
                add (list, n, e, s, &s->own.list[k]);
        for (size_t k = 0; k < s->copies.n; k++)
            add (list, n, e, s, &s->copies.list[k]);
    }
    return list;
}

static int compare_pieces (const struct elastic_piece *a, const struct elastic_piece *b)
{
    int c = strcmp (a->name, b->name);

    return c ? c : box_compare (&a->box, &b->box);
}

/* The newest commit first; in it summaries, then the boxes of each tensor. */
static int compare_entries (const void *a, const void *b)
{
    const struct directory_entry *x = a;
    const struct directory_entry *y = b;
    int c;

    if (x->id != y->id)
        return x->id > y->id ? -1 : 1;
    if (x->summary != y->summary)
        return x->summary ? -1 : 1;
    if ((c = compare_pieces (&x->piece, &y->piece)))
        return c;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

int directory_gather (struct slurmdl_elastic *e, struct directory *d, struct slurmdl_error *err)
{
    size_t size = (size_t)slurmdl_comm_size (e->comm);
    size_t *bytes = calloc (size, sizeof (*bytes));
    size_t own = 0, total = 0;
    struct directory_entry *mine = say (e, &own);
    int rv = -1;

    if (!mine || !bytes) {
        errorf (err, "out of memory");
        goto done;
    }
    own *= sizeof (*mine);
    if (slurmdl_allgather (e->comm, &own, sizeof (own), bytes, NULL, err) < 0)
        goto done;
    for (size_t r = 0; r < size; r++)
        total += bytes[r];
    if (!(d->list = malloc (total + 1))) {
        errorf (err, "out of memory");
        goto done;
    }
    d->n = total / sizeof (*d->list);
    if (total > 0 && slurmdl_allgather (e->comm, mine, own, d->list, bytes, err) < 0)
        goto done;
    qsort (d->list, d->n, sizeof (*d->list), compare_entries);
    rv = 0;
done:
    free (mine);
    free (bytes);
    return rv;
}

bool same_name (const struct directory_entry *a, const struct directory_entry *b)
{
    return a->id == b->id && !a->summary && !b->summary && !strcmp (a->piece.name, b->piece.name);
}

bool same_box (const struct directory_entry *a, const struct directory_entry *b)
{
    return same_name (a, b) && box_compare (&a->piece.box, &b->piece.box) == 0;
}

size_t run_end (const struct directory *d, size_t i, same_f same)
{
    size_t k = i + 1;

    while (k < d->n && same (&d->list[i], &d->list[k]))
        k++;
    return k;
}

/* Whether the boxes of the entries i .. end of one tensor cover it.  Copies
 * count once where 'once', as boxes are disjoint otherwise.
 */
static bool is_covered (const struct directory *d, size_t i, size_t end, bool once)
{
    const struct elastic_piece *p = &d->list[i].piece;
    struct slab whole = slab_whole (p->box.ndims, p->dims);
    uint64_t n = 0;

    while (i < end) {
        n += slab_elements (&d->list[i].piece.box);
        i = once ? run_end (d, i, same_box) : i + 1;
    }
    return n == slab_elements (&whole);
}

/* Whether all slabs of the commit that begins at 'i' are there; '*end' is
 * after its last entry.
 */
static bool is_whole (const struct directory *d, size_t i, size_t *end, const char **lost)
{
    uint64_t id = d->list[i].id;
    bool whole = true;

    while (i < d->n && d->list[i].id == id) {
        size_t k = i + 1;
        if (!d->list[i].summary) {
            k = run_end (d, i, same_name);
            if (!is_covered (d, i, k, true)) {
                *lost = d->list[i].piece.name;
                whole = false;
            }
        }
        i = k;
    }
    *end = i;
    return whole;
}

static int sort_ranks (const struct slurmdl_elastic *e, struct directory *d,
                       struct slurmdl_error *err)
{
    long size = slurmdl_comm_size (e->comm);
    bool *has = calloc ((size_t)size, sizeof (*has));

    d->have = calloc ((size_t)size, sizeof (*d->have));
    d->lack = calloc ((size_t)size, sizeof (*d->lack));
    if (!has || !d->have || !d->lack) {
        free (has);
        return errorf (err, "out of memory");
    }
    for (size_t i = 0; i < d->n; i++)
        if (d->list[i].summary && d->list[i].id == d->id)
            has[d->list[i].rank] = true;
    for (long r = 0; r < size; r++)
        if (has[r])
            d->have[d->nhave++] = r;
        else
            d->lack[d->nlack++] = r;
    free (has);
    return 0;
}

int directory_choose (const struct slurmdl_elastic *e, struct directory *d,
                      struct slurmdl_error *err)
{
    const char *lost = NULL;
    int64_t step = 0;
    size_t i = 0, end;

    while (i < d->n && d->list[i].id && !d->id) {
        if (is_whole (d, i, &end, &lost)) {
            d->id = d->list[i].id;
            d->step = d->list[i].step;
        } else if (!step)
            step = d->list[i].step;
        i = end;
    }
    if (!d->id && lost)
        errorf (err,
                "slabs of '%s' of step %lld are lost: %ld ranks, among them "
                "one and that which had its copies; go on from the checkpoint "
                "on disk",
                lost, (long long)step, (long)e->membership.generation->lost);
    if (!d->id)
        return 0;
    return sort_ranks (e, d, err) < 0 ? -1 : 1;
}

/* Whether the slabs that are wanted cover each tensor once. */
int directory_check (const struct directory *d, struct slurmdl_error *err)
{
    size_t i = 0, end;

    while (i < d->n && d->list[i].id)
        i++;
    for (; i < d->n; i = end) {
        end = run_end (d, i, same_name);
        if (!is_covered (d, i, end, false)) {
            errno = EINVAL;
            return errorf (err,
                           "the slabs of '%s' on all ranks do not cover it "
                           "once",
                           d->list[i].piece.name);
        }
    }
    return 0;
}

struct slot *elastic_slot (struct slurmdl_elastic *e, uint64_t id)
{
    for (int i = 0; i < 2; i++)
        if (e->slots[i].id == id)
            return &e->slots[i];
    return NULL;
}

void directory_free (struct directory *d)
{
    free (d->list);
    free (d->have);
    free (d->lack);
}
