/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors by their names, by their numbers, and by age. */
#include "runtime/comm/engine/tensor_table.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_MAX = 16384 }; /* tensors that keep their numbers */

void tensor_entry_free (struct tensor_entry *f)
{
    tensor_free (f->t);
    tensor_free (f->differs);
    free (f->counts);
    free (f->name);
    free (f);
}

struct tensor_entry *tensor_entry_find (struct coordinator *c, const char *name)
{
    struct tensor_entry *f = map_get (&c->names, map_hash (name));

    while (f && strcmp (f->name, name))
        f = f->same;
    return f;
}

struct tensor_entry *tensor_entry_make (struct coordinator *c, const char *name)
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

void tensor_entry_forget (struct coordinator *c, struct tensor_entry *f)
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

void tensor_entry_drop (struct coordinator *c, struct tensor_entry *f)
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

void tensor_entry_reset (struct tensor_entry *f)
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

void tensor_entry_number (struct coordinator *c, struct tensor_entry *f)
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

void tensor_entry_used (struct coordinator *c, struct tensor_entry *f)
{
    unlink_age (c, f);
    link_newest (c, f);
}
