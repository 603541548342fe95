/* SPDX-License-Identifier: Apache-2.0 */
/* What a server knows: its tables, and its workers. */
#include <stdlib.h>
#include <string.h>

#include "runtime/ps/server.h"

bool psserver_waits_for (const struct ps_worker *w)
{
    return w->life == PS_UNSEEN || w->life == PS_LIVE || w->life == PS_BROKEN;
}

int64_t psserver_slowest (const struct ps_server *s)
{
    int64_t least = INT64_MAX;

    for (long i = 0; i < s->ps->workers; i++)
        if (psserver_waits_for (&s->workers[i]) && s->workers[i].clock < least)
            least = s->workers[i].clock;
    return least;
}

int64_t psserver_fastest (const struct ps_server *s)
{
    int64_t most = 0;

    for (long i = 0; i < s->ps->workers; i++)
        if (s->workers[i].clock > most)
            most = s->workers[i].clock;
    return most;
}

struct ps_table *psserver_table (struct ps_server *s, uint64_t key)
{
    for (size_t i = 0; i < s->ntables; i++)
        if (s->tables[i]->key == key)
            return s->tables[i];
    return NULL;
}

int psserver_add_table (struct ps_server *s, struct ps_table *t)
{
    struct ps_table **more =
        realloc (s->tables, (s->ntables + 1) * sizeof (struct ps_table *));

    if (!more || !t)
        return -1;
    s->tables = more;
    s->tables[s->ntables++] = t;
    return 0;
}

bool psserver_is_good_spec (const struct ps_spec *s)
{
    return memchr (s->name, '\0', sizeof (s->name)) && ps_rule (s->rule)
           && (s->n > 0) != (s->row > 0) && s->n < UINT64_MAX / 64
           && s->row < 1 << 24;
}

bool psserver_sees_workers (const struct ps_server *s)
{
    long here = 0;
    long silent = 0;

    for (long i = 0; i < s->ps->workers; i++) {
        const struct ps_worker *w = &s->workers[i];
        here += w->life == PS_LIVE;
        silent += w->life == PS_BROKEN && w->silent;
    }
    return here > 0 && here >= silent;
}
