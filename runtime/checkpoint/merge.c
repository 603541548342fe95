/* SPDX-License-Identifier: Apache-2.0 */
/* What all ranks have, put together as one checkpoint. */
#include "runtime/checkpoint/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"

void merge_free (struct merge *g)
{
    for (long r = 0; g->parts && r < g->ranks; r++) {
        free (g->parts[r].plan);
        free (g->parts[r].layout);
    }
    free (g->parts);
    free (g->items);
}

struct plan *make_plan (const struct save_job *job, size_t *size)
{
    struct plan *p;

    *size = sizeof (*p) + job->n * sizeof (*p->list);
    if (!(p = calloc (1, *size)))
        return NULL;
    p->step = job->step;
    p->n = job->n;
    for (size_t i = 0; i < job->n; i++) {
        const struct piece *from = &job->list[i];
        struct entry *e = &p->list[i];
        memcpy (e->name, from->name, sizeof (e->name));
        e->type = from->type;
        e->shard = from->shard;
        memcpy (e->dims, from->dims, sizeof (e->dims));
        e->slab = from->slab;
        e->bytes = from->bytes;
    }
    return p;
}

static int by_name (const void *a, const void *b)
{
    const struct merge_item *x = a;
    const struct merge_item *y = b;
    int c = strcmp (x->entry->name, y->entry->name);

    if (c || x->rank != y->rank)
        return c ? c : x->rank < y->rank ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static int list_items (struct merge *g)
{
    size_t k = 0;

    for (long r = 0; r < g->ranks; r++)
        g->n += g->parts[r].plan->n;
    if (!(g->items = calloc (g->n + 1, sizeof (*g->items))))
        return -1;
    for (long r = 0; r < g->ranks; r++)
        for (size_t i = 0; i < g->parts[r].plan->n; i++)
            g->items[k++] =
                (struct merge_item){ .entry = &g->parts[r].plan->list[i], .rank = r, .i = i };
    qsort (g->items, g->n, sizeof (*g->items), by_name);
    return 0;
}

static int check_same (const struct merge_item *a, const struct merge_item *b,
                       struct slurmdl_error *err)
{
    const struct entry *x = a->entry;
    const struct entry *y = b->entry;

    if (x->shard && y->shard && x->type == y->type && x->slab.ndims == y->slab.ndims
        && !memcmp (x->dims, y->dims, sizeof (x->dims)))
        return 0;
    errno = EINVAL;
    return errorf (err,
                   "'%s': ranks %ld and %ld protect it with another type or "
                   "shape, or one of them not as a shard",
                   x->name, a->rank, b->rank);
}

static int add_shard (struct manifest *m, const struct merge_item *t)
{
    struct shard_row *s = &m->shards[m->nshards++];

    *s = (struct shard_row){ .tensor = (uint32_t)t->row, .rank = (uint32_t)t->rank };
    memcpy (s->offset, t->entry->slab.offset, sizeof (s->offset));
    memcpy (s->dims, t->entry->slab.dims, sizeof (s->dims));
    return 0;
}

/* The items from 'i' on that have one name: a tensor. */
static size_t add_tensor (struct merge *g, size_t i, struct slurmdl_error *err)
{
    struct manifest *m = &g->draft.m;
    const struct merge_item *first = &g->items[i];
    const struct entry *e = first->entry;
    struct manifest_row *row = draft_add (&g->draft, e->name, e->type, e->slab.ndims, e->dims);

    if (!row) {
        errorf (err, "'%s': cannot lay it out: %s", e->name,
                errno == EINVAL ? "a name is part of another name" : strerror (errno));
        return 0;
    }
    row->crc = e->shard ? (uint32_t)m->nshards : 0;
    for (; i < g->n && !strcmp (g->items[i].entry->name, e->name); i++) {
        struct merge_item *t = &g->items[i];
        t->row = row - m->rows;
        t->shard = -1;
        if (t != first && check_same (first, t, err) < 0)
            return 0;
        if (!e->shard || t->entry->bytes == 0)
            continue;
        t->shard = (int64_t)m->nshards;
        add_shard (m, t);
        row->shards++;
    }
    /* of nothing, nobody need have a part */
    if (e->shard && row->shards == 0 && row->bytes == 0)
        row->crc = 0;
    else if (e->shard && row->shards == 0)
        return errno = EINVAL, errorf (err, "'%s': no rank has a part of it", e->name), 0;
    return i;
}

int merge_lay_out (struct merge *g, const char *tmp, int64_t step, struct slurmdl_error *err)
{
    struct manifest *m = &g->draft.m;
    char name[DATASET_NAME_SIZE];

    if (list_items (g) < 0 || draft_create (&g->draft, tmp, step) < 0
        || !(m->shards = calloc (g->n + 1, sizeof (*m->shards))))
        return errorf (err, "%s: cannot make: %s", tmp, strerror (errno));
    for (size_t i = 0; i < g->n;)
        if ((i = add_tensor (g, i, err)) == 0)
            return -1;
    if (!manifest_covered (m, name)) {
        errno = EINVAL;
        return errorf (err,
                       "'%s': the shards of the ranks overlap, or do not cover "
                       "it",
                       name);
    }
    if (draft_lay_out (&g->draft) < 0 || draft_reserve (&g->draft) < 0)
        return errorf (err, "%s: cannot lay out: %s", tmp, strerror (errno));
    return 0;
}

void merge_set_crc (struct merge *g, long rank, const uint32_t *crcs)
{
    struct manifest *m = &g->draft.m;

    for (size_t k = 0; k < g->n; k++) {
        const struct merge_item *t = &g->items[k];
        if (t->rank != rank)
            continue;
        if (t->shard >= 0)
            m->shards[t->shard].crc = crcs[t->i];
        else if (m->rows[t->row].shards == 0 && !t->entry->shard)
            m->rows[t->row].crc = crcs[t->i];
    }
}

void merge_own_offsets (const struct merge *g, struct save_job *job)
{
    for (size_t k = 0; k < g->n; k++)
        if (g->items[k].rank == 0)
            job->list[g->items[k].i].offset = g->draft.m.rows[g->items[k].row].offset;
}

int merge_own_crcs (struct merge *g, const struct save_job *job)
{
    uint32_t *crcs = calloc (job->n + 1, sizeof (*crcs));

    if (!crcs)
        return -1;
    for (size_t i = 0; i < job->n; i++)
        crcs[i] = job->list[i].crc;
    merge_set_crc (g, 0, crcs);
    free (crcs);
    return 0;
}
