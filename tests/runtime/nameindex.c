/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table are found by name, whatever was added and removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/storage/name_index.h"
#include "tests/unit.h"

enum { ROWS = 3000, NAMES = 5000 };

struct row {
    char name[16];
    int value;
};

struct table {
    struct row rows[ROWS];
    size_t n;
    struct name_index index;
};

static struct row *linear (struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp (t->rows[i].name, name))
            return &t->rows[i];
    return NULL;
}

static void take_out (struct table *t, struct row *row)
{
    size_t i = (size_t)(row - t->rows);

    name_index_remove (&t->index, t->rows, sizeof (*row), i);
    if (i != --t->n) {
        name_index_move (&t->index, t->rows, sizeof (*row), t->n, i);
        *row = t->rows[t->n];
    }
}

CASE (test_random)
{
    struct table *t = calloc (1, sizeof (*t));
    unsigned seed = 7;

    assert_non_null (t);
    for (int k = 0; k < 60000; k++) {
        char name[16];
        struct row *row;
        seed = seed * 1664525 + 1013904223;
        snprintf (name, sizeof (name), "n%u", (seed >> 8) % NAMES);
        row = name_index_find (&t->index, t->rows, sizeof (*row), name);
        if (k % 16 == 0)
            assert_ptr_equal (row, linear (t, name));
        if (row) {
            assert_string_equal (row->name, name);
            take_out (t, row);
        } else if (t->n < ROWS) {
            row = &t->rows[t->n];
            memcpy (row->name, name, sizeof (name));
            assert_int_equal (name_index_add (&t->index, t->rows, sizeof (*row), t->n++), 0);
        }
    }
    for (size_t i = 0; i < t->n; i++)
        assert_ptr_equal (name_index_find (&t->index, t->rows, sizeof (*t->rows), t->rows[i].name),
                          &t->rows[i]);
    while (t->n)
        take_out (t, &t->rows[t->n / 2]);
    assert_null (name_index_find (&t->index, t->rows, sizeof (*t->rows), "n1"));
    name_index_free (&t->index);
    free (t);
}

RUN_CASES ()
