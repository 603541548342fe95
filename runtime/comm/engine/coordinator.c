/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that all ranks have submitted, their groups, and batches. */
#include "runtime/comm/engine/coordinator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/engine/hash_map.h"

struct tensor_entry {
    char *name;
    struct tensor *t; /* as first described, or as agreed */
    uint32_t id;      /* 0: ranks have to describe the tensor */
    bool complete;    /* waiting for its group or its batch */
    long asked;       /* number of ranks that have described it */
    long first, other;
    struct tensor *differs; /* description by rank 'other' */
    size_t *counts;
    struct tensor_entry *same;          /* next with the same hash */
    struct tensor_entry *next;          /* next in the ready list or in a group */
    struct tensor_entry *older, *newer; /* neighbours by age among those with a number */
};

struct tensor_group {
    size_t complete;
    struct tensor_entry *members;
    char *why; /* why the group failed, or NULL */
};

struct coordinator {
    long size, joined;
    bool *has_joined;
    bool left;
    host_f host;
    const void *arg;
    struct packet *down;
    struct map names, ids, gangs;
    uint32_t last_id;
    size_t cached;
    struct tensor_entry *oldest, *newest;
    struct tensor_entry *ready, **tail;
};

/* ---- tensors by name, by number and by age ---- */

enum { CACHE_MAX = 16384 }; /* tensors that keep their numbers */

static void tensor_entry_free (struct tensor_entry *f)
{
    tensor_free (f->t);
    tensor_free (f->differs);
    free (f->counts);
    free (f->name);
    free (f);
}

static struct tensor_entry *tensor_entry_find (struct coordinator *c, const char *name)
{
    struct tensor_entry *f = map_get (&c->names, map_hash (name));

    while (f && strcmp (f->name, name))
        f = f->same;
    return f;
}

static struct tensor_entry *tensor_entry_make (struct coordinator *c, const char *name)
{
    struct tensor_entry *f = calloc (1, sizeof (*f));
    uint64_t hash = map_hash (name);

    if (!f || !(f->name = strdup (name))) {
        free (f);
        return NULL;
    }
    f->same = map_get (&c->names, hash);
    if (map_set (&c->names, hash, f) < 0) {
        tensor_entry_free (f);
        return NULL;
    }
    return f;
}

static void tensor_entry_forget (struct coordinator *c, struct tensor_entry *f)
{
    uint64_t hash = map_hash (f->name);
    struct tensor_entry *p = map_get (&c->names, hash);

    if (p == f) {
        map_set (&c->names, hash, f->same);
    } else {
        while (p->same != f)
            p = p->same;
        p->same = f->same;
    }
    tensor_entry_free (f);
}

static void unlink_age (struct coordinator *c, struct tensor_entry *f)
{
    *(f->older ? &f->older->newer : &c->oldest) = f->newer;
    *(f->newer ? &f->newer->older : &c->newest) = f->older;
}

static void link_newest (struct coordinator *c, struct tensor_entry *f)
{
    f->newer = NULL;
    f->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = f;
    c->newest = f;
}

/* Withdraw the number of a tensor. */
static void tensor_entry_drop (struct coordinator *c, struct tensor_entry *f)
{
    packet_number (c->down, DOWN_DROP);
    packet_number (c->down, f->id);
    map_set (&c->ids, f->id, NULL);
    unlink_age (c, f);
    c->cached--;
    f->id = 0;
    f->complete = false;
    tensor_free (f->t);
    f->t = NULL;
}

/* All ranks have asked.  From now on they may ask for it again. */
static void tensor_entry_reset (struct tensor_entry *f)
{
    f->complete = false;
    f->asked = 0;
    tensor_free (f->differs);
    f->differs = NULL;
}

static void forget_oldest_tensor (struct coordinator *c)
{
    struct tensor_entry *f = c->oldest;

    while (f && f->complete)
        f = f->newer;
    if (!f)
        return;
    tensor_entry_drop (c, f);
    tensor_entry_forget (c, f);
}

