/* SPDX-License-Identifier: Apache-2.0 */
/* Extend a metrics file with pwrite(). */
#include "runtime/metrics/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/metrics/file_create.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"

enum { WASTE_MAX = 64 << 10 };

static int open_file (struct metrics_file *f, const char *dir, int folder, const char *stem,
                      const char *tmp)
{
    snprintf (f->path, sizeof (f->path), "%s/%s.h5", dir, stem);
    if (tmp)
        snprintf (f->tmp, sizeof (f->tmp), "%s", tmp);
    else
        link_tmp_name (f->tmp, sizeof (f->tmp), "");
    f->folder = folder < 0 ? inside_open_any (dir, O_RDONLY | O_DIRECTORY, 0, NULL)
                           : fcntl (folder, F_DUPFD_CLOEXEC, 0);
    return f->folder < 0 ? -1 : metrics_file_make (f->tmp, f);
}

static void close_file (struct metrics_file *f)
{
    int e = errno;

    if (f->fd >= 0)
        close (f->fd);
    if (f->folder >= 0)
        close (f->folder);
    free (f->blank.image);
    metrics_file_keep_end (f);
    f->fd = f->folder = -1;
    f->blank.image = NULL;
    errno = e;
}

static int create_file (struct metrics_file *f, const char *dir, int folder, const char *stem,
                        const char *tmp, const struct metrics_file_about *about,
                        struct slurmdl_error *err)
{
    *f = (struct metrics_file){ .fd = -1, .folder = -1 };
    if (strlen (dir) + strlen (stem) > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", dir);
    }
    errno = 0;
    if (blank_make (&f->blank, about, f->columns) == 0
        && open_file (f, dir, folder, stem, tmp) == 0) {
        metrics_file_keep_new (f);
        return 0;
    }
    errno = errno ? errno : EIO; /* HDF5 sets none */
    close_file (f);
    return errorf (err, "%s: cannot create a metrics file: %s", dir, strerror (errno));
}

int metrics_file_create (struct metrics_file *f, const char *dir, int folder, const char *tmp,
                         const struct metrics_file_about *about, struct slurmdl_error *err)
{
    return create_file (f, dir, folder, "metrics", tmp, about, err);
}

/* It was made before anybody knew whose it would be. */
static int write_number (struct metrics_file *f, uint64_t at)
{
    f->dirty += sizeof (uint64_t);
    return io_write_at (f->fd, f->blank.image + at, sizeof (uint64_t), (off_t)at);
}

int metrics_file_move (struct metrics_file *f, const char *dir, int folder,
                       const struct metrics_file_about *about)
{
    int to = -1;

    if (snprintf (f->path, sizeof (f->path), "%s/metrics.h5", dir) >= (int)sizeof (f->path) - 8
        || blank_number (&f->blank, about) < 0 || write_number (f, f->blank.trial) < 0
        || write_number (f, f->blank.attempt) < 0 || (to = fcntl (folder, F_DUPFD_CLOEXEC, 0)) < 0
        || renameat (f->folder, f->tmp, to, metrics_file_name (f)) < 0)
        return inside_close (to, -1);
    close (f->folder);
    f->folder = to;
    f->held = false;
    *f->tmp = '\0';
    metrics_file_is_named (f);
    return 0;
}

int metrics_file_create_as (struct metrics_file *f, const char *dir, int folder, const char *stem,
                            const struct metrics_file_about *about, struct slurmdl_error *err)
{
    if (create_file (f, dir, folder, stem, NULL, about, err) < 0)
        return -1;
    if (metrics_file_sync (f) == 0)
        return 0;
    errorf (err, "%s: cannot write: %s", f->path, strerror (errno));
    if (*f->tmp)
        unlinkat (f->folder, f->tmp, 0);
    close_file (f);
    return -1;
}

static uint64_t room_for (const struct column *c, uint64_t n)
{
    uint64_t room = c->room;

    while (room - c->n < n)
        room *= ROOM_GROWTH;
    return room;
}

/* Room for so many more records of each column. */
static int make_room (struct metrics_file *f, const uint64_t *more)
{
    uint64_t rooms[COLUMNS];
    bool enough = true;

    for (int i = 0; i < COLUMNS; i++) {
        rooms[i] = room_for (&f->columns[i], more[i]);
        enough = enough && rooms[i] == f->columns[i].room;
    }
    if (enough)
        return 0;
    if (f->work && metrics_file_end_work (f) == 0)
        return make_room (f, more); /* there may be room now */
    return metrics_file_replace (f, rooms, NULL, 0);
}

