/* SPDX-License-Identifier: Apache-2.0 */
/* Make a metrics file, and write into it. */
#include "runtime/metrics/journal_file.h"

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

int journal_set_length (struct journal *j, struct column *c, uint64_t n)
{
    if (io_write_at (j->fd, &n, sizeof (n), c->length) < 0)
        return -1;
    c->n = n;
    return 0;
}

int journal_put (struct journal *j,
                 const struct column *c,
                 const void *records,
                 uint64_t n)
{
    j->dirty += n * c->size;
    journal_keep (j, c, records, n);
    return io_write_at (
        j->fd, records, n * c->size, c->data + (off_t)(c->n * c->size));
}

/* The records first: nobody sees them before the length says so. */
int journal_append (struct journal *j,
                    struct column *c,
                    const void *records,
                    uint64_t n)
{
    return journal_put (j, c, records, n) < 0
               ? -1
               : journal_set_length (j, c, c->n + n);
}

/* HDF5 2.0 refuses a dataset of length 0: each begins with one record, and so
 * the blank says.
 */
static int first_records (struct journal *j)
{
    static const char name[NAME_SIZE] = "slurmdl";
    struct row row = { .value = 1 };
    struct record record = { .bytes = 1 };

    rows_seal (&row, 1);
    record.data_crc = crc32c (0, "", 1);
    record.crc = record_crc (&record);
    for (int i = 0; i < COLUMNS; i++)
        j->columns[i].n = 0;
    if (journal_put (j, &j->names, name, 1) < 0
        || journal_put (j, &j->rows, &row, 1) < 0
        || journal_put (j, &j->bytes, "", 1) < 0
        || journal_put (j, &j->records, &record, 1) < 0)
        return -1;
    for (int i = 0; i < COLUMNS; i++)
        j->columns[i].n = 1;
    return 0;
}

static uint64_t round_up (uint64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* The room for records, at the end, stays a hole. */
static int write_blank (struct journal *j)
{
    uint64_t at = round_up (j->blank.size);

    for (int i = 0; i < COLUMNS; i++) {
        struct column *c = &j->columns[i];
        c->data = (off_t)at;
        blank_place (&j->blank, c);
        at = round_up (at + c->room * c->size);
    }
    blank_end (&j->blank, at);
    return io_write_at (j->fd, j->blank.image, j->blank.size, 0) < 0
                   || ftruncate (j->fd, (off_t)at) < 0
               ? -1
               : 0;
}

int journal_make_file (const char *name, struct journal *j)
{
    int e;

    j->fd =
        inside_open_at (j->folder, name, O_RDWR | O_CREAT | O_EXCL, 0666, NULL);
    if (j->fd < 0)
        return -1;
    if (write_blank (j) == 0 && first_records (j) == 0)
        return 0;
    e = errno;
    close (j->fd);
    unlinkat (j->folder, name, 0);
    j->fd = -1;
    errno = e;
    return -1;
}

const char *journal_name (const struct journal *j)
{
    return strrchr (j->path, '/') + 1;
}

int journal_first_name (struct journal *j, const char *tmp)
{
    size_t stem = strlen (j->path) - strlen (".h5");
    int rv = link_unsynced_at (j->folder, tmp, journal_name (j));

    j->number = 0;
    for (int i = 1; rv == 1 && i < FILES_MAX; i++) {
        j->number = i;
        snprintf (j->path + stem, sizeof (j->path) - stem, ".%d.h5", i);
        rv = link_unsynced_at (j->folder, tmp, journal_name (j));
    }
    if (rv != 0)
        strcpy (j->path + stem, ".h5");
    else
        j->fresh = true;
    return rv == 0 ? 0 : -1;
}
