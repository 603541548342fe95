/* SPDX-License-Identifier: Apache-2.0 */
/* Keep in memory what a metrics file has got since its last sync. */
#include "runtime/metrics/journal_file.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a column: who writes more in a few seconds relies on the file. */
enum { KEPT_MAX = 1 << 20, KEPT_LEAST = 4 << 10 };

struct journal_kept {
    struct {
        char *data;
        size_t room;
        uint64_t from; /* the number of its first record */
    } columns[COLUMNS];
    bool over; /* there was too much, or no memory */
};

void journal_keep_new (struct journal *j)
{
    j->kept = calloc (1, sizeof (*j->kept));
    journal_kept_synced (j);
}

void journal_keep_end (struct journal *j)
{
    for (int i = 0; j->kept && i < COLUMNS; i++)
        free (j->kept->columns[i].data);
    free (j->kept);
    j->kept = NULL;
}

static int make_room (struct journal_kept *k, int i, size_t size)
{
    size_t room = k->columns[i].room ? k->columns[i].room : KEPT_LEAST;
    char *data;

    while (room < size)
        room *= 2;
    if (room > KEPT_MAX)
        return -1;
    if (room == k->columns[i].room)
        return 0;
    if (!(data = realloc (k->columns[i].data, room)))
        return -1;
    k->columns[i].data = data;
    k->columns[i].room = room;
    return 0;
}

void journal_keep (struct journal *j,
                   const struct column *c,
                   const void *records,
                   uint64_t n)
{
    struct journal_kept *k = j->kept;
    int i = (int)(c - j->columns);
    size_t at;

    if (!k || k->over)
        return;
    at = (c->n - k->columns[i].from) * c->size;
    if (make_room (k, i, at + n * c->size) < 0)
        k->over = true;
    else
        memcpy (k->columns[i].data + at, records, n * c->size);
}

uint64_t journal_kept (const struct journal *j,
                       const struct column *c,
                       const char **data)
{
    const struct journal_kept *k = j->kept;
    int i = (int)(c - j->columns);

    if (!k || k->over)
        return c->n;
    *data = k->columns[i].data;
    return k->columns[i].from;
}

void journal_kept_synced (struct journal *j)
{
    for (int i = 0; j->kept && i < COLUMNS; i++)
        j->kept->columns[i].from = j->columns[i].n;
    if (j->kept)
        j->kept->over = false;
}