int metrics_file_add_names (struct metrics_file *f, const char (*names)[NAME_SIZE], uint64_t n)
{
    if (make_room (f, (uint64_t[COLUMNS]){ n }) < 0)
        return -1;
    return metrics_file_append (f, &f->names, names, n);
}

int metrics_file_add_rows (struct metrics_file *f, const struct row *rows, uint64_t n)
{
    if (make_room (f, (uint64_t[COLUMNS]){ 0, n }) < 0)
        return -1;
    return metrics_file_append (f, &f->rows, rows, n);
}

static int put_data (struct metrics_file *f, struct record *records, const void *const *data,
                     uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct record *r = &records[i];
        r->offset = f->bytes.n;
        r->data_crc = crc32c (0, data[i], r->bytes);
        r->crc = record_crc (r);
        if (metrics_file_put (f, &f->bytes, data[i], r->bytes) < 0)
            return -1;
        f->bytes.n += r->bytes;
    }
    return metrics_file_set_length (f, &f->bytes, f->bytes.n);
}

int metrics_file_add_records (struct metrics_file *f, struct record *records,
                              const void *const *data, uint64_t n)
{
    uint64_t bytes = 0;
    uint64_t before;

    for (uint64_t i = 0; i < n; i++)
        bytes += records[i].bytes;
    if (make_room (f, (uint64_t[COLUMNS]){ 0, 0, n, bytes }) < 0)
        return -1;
    before = f->bytes.n;
    if (put_data (f, records, data, n) == 0
        && metrics_file_append (f, &f->records, records, n) == 0)
        return 0;
    f->bytes.n = before; /* the next try writes there again */
    return -1;
}

int metrics_file_replace_rows (struct metrics_file *f, const struct row *rows, uint64_t n)
{
    uint64_t rooms[COLUMNS];

    metrics_file_rooms (f, rooms);
    while (rooms[1] < n)
        rooms[1] *= ROOM_GROWTH;
    return metrics_file_replace (f, rooms, rows, n);
}

/* What has no name yet gets it when all that is in it is synced. */
static int sync_file (struct metrics_file *f)
{
    if (!*f->tmp)
        return f->dirty ? fdatasync (f->fd) : 0;
    if (f->dirty && fsync (f->fd) < 0)
        return -1;
    if (f->held)
        return 0;
    if (metrics_file_first_name (f, f->tmp) < 0)
        return -1;
    *f->tmp = '\0';
    return 0;
}

/* What is written then nobody will ever see. */
static bool is_removed (const struct metrics_file *f)
{
    struct stat st;

    return fstat (f->fd, &st) == 0 && st.st_nlink == 0;
}

/* After a failed sync the kernel may take what it could not write for written:
 * only a new file is sure then.
 */
int metrics_file_sync (struct metrics_file *f)
{
    uint64_t rooms[COLUMNS];

    metrics_file_end_work (f); /* if it has failed the file is suspect */
    f->suspect |= is_removed (f);
    metrics_file_rooms (f, rooms);
    if (f->suspect && (f->held || metrics_file_replace (f, rooms, NULL, 0) < 0))
        return -1;
    f->suspect = sync_file (f) < 0;
    if (f->suspect)
        return -1;
    f->dirty = 0;
    if (f->fresh && link_sync_folder (f->folder) < 0)
        return -1;
    f->fresh = false;
    metrics_file_kept_synced (f);
    return 0;
}

int metrics_file_close (struct metrics_file *f)
{
    uint64_t waste = 0;
    uint64_t exact[COLUMNS];
    int rv = 0;

    if (f->fd < 0)
        return 0;
    metrics_file_end_work (f);
    for (int i = 0; i < COLUMNS; i++) {
        const struct column *c = &f->columns[i];
        exact[i] = c->n;
        waste += (c->room - c->n) * c->size;
    }
    /* the file that is there is good: a failure here loses nothing */
    if (waste <= WASTE_MAX || metrics_file_replace (f, exact, NULL, 0) < 0)
        rv = metrics_file_sync (f);
    close_file (f);
    return rv;
}

int metrics_file_tend (struct metrics_file *f, bool sync, atomic_uint *bell)
{
    int rv = metrics_file_is_done (f) ? metrics_file_end_work (f) : 0;

    if (rv < 0 || f->work)
        return rv;
    if (*f->tmp)
        return metrics_file_sync (f);
    if (metrics_file_needs_room (f))
        metrics_file_begin_growth (f, bell);
    else if (sync && f->dirty && metrics_file_begin_sync (f, bell) < 0)
        return metrics_file_sync (f);
    return 0;
}
