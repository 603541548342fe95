/* SPDX-License-Identifier: Apache-2.0 */
/* Make a metrics file, and write into it. */
#include "runtime/metrics/file_create.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/storage/crc32c.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"

enum { ALIGN = 64, FILES_MAX = 1000 };

int metrics_file_set_length (struct metrics_file *f, struct column *c, uint64_t n)
{
    if (io_write_at (f->fd, &n, sizeof (n), c->length) < 0)
        return -1;
    c->n = n;
    return 0;
}

int metrics_file_put (struct metrics_file *f, const struct column *c, const void *records,
                      uint64_t n)
{
    f->dirty += n * c->size;
    metrics_file_keep (f, c, records, n);
    return io_write_at (f->fd, records, n * c->size, c->data + (off_t)(c->n * c->size));
}

/* The records first: nobody sees them before the length says so. */
int metrics_file_append (struct metrics_file *f, struct column *c, const void *records, uint64_t n)
{
    return metrics_file_put (f, c, records, n) < 0 ? -1 : metrics_file_set_length (f, c, c->n + n);
}

/* HDF5 2.0 refuses a dataset of length 0: each begins with one record, and so
 * the blank says.
 */
static int first_records (struct metrics_file *f)
{
    static const char name[NAME_SIZE] = "slurmdl";
    struct row row = { .value = 1 };
    struct record record = { .bytes = 1 };

    rows_seal (&row, 1);
    record.data_crc = crc32c (0, "", 1);
    record.crc = record_crc (&record);
    for (int i = 0; i < COLUMNS; i++)
        f->columns[i].n = 0;
    if (metrics_file_put (f, &f->names, name, 1) < 0 || metrics_file_put (f, &f->rows, &row, 1) < 0
        || metrics_file_put (f, &f->bytes, "", 1) < 0
        || metrics_file_put (f, &f->records, &record, 1) < 0)
        return -1;
    for (int i = 0; i < COLUMNS; i++)
        f->columns[i].n = 1;
    return 0;
}

static uint64_t round_up (uint64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* The room for records, at the end, stays a hole. */
static int write_blank (struct metrics_file *f)
{
    uint64_t at = round_up (f->blank.size);

    for (int i = 0; i < COLUMNS; i++) {
        struct column *c = &f->columns[i];
        c->data = (off_t)at;
        blank_place (&f->blank, c);
        at = round_up (at + c->room * c->size);
    }
    blank_end (&f->blank, at);
    return io_write_at (f->fd, f->blank.image, f->blank.size, 0) < 0
                   || ftruncate (f->fd, (off_t)at) < 0
               ? -1
               : 0;
}

int metrics_file_make (const char *name, struct metrics_file *f)
{
    int e;

    f->fd = inside_open_at (f->folder, name, O_RDWR | O_CREAT | O_EXCL, 0644, NULL);
    if (f->fd < 0)
        return -1;
    if (write_blank (f) == 0 && first_records (f) == 0)
        return 0;
    e = errno;
    close (f->fd);
    unlinkat (f->folder, name, 0);
    f->fd = -1;
    errno = e;
    return -1;
}

const char *metrics_file_name (const struct metrics_file *f)
{
    return strrchr (f->path, '/') + 1;
}

void metrics_file_is_named (struct metrics_file *f)
{
    f->fresh = true;
    if (f->named)
        atomic_store (f->named, f->number + 1);
}

int metrics_file_first_name (struct metrics_file *f, const char *tmp)
{
    size_t stem = strlen (f->path) - strlen (".h5");
    int rv = link_unsynced_at (f->folder, tmp, metrics_file_name (f));

    f->number = 0;
    for (int i = 1; rv == 1 && i < FILES_MAX; i++) {
        f->number = i;
        snprintf (f->path + stem, sizeof (f->path) - stem, ".%d.h5", i);
        rv = link_unsynced_at (f->folder, tmp, metrics_file_name (f));
    }
    if (rv != 0)
        strcpy (f->path + stem, ".h5");
    else
        metrics_file_is_named (f);
    return rv == 0 ? 0 : -1;
}