static void tensor_entry_number (struct coordinator *c, struct tensor_entry *f)
{
    if (c->cached >= CACHE_MAX)
        forget_oldest_tensor (c);
    f->id = ++c->last_id;
    f->asked = 0;
    if (map_set (&c->ids, f->id, f) < 0)
        c->down->bad = true;
    link_newest (c, f);
    c->cached++;
    packet_number (c->down, DOWN_ASSIGN);
    packet_number (c->down, f->id);
    tensor_put (c->down, f->t);
    if (f->t->what == SLURMDL_ALLGATHER)
        for (long r = 0; r < c->size; r++)
            packet_number (c->down, f->counts[r]);
}

static void tensor_entry_used (struct coordinator *c, struct tensor_entry *f)
{
    unlink_age (c, f);
    link_newest (c, f);
}

/* ---- which tensors are ready ---- */

struct coordinator *coordinator_create (long size, host_f host, const void *arg,
                                        struct packet *down)
{
    struct coordinator *c = calloc (1, sizeof (*c));

    if (!c)
        return NULL;
    c->size = size;
    c->host = host;
    c->arg = arg;
    c->down = down;
    c->tail = &c->ready;
    if (!(c->has_joined = calloc ((size_t)size, sizeof (*c->has_joined)))) {
        free (c);
        return NULL;
    }
    return c;
}

void coordinator_destroy (struct coordinator *c)
{
    struct tensor_entry *f, *same;
    struct tensor_group *g;
    size_t at = 0;

    if (!c)
        return;
    while ((f = map_next (&c->names, &at)))
        for (; f; f = same) {
            same = f->same;
            tensor_entry_free (f);
        }
    at = 0;
    while ((g = map_next (&c->gangs, &at))) {
        free (g->why);
        free (g);
    }
    map_free (&c->names);
    map_free (&c->ids);
    map_free (&c->gangs);
    free (c->has_joined);
    free (c);
}

static void put_error (struct coordinator *c, const char *name, int code, const char *text)
{
    packet_number (c->down, DOWN_ERROR);
    packet_text (c->down, name);
    packet_number (c->down, (uint64_t)code);
    packet_text (c->down, text);
}

static void fail_tensor (struct coordinator *c, struct tensor_entry *f, const char *text)
{
    put_error (c, f->name, EPROTO, text);
    tensor_entry_reset (f);
    if (!f->id)
        tensor_entry_forget (c, f);
}

static void mismatch (struct coordinator *c, const struct tensor_entry *f, char *text, size_t size)
{
    bool swap = f->other < f->first;
    const struct tensor *a = swap ? f->differs : f->t;
    const struct tensor *b = swap ? f->t : f->differs;
    long ra = swap ? f->other : f->first;
    long rb = swap ? f->first : f->other;
    char ours[80], theirs[80];

    tensor_differs (a, b, ours, theirs, sizeof (ours));
    snprintf (text, size, "%s \"%.80s\": rank %ld (%.40s) has %s, rank %ld (%.40s) %s",
              tensor_noun (a), f->name, ra, c->host (c->arg, ra), ours, rb, c->host (c->arg, rb),
              theirs);
}

/* Whether ranks that have joined can contribute zeros. */
static bool joinable (const struct coordinator *c, const struct tensor *t)
{
    if (t->what == SLURMDL_BROADCAST)
        return t->root >= 0 && t->root < c->size && !c->has_joined[t->root];
    return t->what == SLURMDL_ALLGATHER || t->op == SLURMDL_SUM || t->op == SLURMDL_AVERAGE;
}

static bool find_mismatch (struct coordinator *c, const struct tensor_entry *f, char *text,
                           size_t size)
{
    if (f->differs) {
        mismatch (c, f, text, size);
        return true;
    }
    if (c->joined && !joinable (c, f->t)) {
        snprintf (text, size, "%s \"%.80s\": a rank has joined, and has nothing to give",
                  tensor_noun (f->t), f->name);
        return true;
    }
    return false;
}

