/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table, found by their ids, made when they are first used. */
#include "runtime/ps/table.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ps/sum.h"

bool ps_table_is_dense (const struct ps_table *t)
{
    return t->spec.n > 0;
}

size_t ps_table_length (const struct ps_table *t, uint64_t r)
{
    uint64_t left = t->n - r * t->width;

    return !ps_table_is_dense (t) || left > t->width ? t->width : left;
}

static int grow (void *array, uint64_t room, size_t size)
{
    void **p = array;
    void *more = realloc (*p, room * size);

    if (!more)
        return -1;
    *p = more;
    return 0;
}

static int rehash (struct ps_table *t, uint64_t n)
{
    uint32_t *b = calloc (n, sizeof (*b));

    if (!b)
        return -1;
    for (uint64_t r = 0; r < t->rows; r++) {
        uint64_t i = ps_mix (t->ids[r]) >> 7 & (n - 1);
        while (b[i])
            i = (i + 1) & (n - 1);
        b[i] = (uint32_t)r + 1;
    }
    free (t->buckets);
    t->buckets = b;
    t->nbuckets = n;
    return 0;
}

static int make_room (struct ps_table *t, uint64_t rows)
{
    uint64_t room = t->room ? t->room : 64;

    if (rows <= t->room)
        return 0;
    while (room < rows)
        room *= 2;
    if (room > UINT32_MAX / 2)
        return -1;
    for (unsigned i = 0; i <= t->rule->slots; i++)
        if (grow (&t->value[i], room, t->width * sizeof (float)) < 0)
            return -1;
    if (grow (&t->times, room, sizeof (*t->times)) < 0
        || grow (&t->ids, room, sizeof (*t->ids)) < 0
        || grow (&t->place, room, sizeof (*t->place)) < 0
        || rehash (t, 2 * room) < 0)
        return -1;
    memset (t->place + t->room, 0, (room - t->room) * sizeof (*t->place));
    t->room = room;
    return 0;
}

int ps_table_reserve (struct ps_table *t, uint64_t rows)
{
    if (rows > UINT32_MAX / 2 || make_room (t, rows) < 0)
        return -1;
    t->rows = rows;
    return 0;
}

int ps_table_index (struct ps_table *t)
{
    return rehash (t, t->nbuckets);
}

static int make_dense (struct ps_table *t)
{
    t->rows = (t->n + PS_BLOCK - 1) / PS_BLOCK;
    for (unsigned i = 0; i <= t->rule->slots; i++)
        if (!(t->value[i] = calloc (t->n + 1, sizeof (float))))
            return -1;
    t->missing = t->rows;
    t->got = calloc (t->rows + 1, 1);
    t->times = calloc (t->rows + 1, sizeof (*t->times));
    return t->got && t->times ? 0 : -1;
}

static void sum_free (struct ps_sum *s)
{
    free (s->dense);
    free (s->has);
    free (s->ids);
    free (s->rows);
    memset (s, 0, sizeof (*s));
}

struct ps_table *ps_table_create (const struct ps_spec *spec,
                                  long server,
                                  long servers,
                                  long workers)
{
    struct ps_table *t = calloc (1, sizeof (*t));
    uint64_t lo;

    if (!t)
        return NULL;
    t->spec = *spec;
    t->rule = ps_rule (spec->rule);
    t->key = ps_key (spec->name);
    t->width = spec->n ? (uint32_t)PS_BLOCK : spec->row;
    t->workers = workers;
    if (spec->n)
        ps_shard (t->key, spec->n, server, servers, &lo, &t->n);
    t->sums = calloc ((size_t)workers, sizeof (*t->sums));
    if (t->sums && (spec->n ? make_dense (t) : make_room (t, 1)) == 0)
        return t;
    ps_table_destroy (t);
    return NULL;
}

void ps_table_destroy (struct ps_table *t)
{
    if (!t)
        return;
    for (int i = 0; i <= PS_SLOTS; i++)
        free (t->value[i]);
    for (long w = 0; t->sums && w < t->workers; w++)
        sum_free (&t->sums[w]);
    free (t->sums);
    free (t->got);
    free (t->times);
    free (t->place);
    free (t->ids);
    free (t->buckets);
    free (t);
}

/* Uniform in [low, high): 24 bits of a number that depends on all. */
static void fill_row (const struct ps_table *t, uint64_t id, float *row)
{
    uint64_t h = ps_mix (t->key ^ ps_mix (t->spec.seed + ps_mix (id)));
    double low = t->spec.low;
    double span = t->spec.high - low;

    for (uint32_t i = 0; i < t->width; i++) {
        uint64_t x = ps_mix (h + 0x9e3779b97f4a7c15ULL * (i + 1));
        row[i] = (float)(low + span * ((double)(x >> 40) / 16777216.0));
    }
}

static int64_t add_row (struct ps_table *t, uint64_t id)
{
    uint64_t r = t->rows;
    uint64_t mask;
    uint64_t i;

    if (make_room (t, t->rows + 1) < 0)
        return -1;
    fill_row (t, id, t->value[0] + r * t->width);
    for (unsigned s = 1; s <= t->rule->slots; s++)
        memset (t->value[s] + r * t->width, 0, t->width * sizeof (float));
    t->times[r] = 0;
    t->ids[r] = id;
    t->rows++;
    mask = t->nbuckets - 1;
    for (i = ps_mix (id) >> 7 & mask; t->buckets[i]; i = (i + 1) & mask)
        ;
    t->buckets[i] = (uint32_t)r + 1;
    return (int64_t)r;
}

int64_t ps_table_row (struct ps_table *t, uint64_t id)
{
    uint64_t mask = t->nbuckets - 1;

    for (uint64_t i = ps_mix (id) >> 7 & mask; t->buckets[i];
         i = (i + 1) & mask)
        if (t->ids[t->buckets[i] - 1] == id)
            return t->buckets[i] - 1;
    return add_row (t, id);
}

void ps_table_initial (struct ps_table *t,
                       uint64_t offset,
                       const float *values,
                       uint64_t n)
{
    for (uint64_t done = 0; t->missing && values && done < n;
         done += PS_BLOCK) {
        uint64_t r = (offset + done) / PS_BLOCK;
        if (t->got[r])
            continue;
        memcpy (t->value[0] + r * PS_BLOCK,
                values + done,
                ps_table_length (t, r) * sizeof (float));
        t->got[r] = 1;
        t->missing--;
    }
    if (!values)
        t->missing = 0;
}
