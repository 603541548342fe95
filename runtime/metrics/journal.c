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
#include "runtime/metrics/journal_file.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"

enum { FILES_MAX = 1000, WASTE_MAX = 64 << 10 };

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
    if (journal_make_file (tmp, j) < 0)
        return -1;
    named = fsync (j->fd) == 0;
    if (named && name_file (j, tmp, dir, stem) == 0) {
        j->dirty = 0;
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

/* ---- the rest of the interface ---- */

static uint64_t room_for (const struct column *c, uint64_t n)
{
    uint64_t room = c->room;

    while (room - c->n < n)
        room *= JOURNAL_GROWTH;
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
    if (enough)
        return 0;
    if (j->work && journal_end_work (j) == 0)
        return make_room (j, more); /* there may be room now */
    return journal_replace (j, rooms, NULL, 0);
}

int journal_add_names (struct journal *j,
                       const char (*names)[NAME_SIZE],
                       uint64_t n)
{
    if (make_room (j, (uint64_t[COLUMNS]){ n }) < 0)
        return -1;
    return journal_append (j, &j->names, names, n);
}

int journal_add_rows (struct journal *j, const struct row *rows, uint64_t n)
{
    if (make_room (j, (uint64_t[COLUMNS]){ 0, n }) < 0)
        return -1;
    return journal_append (j, &j->rows, rows, n);
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
        if (journal_put (j, &j->bytes, data[i], r->bytes) < 0)
            return -1;
        j->bytes.n += r->bytes;
    }
    return journal_set_length (j, &j->bytes, j->bytes.n);
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
        && journal_append (j, &j->records, records, n) == 0)
        return 0;
    j->bytes.n = before; /* the next try writes there again */
    return -1;
}

int journal_replace_rows (struct journal *j, const struct row *rows, uint64_t n)
{
    uint64_t rooms[COLUMNS];

    journal_rooms (j, rooms);
    while (rooms[1] < n)
        rooms[1] *= JOURNAL_GROWTH;
    return journal_replace (j, rooms, rows, n);
}

/* After a failed sync the kernel may take what it could not write for written:
 * only a new file is sure then.
 */
int journal_sync (struct journal *j)
{
    uint64_t rooms[COLUMNS];

    journal_end_work (j); /* if it has failed the file is suspect */
    journal_rooms (j, rooms);
    if (j->suspect && journal_replace (j, rooms, NULL, 0) < 0)
        return -1;
    j->suspect = j->dirty && fdatasync (j->fd) < 0;
    if (j->suspect)
        return -1;
    j->dirty = 0;
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
    journal_end_work (j);
    for (int i = 0; i < COLUMNS; i++) {
        const struct column *c = &j->columns[i];
        exact[i] = c->n;
        waste += (c->room - c->n) * c->size;
    }
    /* the file that is there is good: a failure here loses nothing */
    if (waste <= WASTE_MAX || journal_replace (j, exact, NULL, 0) < 0)
        rv = journal_sync (j);
    close (j->fd);
    free (j->blank.image);
    j->fd = -1;
    j->blank.image = NULL;
    return rv;
}

int journal_tend (struct journal *j, bool sync, atomic_uint *bell)
{
    int rv = journal_is_done (j) ? journal_end_work (j) : 0;

    if (rv < 0 || j->work)
        return rv;
    if (journal_needs_room (j))
        journal_begin_growth (j, bell);
    else if (sync && j->dirty && journal_begin_sync (j, bell) < 0)
        return journal_sync (j);
    return 0;
}
