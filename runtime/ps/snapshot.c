/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot of a table: copy on write, in parts. */
#include "runtime/ps/snapshot.h"

#include <stdlib.h>
#include <string.h>

static int make_arrays (struct ps_copy *c, const struct ps_table *t)
{
    size_t elements = ps_table_is_dense (t) ? t->n : t->rows * t->width;

    for (unsigned i = 0; i <= c->slots; i++)
        if (!(c->value[i] = malloc ((elements + 1) * sizeof (float))))
            return -1;
    if (!(c->times = malloc ((c->rows + 1) * sizeof (*c->times)))
        || !(c->has = calloc (c->parts + 1, 1)))
        return -1;
    if (!ps_table_is_dense (t)
        && !(c->ids = malloc ((c->rows + 1) * sizeof (*c->ids))))
        return -1;
    return 0;
}

struct ps_copy *ps_copy_create (struct ps_table *t)
{
    struct ps_copy *c = calloc (1, sizeof (*c));

    if (!c)
        return NULL;
    c->spec = t->spec;
    c->slots = t->rule->slots;
    c->missing = t->missing > 0;
    c->n = t->n;
    c->width = t->width;
    if (c->missing)
        return c;
    c->rows = t->rows;
    c->each = PS_BLOCK / t->width + (PS_BLOCK < t->width);
    c->parts = c->left = (c->rows + c->each - 1) / c->each;
    if (make_arrays (c, t) < 0) {
        ps_copy_destroy (c);
        return NULL;
    }
    t->copy = c->left ? c : NULL;
    return c;
}

void ps_copy_destroy (struct ps_copy *c)
{
    if (!c)
        return;
    for (int i = 0; i <= PS_SLOTS; i++)
        free (c->value[i]);
    free (c->times);
    free (c->ids);
    free (c->has);
    free (c);
}

static void copy_part (struct ps_table *t, struct ps_copy *c, uint64_t part)
{
    uint64_t lo = part * c->each;
    uint64_t hi = lo + c->each < c->rows ? lo + c->each : c->rows;
    uint64_t from = lo * c->width;
    uint64_t to = c->ids ? hi * c->width : (hi - 1) * c->width;

    if (!c->ids)
        to += ps_table_length (t, hi - 1);
    for (unsigned i = 0; i <= c->slots; i++)
        memcpy (c->value[i] + from,
                t->value[i] + from,
                (to - from) * sizeof (float));
    memcpy (c->times + lo, t->times + lo, (hi - lo) * sizeof (*c->times));
    if (c->ids)
        memcpy (c->ids + lo, t->ids + lo, (hi - lo) * sizeof (*c->ids));
    c->has[part] = 1;
    if (--c->left == 0)
        t->copy = NULL;
}

void ps_copy_row (struct ps_table *t, uint64_t r)
{
    struct ps_copy *c = t->copy;

    if (r < c->rows && !c->has[r / c->each])
        copy_part (t, c, r / c->each);
}

bool ps_copy_some (struct ps_table *t)
{
    struct ps_copy *c = t->copy;

    if (!c)
        return false;
    while (c->has[c->next])
        c->next++;
    copy_part (t, c, c->next);
    return true;
}