static void make_ready (struct coordinator *c, struct tensor_entry *f)
{
    f->next = NULL;
    *c->tail = f;
    c->tail = &f->next;
}

static struct tensor_group *gang_of (struct coordinator *c, uint64_t hash)
{
    struct tensor_group *g = map_get (&c->gangs, hash);

    if (g || !(g = calloc (1, sizeof (*g))))
        return g;
    if (map_set (&c->gangs, hash, g) < 0) {
        free (g);
        return NULL;
    }
    return g;
}

/* Release the members in the order in which they completed. */
static void release_group (struct coordinator *c, struct tensor_group *g)
{
    struct tensor_entry *f, *next, *in_order = NULL;

    for (f = g->members; f; f = next) {
        next = f->next;
        f->next = in_order;
        in_order = f;
    }
    for (f = in_order; f; f = next) {
        next = f->next;
        if (g->why)
            fail_tensor (c, f, g->why);
        else
            make_ready (c, f);
    }
    free (g->why);
    free (g);
}

static int into_group (struct coordinator *c, struct tensor_entry *f, const char *why)
{
    uint64_t hash = map_hash (f->t->group);
    struct tensor_group *g = gang_of (c, hash);

    if (!g)
        return -1;
    if (why && !g->why)
        g->why = strdup (why);
    f->next = g->members;
    g->members = f;
    if (++g->complete < f->t->members)
        return 0;
    map_set (&c->gangs, hash, NULL);
    release_group (c, g);
    return 0;
}

static int complete_tensor (struct coordinator *c, struct tensor_entry *f)
{
    char why[256];
    bool bad = find_mismatch (c, f, why, sizeof (why));

    f->complete = true;
    if (f->t->group)
        return into_group (c, f, bad ? why : NULL);
    if (bad)
        fail_tensor (c, f, why);
    else
        make_ready (c, f);
    return 0;
}

/* A rank describes the tensor again, so it has changed. */
static int first_request (struct coordinator *c, struct tensor_entry *f, long rank,
                          struct tensor *t)
{
    tensor_free (f->t);
    f->t = t;
    f->first = rank;
    free (f->counts);
    f->counts = NULL;
    if (t->what == SLURMDL_ALLGATHER)
        f->counts = calloc ((size_t)c->size, sizeof (*f->counts));
    return t->what == SLURMDL_ALLGATHER && !f->counts ? -1 : 0;
}

int coordinator_request (struct coordinator *c, long rank, struct tensor *t)
{
    struct tensor_entry *f = tensor_entry_find (c, t->name);
    size_t n = t->n;

    if (c->left || (!f && !(f = tensor_entry_make (c, t->name)))) {
        tensor_free (t);
        return c->left ? 0 : -1;
    }
    if (f->id)
        tensor_entry_drop (c, f);
    if (!f->asked) {
        if (first_request (c, f, rank, t) < 0)
            return -1;
    } else if (!f->differs && !tensor_agrees (f->t, t)) {
        f->differs = t;
        f->other = rank;
    } else {
        tensor_free (t);
    }
    if (f->counts)
        f->counts[rank] = n;
    return ++f->asked + c->joined < c->size ? 0 : complete_tensor (c, f);
}

int coordinator_ready (struct coordinator *c, uint32_t id)
{
    struct tensor_entry *f = map_get (&c->ids, id);

    if (!f || c->left)
        return 0;
    if (c->joined && f->t->what == SLURMDL_ALLGATHER) {
        tensor_entry_drop (c, f); /* ranks that have joined contribute 0 rows now */
        return 0;
    }
    return complete_tensor (c, f);
}

