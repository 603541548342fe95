/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients are applied at once, or kept and added in the order of workers. */
#include "runtime/ps/sum.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ps/snapshot.h"

static void apply_row (struct ps_table *t, uint64_t r, const float *gradient)
{
    float *at[1 + PS_SLOTS] = { NULL };

    if (t->copy)
        ps_copy_row (t, r);
    for (unsigned i = 0; i <= t->rule->slots; i++)
        at[i] = t->value[i] + r * t->width;
    t->rule->apply (
        &t->spec, ++t->times[r], at, gradient, ps_table_length (t, r));
}

void ps_table_apply (struct ps_table *t,
                     uint64_t offset,
                     const float *gradient,
                     uint64_t n)
{
    for (uint64_t done = 0; done < n; done += PS_BLOCK)
        apply_row (t, (offset + done) / PS_BLOCK, gradient + done);
}

void ps_table_forget (struct ps_table *t, long worker)
{
    struct ps_sum *s = &t->sums[worker];

    if (s->has)
        memset (s->has, 0, t->rows);
    s->n = 0;
}

static void
combine (const struct ps_table *t, float *sum, const float *more, size_t n)
{
    if (t->rule->replaces)
        memcpy (sum, more, n * sizeof (float));
    else
        ps_add (sum, more, n);
}

int ps_table_keep (struct ps_table *t,
                   long worker,
                   uint64_t offset,
                   const float *gradient,
                   uint64_t n)
{
    struct ps_sum *s = &t->sums[worker];

    if (!s->dense && !(s->dense = malloc ((t->n + 1) * sizeof (float))))
        return -1;
    if (!s->has && !(s->has = calloc (t->rows + 1, 1)))
        return -1;
    for (uint64_t done = 0; done < n; done += PS_BLOCK) {
        uint64_t r = (offset + done) / PS_BLOCK;
        size_t k = ps_table_length (t, r);
        float *at = s->dense + r * PS_BLOCK;
        if (s->has[r])
            combine (t, at, gradient + done, k);
        else
            memcpy (at, gradient + done, k * sizeof (float));
        s->has[r] = 1;
    }
    return 0;
}

static int make_room (struct ps_sum *s, uint64_t n, uint32_t width)
{
    uint64_t room = s->room ? s->room : 64;
    uint64_t *ids;
    float *rows;

    if (s->n + n <= s->room)
        return 0;
    while (room < s->n + n)
        room *= 2;
    if (!(ids = realloc (s->ids, room * sizeof (*ids))))
        return -1;
    s->ids = ids;
    if (!(rows = realloc (s->rows, room * width * sizeof (*rows))))
        return -1;
    s->rows = rows;
    s->room = room;
    return 0;
}

int ps_table_keep_rows (struct ps_table *t,
                        long worker,
                        const uint64_t *ids,
                        const float *gradients,
                        uint64_t n)
{
    struct ps_sum *s = &t->sums[worker];

    if (make_room (s, n, t->width) < 0)
        return -1;
    memcpy (s->ids + s->n, ids, n * sizeof (*ids));
    memcpy (s->rows + s->n * t->width, gradients, n * t->width * 4);
    s->n += n;
    return 0;
}

static void end_block (struct ps_table *t, uint64_t r, float *sum)
{
    size_t n = ps_table_length (t, r);
    bool any = false;

    for (long w = 0; w < t->workers; w++) {
        struct ps_sum *s = &t->sums[w];
        if (!s->has || !s->has[r])
            continue;
        if (any)
            combine (t, sum, s->dense + r * PS_BLOCK, n);
        else
            memcpy (sum, s->dense + r * PS_BLOCK, n * sizeof (float));
        any = true;
        s->has[r] = 0;
    }
    if (any)
        apply_row (t, r, sum);
}

/* Gradients of the same row are added in the order in which they are given. */
struct ps_merge {
    float *sums;
    uint32_t *of; /* row of each sum */
    uint64_t n;
};

static int
merge_create (const struct ps_table *t, struct ps_merge *m, uint64_t n)
{
    m->n = 0;
    m->sums = malloc ((n * t->width + 1) * sizeof (float));
    m->of = malloc ((n + 1) * sizeof (*m->of));
    return m->sums && m->of ? 0 : -1;
}

static int make_rows (struct ps_table *t, const uint64_t *ids, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (ps_table_row (t, ids[i]) < 0)
            return -1;
    return 0;
}

static void merge_rows (struct ps_table *t,
                        struct ps_merge *m,
                        const uint64_t *ids,
                        const float *rows,
                        uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t r = (uint32_t)ps_table_row (t, ids[i]);
        const float *row = rows + i * t->width;
        if (t->place[r]) {
            float *sum = m->sums + (size_t)(t->place[r] - 1) * t->width;
            combine (t, sum, row, t->width);
            continue;
        }
        memcpy (m->sums + m->n * t->width, row, t->width * sizeof (float));
        m->of[m->n] = r;
        t->place[r] = (uint32_t)++m->n;
    }
}

static void merge_apply (struct ps_table *t, struct ps_merge *m)
{
    for (uint64_t i = 0; i < m->n; i++) {
        apply_row (t, m->of[i], m->sums + i * t->width);
        t->place[m->of[i]] = 0;
    }
}

static void merge_free (struct ps_merge *m)
{
    free (m->sums);
    free (m->of);
}

/* A row that is alone needs no sum. */
int ps_table_apply_rows (struct ps_table *t,
                         const uint64_t *ids,
                         const float *gradients,
                         uint64_t n)
{
    struct ps_merge m;
    int rv;

    if (make_rows (t, ids, n) < 0)
        return -1;
    if (n == 1) {
        apply_row (t, (uint64_t)ps_table_row (t, *ids), gradients);
        return 0;
    }
    if ((rv = merge_create (t, &m, n)) == 0) {
        merge_rows (t, &m, ids, gradients, n);
        merge_apply (t, &m);
    }
    merge_free (&m);
    return rv;
}

static int end_rows (struct ps_table *t)
{
    struct ps_merge m;
    uint64_t all = 0;
    int rv;

    for (long w = 0; w < t->workers; w++) {
        all += t->sums[w].n;
        if (make_rows (t, t->sums[w].ids, t->sums[w].n) < 0)
            return -1;
    }
    if (!all)
        return 0;
    if ((rv = merge_create (t, &m, all)) == 0) {
        for (long w = 0; w < t->workers; w++) {
            struct ps_sum *s = &t->sums[w];
            merge_rows (t, &m, s->ids, s->rows, s->n);
            s->n = 0;
        }
        merge_apply (t, &m);
    }
    merge_free (&m);
    return rv;
}

int ps_table_end (struct ps_table *t)
{
    float *sum;

    if (!ps_table_is_dense (t))
        return end_rows (t);
    if (!(sum = malloc (PS_BLOCK * sizeof (float))))
        return -1;
    for (uint64_t r = 0; r < t->rows; r++)
        end_block (t, r, sum);
    free (sum);
    return 0;
}
