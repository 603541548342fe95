/* SPDX-License-Identifier: Apache-2.0 */
/* Extend a metrics file with pwrite(). */
#include "runtime/metrics/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"

enum { COPY_SIZE = 1 << 20, FILES_MAX = 1000, WASTE_MAX = 64 << 10 };
enum { ALIGN = 64 };

/* So many times the room when it is used up; a large dataset's twice. */
enum { GROWTH = 8, GROWTH_LARGE = 2, LARGE = 64 << 20 };

/* ---- writing ---- */

static int set_length (struct journal *j, struct column *c, uint64_t n)
{
    if (io_write_at (j->fd, &n, sizeof (n), c->length) < 0)
        return -1;
    c->n = n;
    return 0;
}

static int
put (struct journal *j, const struct column *c, const void *records, uint64_t n)
{
    j->dirty = true;
    return io_write_at (
        j->fd, records, n * c->size, c->data + (off_t)(c->n * c->size));
}

/* The records first: nobody sees them before the length says so. */
static int
add (struct journal *j, struct column *c, const void *records, uint64_t n)
{
    return put (j, c, records, n) < 0 ? -1 : set_length (j, c, c->n + n);
}

/* HDF5 2.0 refuses a dataset of length 0: each begins with one record. */
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
    return add (j, &j->names, name, 1) < 0 || add (j, &j->rows, &row, 1) < 0
                   || add (j, &j->bytes, "", 1) < 0
                   || add (j, &j->records, &record, 1) < 0
               ? -1
               : 0;
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

/* Make a file of the journal's room under 'path'. */
static int make_file (const char *path, struct journal *j)
{
    int e;

    j->fd = inside_open_any (path, O_RDWR | O_CREAT | O_EXCL, 0666, NULL);
    if (j->fd < 0)
        return -1;
    if (write_blank (j) == 0 && first_records (j) == 0)
        return 0;
    e = errno;
    close (j->fd);
    unlink (path);
    j->fd = -1;
    errno = e;
    return -1;
}

/* Give the file the first name that is free: 0, or -1 */
static int name_file (struct journal *j,
                      const char *tmp,
                      const char *dir,
                      const char *stem)
{
    int rv = 1;

    for (int i = 0; rv == 1 && i < FILES_MAX; i++) {
        if (i == 0)
            snprintf (j->path, sizeof (j->path), "%s/%s.h5", dir, stem);
        else
            snprintf (j->path, sizeof (j->path), "%s/%s.%d.h5", dir, stem, i);
        rv = link_unsynced (tmp, j->path);
    }
    return rv == 0 ? 0 : -1;
}

static int make_named (struct journal *j, const char *dir, const char *stem)
{
    char near[PATH_MAX];
    char tmp[PATH_MAX];
    bool named;
    int e;

    snprintf (near, sizeof (near), "%s/%s.h5", dir, stem);
    link_tmp_name (tmp, sizeof (tmp), near);
    if (make_file (tmp, j) < 0)
        return -1;
    named = fsync (j->fd) == 0;
    if (named && name_file (j, tmp, dir, stem) == 0) {
        j->dirty = false;
        j->fresh = true;
        return 0;
    }
    e = errno;
    if (!named)
        unlink (tmp);
    close (j->fd);
    j->fd = -1;
    errno = e;
    return -1;
}

int journal_create_as (struct journal *j,
                       const char *dir,
                       const char *stem,
                       const struct journal_about *about,
                       struct slurmdl_error *err)
{
    int e;

    *j = (struct journal){ .fd = -1 };
    if (strlen (dir) + strlen (stem) > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", dir);
    }
    errno = 0;
    if (blank_make (&j->blank, about, j->columns) == 0
        && make_named (j, dir, stem) == 0)
        return 0;
    e = errno ? errno : EIO; /* HDF5 sets none */
    free (j->blank.image);
    j->blank.image = NULL;
    errno = e;
    return errorf (
        err, "%s: cannot create a metrics file: %s", dir, strerror (errno));
}

int journal_create (struct journal *j,
                    const char *dir,
                    const struct journal_about *about,
                    struct slurmdl_error *err)
{
    return journal_create_as (j, dir, "metrics", about, err);
}

/* ---- a larger, or an exact, file in the place of this one ---- */

static int copy_bytes (int from, off_t at, int to, off_t where, uint64_t len)
{
    char *buf = malloc (COPY_SIZE);
    int rv = buf ? 0 : -1;

    while (rv == 0 && len > 0) {
        size_t n = len < COPY_SIZE ? (size_t)len : COPY_SIZE;
        if (io_read_at (from, buf, n, at) < 0
            || io_write_at (to, buf, n, where) < 0)
            rv = -1;
        at += (off_t)n;
        where += (off_t)n;
        len -= n;
    }
    free (buf);
    return rv;
}

static int copy_column (const struct journal *old,
                        const struct column *from,
                        struct journal *j,
                        struct column *to)
{
    if (copy_bytes (old->fd, from->data, j->fd, to->data, from->n * from->size)
        < 0)
        return -1;
    return set_length (j, to, from->n);
}

/* 'n' rows in the place of all, or all of them if 'rows' is NULL. */
static int copy_columns (const struct journal *old,
                         struct journal *j,
                         const struct row *rows,
                         uint64_t n)
{
    int rv = 0;

    for (int i = 0; rv == 0 && i < COLUMNS; i++) {
        struct column *to = &j->columns[i];
        if (rows && to == &j->rows) {
            to->n = 0;
            rv = add (j, to, rows, n);
        } else
            rv = copy_column (old, &old->columns[i], j, to);
    }
    return rv;
}