static void all_joined (struct coordinator *c, long last)
{
    packet_number (c->down, DOWN_JOINED);
    packet_number (c->down, (uint64_t)last);
    c->joined = 0;
    memset (c->has_joined, 0, (size_t)c->size * sizeof (*c->has_joined));
}

int coordinator_join (struct coordinator *c, long rank)
{
    struct tensor_entry *f, *next, *list = NULL;
    size_t at = 0;
    int rv = 0;

    c->has_joined[rank] = true;
    if (++c->joined == c->size) {
        all_joined (c, rank);
        return 0;
    }
    while ((f = map_next (&c->names, &at)))
        for (; f; f = f->same)
            if (f->asked && !f->complete && f->asked + c->joined == c->size) {
                f->next = list;
                list = f;
            }
    for (f = list; f; f = next) {
        next = f->next;
        rv |= complete_tensor (c, f);
    }
    return rv;
}

void coordinator_leave (struct coordinator *c, long rank)
{
    if (c->left)
        return;
    c->left = true;
    c->ready = NULL;
    c->tail = &c->ready;
    packet_number (c->down, DOWN_LEFT);
    packet_number (c->down, (uint64_t)rank);
}

/* A tensor of this size is worth a collective of its own, which saves two copies. */
enum { ALONE_BYTES = 1 << 20 };

static size_t entry_bytes (const struct coordinator *c, const struct tensor_entry *f)
{
    const struct tensor *t = f->t;
    size_t n = 0;

    if (t->what != SLURMDL_ALLGATHER)
        return tensor_weight (t);
    for (long r = 0; r < c->size; r++)
        n += f->counts[r];
    return n * tensor_item (t);
}

static bool goes_alone (const struct coordinator *c, const struct tensor_entry *f)
{
    return f->t->compression == SLURMDL_PLAIN && entry_bytes (c, f) >= ALONE_BYTES;
}

/* Remove the first ready tensor from the list, and all that fuse with it. */
static struct tensor_entry *choose_ready (struct coordinator *c, size_t fusion, size_t *n)
{
    struct tensor_entry *head = c->ready;
    struct tensor_entry **at;
    size_t bytes = entry_bytes (c, head);
    struct tensor_entry **end = &head->next;
    struct tensor_entry *chosen = NULL;

    c->ready = head->next;
    *n = 1;
    for (at = goes_alone (c, head) ? NULL : &c->ready; at && *at;) {
        struct tensor_entry *f = *at;
        size_t more = entry_bytes (c, f);
        if (bytes + more > fusion || goes_alone (c, f) || !tensor_fuses (head->t, f->t)) {
            at = &f->next;
            continue;
        }
        bytes += more;
        *at = f->next;
        *end = f;
        end = &f->next;
        ++*n;
    }
    *end = NULL;
    chosen = head;
    for (c->tail = &c->ready; *c->tail;)
        c->tail = &(*c->tail)->next;
    return chosen;
}

static void emit_one (struct coordinator *c, size_t fusion)
{
    size_t n, i = 0;
    struct tensor_entry *list = choose_ready (c, fusion, &n);
    uint32_t *ids = malloc (n * sizeof (*ids));

    if (!ids) {
        c->down->bad = true;
        return;
    }
    for (struct tensor_entry *f = list; f; f = f->next) {
        if (!f->id)
            tensor_entry_number (c, f);
        ids[i++] = f->id;
    }
    for (struct tensor_entry *f = list; f; f = f->next) {
        tensor_entry_reset (f);
        tensor_entry_used (c, f);
    }
    packet_number (c->down, DOWN_BATCH);
    packet_ids (c->down, ids, n);
    free (ids);
}

size_t coordinator_emit (struct coordinator *c, size_t fusion, size_t room)
{
    size_t n = 0;

    for (; n < room && c->ready; n++)
        emit_one (c, fusion);
    return n;
}

bool coordinator_waits (const struct coordinator *c)
{
    return c->ready != NULL;
}
