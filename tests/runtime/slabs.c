/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs of tensors, compared with an element-wise implementation. */
#include "tests/runtime/plain.h"
#include "tests/unit.h"

static void check_copy (const struct slab *a, const struct slab *b)
{
    uint16_t to[64], want[64], from[64];

    for (uint16_t i = 0; i < 64; i++) {
        to[i] = want[i] = (uint16_t)(1000 + i);
        from[i] = i;
    }
    slab_copy (a, to, b, from, sizeof (*to));
    for (uint64_t k = 0; k < count_of (b); k++) {
        int64_t at = plain_place (a, b, k);
        if (at >= 0)
            want[at] = from[k];
    }
    assert_memory_equal (to, want, sizeof (to));
}

/* The next box in a tensor of this shape; false after the last. */
static bool next_box (struct slab *s, const uint64_t *shape)
{
    for (int i = 0; i < s->ndims; i++) {
        if (s->offset[i] + ++s->dims[i] <= shape[i])
            return true;
        s->dims[i] = 1;
        if (++s->offset[i] < shape[i])
            return true;
        s->offset[i] = 0;
    }
    return false;
}

CASE (slabs_copy_what_they_share)
{
    static const struct {
        int ndims;
        uint64_t shape[3];
    } shapes[] = {
        { 1, { 5 } }, { 2, { 3, 4 } }, { 2, { 1, 5 } }, { 3, { 2, 3, 2 } }, { 3, { 3, 1, 3 } }
    };
    long pairs = 0;

    for (size_t k = 0; k < COUNT (shapes); k++) {
        struct slab a = { .ndims = shapes[k].ndims, .dims = { 1, 1, 1 } };
        do {
            struct slab b = { .ndims = shapes[k].ndims, .dims = { 1, 1, 1 } };
            do {
                check_copy (&a, &b);
                pairs++;
            } while (next_box (&b, shapes[k].shape));
        } while (next_box (&a, shapes[k].shape));
    }
    assert_true (pairs > 8000);
}

struct cutting {
    const struct slab *box;
    uint64_t most, next, parts;
};

/* A part holds the next elements of the box. */
static int check_part (const struct slab *part, void *arg)
{
    struct cutting *c = arg;

    assert_true (count_of (part) > 0 && count_of (part) <= c->most);
    for (uint64_t k = 0; k < count_of (part); k++)
        assert_int_equal (plain_place (c->box, part, k), c->next++);
    c->parts++;
    return 0;
}

static int stop_at_once (const struct slab *part, void *arg)
{
    return ++*(int *)arg;
}

CASE (slabs_cut_in_order)
{
    static const struct slab boxes[] = {
        { .ndims = 0 },
        { .ndims = 1, .offset = { 3 }, .dims = { 7 } },
        { .ndims = 3, .offset = { 1, 0, 2 }, .dims = { 3, 1, 5 } },
        { .ndims = 3, .dims = { 1, 4, 6 } },
        { .ndims = 4, .offset = { 0, 0, 1 }, .dims = { 2, 2, 3, 2 } },
    };
    int calls = 0;

    for (size_t i = 0; i < COUNT (boxes); i++)
        for (uint64_t most = 1; most < 30; most++) {
            struct cutting c = { &boxes[i], most, 0, 0 };
            assert_int_equal (slab_cut (&boxes[i], most, check_part, &c), 0);
            assert_int_equal (c.next, count_of (&boxes[i]));
            assert_true (c.parts == 1 || c.next > most);
        }
    assert_int_equal (slab_cut (&boxes[3], 2, stop_at_once, &calls), 1);
    assert_int_equal (calls, 1);
}

CASE (slabs_without_elements)
{
    struct slab none = { .ndims = 2, .dims = { 0, 3 } };
    struct slab all = { .ndims = 2, .dims = { 4, 3 } };
    struct slab scalar = { .ndims = 0 };
    struct slab both;
    int32_t x = 1, y = 2;

    assert_int_equal (slab_elements (&none), 0);
    assert_false (slab_overlap (&none, &all, &both));
    assert_int_equal (slab_elements (&scalar), 1);
    slab_copy (&scalar, &x, &scalar, &y, sizeof (x));
    assert_int_equal (x, 2);
    none.dims[0] = UINT64_MAX;
    assert_true (slab_elements (&none) == UINT64_MAX);
    none.offset[0] = 1;
    assert_false (slab_fits (&none, all.dims));
}

RUN_CASES ()
