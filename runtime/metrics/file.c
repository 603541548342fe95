/* SPDX-License-Identifier: Apache-2.0 */
/* Extend a metrics file with pwrite(). */
#include "runtime/metrics/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/metrics/journal_file.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

enum { WASTE_MAX = 64 << 10 };

static int
open_journal (struct journal *j, const char *dir, int folder, const char *stem)
{
    snprintf (j->path, sizeof (j->path), "%s/%s.h5", dir, stem);
    link_tmp_name (j->tmp, sizeof (j->tmp), "");
    j->folder = folder < 0
                    ? inside_open_any (dir, O_RDONLY | O_DIRECTORY, 0, NULL)
                    : fcntl (folder, F_DUPFD_CLOEXEC, 0);
    return j->folder < 0 ? -1 : journal_make_file (j->tmp, j);
}

static void close_journal (struct journal *j)
{
    int e = errno;

    if (j->fd >= 0)
        close (j->fd);
    if (j->folder >= 0)
        close (j->folder);
    free (j->blank.image);
    journal_keep_end (j);
    j->fd = j->folder = -1;
    j->blank.image = NULL;
    errno = e;
}

static int create_journal (struct journal *j,
                           const char *dir,
                           int folder,
                           const char *stem,
                           const struct journal_about *about,
                           struct slurmdl_error *err)
{
    *j = (struct journal){ .fd = -1, .folder = -1 };
    if (strlen (dir) + strlen (stem) > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", dir);
    }
    errno = 0;
    if (blank_make (&j->blank, about, j->columns) == 0
        && open_journal (j, dir, folder, stem) == 0) {
        journal_keep_new (j);
        return 0;
    }
    errno = errno ? errno : EIO; /* HDF5 sets none */
    close_journal (j);
    return errorf (
        err, "%s: cannot create a metrics file: %s", dir, strerror (errno));
}

int journal_create (struct journal *j,
                    const char *dir,
                    int folder,
                    const struct journal_about *about,
                    struct slurmdl_error *err)
{
    return create_journal (j, dir, folder, "metrics", about, err);
}

int journal_create_as (struct journal *j,
                       const char *dir,
                       const char *stem,
                       const struct journal_about *about,
                       struct slurmdl_error *err)
{
    if (create_journal (j, dir, -1, stem, about, err) < 0)
        return -1;
    if (journal_sync (j) == 0)
        return 0;
    errorf (err, "%s: cannot write: %s", j->path, strerror (errno));
    if (*j->tmp)
        unlinkat (j->folder, j->tmp, 0);
    close_journal (j);
    return -1;
}

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

/* What has no name yet gets it when all that is in it is synced. */
static int sync_file (struct journal *j)
{
    if (!*j->tmp)
        return j->dirty ? fdatasync (j->fd) : 0;
    if (fsync (j->fd) < 0 || journal_first_name (j, j->tmp) < 0)
        return -1;
    *j->tmp = '\0';
    return 0;
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
    j->suspect = sync_file (j) < 0;
    if (j->suspect)
        return -1;
    j->dirty = 0;
    if (j->fresh && link_sync_folder (j->folder) < 0)
        return -1;
    j->fresh = false;
    journal_kept_synced (j);
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
    close_journal (j);
    return rv;
}

int journal_tend (struct journal *j, bool sync, atomic_uint *bell)
{
    int rv = journal_is_done (j) ? journal_end_work (j) : 0;

    if (rv < 0 || j->work)
        return rv;
    if (*j->tmp)
        return journal_sync (j);
    if (journal_needs_room (j))
        journal_begin_growth (j, bell);
    else if (sync && j->dirty && journal_begin_sync (j, bell) < 0)
        return journal_sync (j);
    return 0;
}