static bool has_name (const struct journal *j)
{
    struct stat file;
    struct stat named;

    return fstat (j->fd, &file) == 0 && stat (j->path, &named) == 0
           && file.st_dev == named.st_dev && file.st_ino == named.st_ino;
}

/* What fails after the new file has the name has not failed: the old one is
 * out of reach then.  The next sync tries once more.
 */
static int give_name (struct journal *j, const char *tmp)
{
    j->dirty = j->suspect = j->fresh = false;
    if (link_replace (tmp, j->path) == 0)
        return 0;
    j->dirty = j->suspect = has_name (j);
    return j->suspect ? 0 : -1;
}

static int replace (struct journal *j,
                    const uint64_t *rooms,
                    const struct row *rows,
                    uint64_t n)
{
    struct journal new = *j;
    char tmp[PATH_MAX];
    int e;

    for (int i = 0; i < COLUMNS; i++)
        new.columns[i].room = rooms[i];
    link_tmp_name (tmp, sizeof (tmp), j->path);
    if (make_file (tmp, &new) < 0)
        return -1;
    if (copy_columns (j, &new, rows, n) < 0 || fsync (new.fd) < 0
        || give_name (&new, tmp) < 0) {
        e = errno;
        close (new.fd);
        unlink (tmp);
        errno = e;
        return -1;
    }
    close (j->fd);
    *j = new;
    return 0;
}

static void present_rooms (const struct journal *j, uint64_t *rooms)
{
    for (int i = 0; i < COLUMNS; i++)
        rooms[i] = j->columns[i].room;
}

static uint64_t room_for (const struct column *c, uint64_t n)
{
    uint64_t room = c->room;

    while (room - c->n < n)
        room *= room * c->size < LARGE ? GROWTH : GROWTH_LARGE;
    return room;
}

/* Room for so many more records of each column. */
static int make_room (struct journal *j, const uint64_t *more)
{
    uint64_t rooms[COLUMNS];
    bool enough = true;

    for (int i = 0; i < COLUMNS; i++) {
        rooms[i] = room_for (&j->columns[i], more[i]);
        enough = enough && rooms[i] == j->columns[i].room;
    }
    return enough ? 0 : replace (j, rooms, NULL, 0);
}

/* ---- the rest of the interface ---- */

int journal_add_names (struct journal *j,
                       const char (*names)[NAME_SIZE],
                       uint64_t n)
{
    if (make_room (j, (uint64_t[COLUMNS]){ n }) < 0)
        return -1;
    return add (j, &j->names, names, n);
}

int journal_add_rows (struct journal *j, const struct row *rows, uint64_t n)
{
    if (make_room (j, (uint64_t[COLUMNS]){ 0, n }) < 0)
        return -1;
    return add (j, &j->rows, rows, n);
}

static int put_data (struct journal *j,
                     struct record *records,
                     const void *const *data,
                     uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct record *r = &records[i];
        r->offset = j->bytes.n;
        r->data_crc = crc32c (0, data[i], r->bytes);
        r->crc = record_crc (r);
        if (put (j, &j->bytes, data[i], r->bytes) < 0)
            return -1;
        j->bytes.n += r->bytes;
    }
    return set_length (j, &j->bytes, j->bytes.n);
}

int journal_add_records (struct journal *j,
                         struct record *records,
                         const void *const *data,
                         uint64_t n)
{
    uint64_t bytes = 0;
    uint64_t before;

    for (uint64_t i = 0; i < n; i++)
        bytes += records[i].bytes;
    if (make_room (j, (uint64_t[COLUMNS]){ 0, 0, n, bytes }) < 0)
        return -1;
    before = j->bytes.n;
    if (put_data (j, records, data, n) == 0
        && add (j, &j->records, records, n) == 0)
        return 0;
    j->bytes.n = before; /* the next try writes there again */
    return -1;
}

int journal_replace_rows (struct journal *j, const struct row *rows, uint64_t n)
{
    uint64_t rooms[COLUMNS];

    present_rooms (j, rooms);
    while (rooms[1] < n)
        rooms[1] *= GROWTH;
    return replace (j, rooms, rows, n);
}

/* After a failed sync the kernel may take what it could not write for written:
 * only a new file is sure then.
 */
int journal_sync (struct journal *j)
{
    uint64_t rooms[COLUMNS];

    present_rooms (j, rooms);
    if (j->suspect && replace (j, rooms, NULL, 0) < 0)
        return -1;
    j->suspect = j->dirty && fdatasync (j->fd) < 0;
    if (j->suspect)
        return -1;
    j->dirty = false;
    /* after the data: the file system has the name on its way by then */
    if (j->fresh && link_sync_folder (j->path) < 0)
        return -1;
    j->fresh = false;
    return 0;
}

int journal_close (struct journal *j)
{
    uint64_t waste = 0;
    uint64_t exact[COLUMNS];
    int rv = 0;

    if (j->fd < 0)
        return 0;
    for (int i = 0; i < COLUMNS; i++) {
        const struct column *c = &j->columns[i];
        exact[i] = c->n;
        waste += (c->room - c->n) * c->size;
    }
    /* the file that is there is good: a failure here loses nothing */
    if (waste <= WASTE_MAX || replace (j, exact, NULL, 0) < 0)
        rv = journal_sync (j);
    close (j->fd);
    free (j->blank.image);
    j->fd = -1;
    j->blank.image = NULL;
    return rv;
}
