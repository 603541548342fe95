/* SPDX-License-Identifier: Apache-2.0 */
/* Keep in memory what a metrics file has got since its last sync. */
#include "runtime/metrics/file_create.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a column: who writes more in a few seconds relies on the file. */
enum { KEPT_MAX = 1 << 20, KEPT_LEAST = 4 << 10 };

struct metrics_file_kept {
    struct {
        char *data;
        size_t room;
        uint64_t from; /* the number of its first record */
    } columns[COLUMNS];
    bool over; /* there was too much, or no memory */
};

void metrics_file_keep_new (struct metrics_file *f)
{
    f->kept = calloc (1, sizeof (*f->kept));
    metrics_file_kept_synced (f);
}

void metrics_file_keep_end (struct metrics_file *f)
{
    for (int i = 0; f->kept && i < COLUMNS; i++)
        free (f->kept->columns[i].data);
    free (f->kept);
    f->kept = NULL;
}

static int make_room (struct metrics_file_kept *k, int i, size_t size)
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

void metrics_file_keep (struct metrics_file *f, const struct column *c, const void *records,
                        uint64_t n)
{
    struct metrics_file_kept *k = f->kept;
    int i = (int)(c - f->columns);
    size_t at;

    if (!k || k->over)
        return;
    at = (c->n - k->columns[i].from) * c->size;
    if (make_room (k, i, at + n * c->size) < 0)
        k->over = true;
    else
        memcpy (k->columns[i].data + at, records, n * c->size);
}

uint64_t metrics_file_kept (const struct metrics_file *f, const struct column *c, const char **data)
{
    const struct metrics_file_kept *k = f->kept;
    int i = (int)(c - f->columns);

    if (!k || k->over)
        return c->n;
    *data = k->columns[i].data;
    return k->columns[i].from;
}

void metrics_file_kept_synced (struct metrics_file *f)
{
    for (int i = 0; f->kept && i < COLUMNS; i++)
        f->kept->columns[i].from = f->columns[i].n;
    if (f->kept)
        f->kept->over = false;
}
