/* SPDX-License-Identifier: Apache-2.0 */
/* Count the ready units of each tensor, and build the tree of ranks. */
#include "runtime/comm/engine/control.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/comm/engine/hash_map.h"

struct count {
    uint32_t id;
    size_t ready;
};

struct readiness {
    size_t units, joined; /* 'joined': units all of whose ranks have joined */
    long *ranks, *gone;   /* ranks in each unit; those that have joined */
    struct map counts;
    uint32_t *full, *given;
    size_t nfull, room;
};

struct readiness *readiness_create (size_t units, const long *ranks)
{
    struct readiness *r = calloc (1, sizeof (*r));

    if (!r)
        return NULL;
    r->units = units;
    r->ranks = calloc (units, sizeof (*r->ranks));
    r->gone = calloc (units, sizeof (*r->gone));
    if (!r->ranks || !r->gone) {
        readiness_destroy (r);
        return NULL;
    }
    memcpy (r->ranks, ranks, units * sizeof (*ranks));
    return r;
}

void readiness_destroy (struct readiness *r)
{
    struct count *c;
    size_t at = 0;

    if (!r)
        return;
    while ((c = map_next (&r->counts, &at)))
        free (c);
    map_free (&r->counts);
    free (r->ranks);
    free (r->gone);
    free (r->full);
    free (r->given);
    free (r);
}

int readiness_assign (struct readiness *r, uint32_t id)
{
    struct count *c = calloc (1, sizeof (*c));

    if (!c)
        return -1;
    c->id = id;
    if (map_set (&r->counts, id, c) < 0) {
        free (c);
        return -1;
    }
    return 0;
}

void readiness_drop (struct readiness *r, uint32_t id)
{
    struct count *c = map_get (&r->counts, id);

    if (c)
        map_set (&r->counts, id, NULL);
    free (c);
}

static int append_ready (struct readiness *r, uint32_t id)
{
    if (r->nfull == r->room) {
        size_t room = 2 * r->room + 64;
        void *full = realloc (r->full, room * sizeof (*r->full));
        if (!full)
            return -1;
        r->full = full;
        r->room = room;
    }
    r->full[r->nfull++] = id;
    return 0;
}

static int count_ready (struct readiness *r, struct count *c)
{
    if (!c->ready || c->ready + r->joined < r->units)
        return 0;
    c->ready = 0;
    return append_ready (r, c->id);
}

int readiness_ready (struct readiness *r, uint32_t id)
{
    struct count *c = map_get (&r->counts, id);

    if (!c)
        return 0;
    c->ready++;
    return count_ready (r, c);
}

int readiness_join (struct readiness *r, size_t unit)
{
    struct count *c;
    size_t at = 0;
    int rv = 0;

    if (++r->gone[unit] < r->ranks[unit])
        return 0;
    r->joined++;
    while ((c = map_next (&r->counts, &at)))
        rv |= count_ready (r, c);
    return rv;
}

void readiness_rejoin (struct readiness *r)
{
    r->joined = 0;
    memset (r->gone, 0, r->units * sizeof (*r->gone));
}

uint32_t *readiness_full (struct readiness *r, size_t *n)
{
    free (r->given);
    r->given = r->full;
    *n = r->nfull;
    r->full = NULL;
    r->nfull = 0;
    r->room = 0;
    return r->given;
}

/* List the first rank of each node; 'n' is their number. */
static long *leaders (long size, const long *node, long *n)
{
    long *first = malloc ((size_t)size * sizeof (*first));

    *n = 0;
    for (long r = 0; first && r < size; r++)
        if (node[r] == *n)
            first[(*n)++] = r;
    return first;
}

static long unit_parent (long rank, const long *node, const long *first, long fan)
{
    long k = node[rank];

    if (first[k] != rank)
        return first[k];
    return k ? first[(k - 1) / fan] : -1;
}

/* Parents have smaller ranks than their children, so one pass from the end counts
 * the ranks below each.
 */
static int fill_tree (struct engine_tree *t, long rank, long size, const long *parent, long *below)
{
    for (long r = size - 1; r > 0; r--)
        below[parent[r]] += ++below[r];
    for (long r = 1; r < size; r++)
        t->n += parent[r] == rank;
    t->children = calloc (t->n + 1, sizeof (*t->children));
    t->below = calloc (t->n + 1, sizeof (*t->below));
    if (!t->children || !t->below)
        return -1;
    for (long r = 1, i = 0; r < size; r++)
        if (parent[r] == rank) {
            t->children[i] = r;
            t->below[i++] = below[r];
        }
    return 0;
}

int engine_tree_make (struct engine_tree *t, long rank, long size, const long *node, long fan)
{
    long n;
    long *first = leaders (size, node, &n);
    long *parent = calloc ((size_t)size, sizeof (*parent));
    long *below = calloc ((size_t)size, sizeof (*below));
    int rv = -1;

    memset (t, 0, sizeof (*t));
    if (first && parent && below) {
        for (long r = 0; r < size; r++)
            parent[r] = unit_parent (r, node, first, fan);
        t->parent = parent[rank];
        rv = fill_tree (t, rank, size, parent, below);
    }
    free (first);
    free (parent);
    free (below);
    return rv;
}

void engine_tree_free (struct engine_tree *t)
{
    free (t->children);
    free (t->below);
    memset (t, 0, sizeof (*t));
}
