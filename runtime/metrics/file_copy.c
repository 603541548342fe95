/* SPDX-License-Identifier: Apache-2.0 */
/* A metrics file is replaced by a larger, or an exact, copy. */
#include "runtime/metrics/journal_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/storage/io.h"
#include "runtime/storage/link.h"

enum { COPY_SIZE = 1 << 20 };

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
    const char *data = NULL;
    uint64_t kept = journal_kept (old, from, &data);
    off_t done = (off_t)(to->n * to->size);
    off_t at = (off_t)(kept * to->size);

    if (kept > to->n
        && copy_bytes (old->fd,
                       from->data + done,
                       j->fd,
                       to->data + done,
                       (kept - to->n) * from->size)
               < 0)
        return -1;
    if (from->n > kept
        && io_write_at (
               j->fd, data, (from->n - kept) * from->size, to->data + at)
               < 0)
        return -1;
    return journal_set_length (j, to, from->n);
}

int journal_copy_columns (const struct journal *old,
                          struct journal *j,
                          const struct row *rows,
                          uint64_t n)
{
    int rv = 0;

    for (int i = 0; rv == 0 && i < COLUMNS; i++) {
        struct column *to = &j->columns[i];
        if (rows && to == &j->rows) {
            to->n = 0;
            rv = journal_append (j, to, rows, n);
        } else
            rv = copy_column (old, &old->columns[i], j, to);
    }
    return rv;
}

static bool has_name (const struct journal *j)
{
    struct stat file;
    struct stat named;

    return fstat (j->fd, &file) == 0
           && fstatat (j->folder, journal_name (j), &named, 0) == 0
           && file.st_dev == named.st_dev && file.st_ino == named.st_ino;
}

/* What fails after the new file has the name has not failed: the old one is
 * out of reach then.  The next sync tries once more.
 */
int journal_give_name (struct journal *j, const char *tmp)
{
    j->dirty = 0;
    j->suspect = j->fresh = false;
    j->files++;
    if (*j->tmp) {
        if (journal_first_name (j, tmp) < 0)
            return -1;
        unlinkat (j->folder, j->tmp, 0);
        *j->tmp = '\0';
        if (link_sync_folder (j->folder) == 0)
            j->fresh = false;
        else
            j->dirty = 1; /* the next sync tries once more */
        return 0;
    }
    if (link_replace_at (j->folder, tmp, journal_name (j)) == 0)
        return 0;
    j->suspect = has_name (j);
    j->dirty = j->suspect;
    return j->suspect ? 0 : -1;
}

int journal_replace (struct journal *j,
                     const uint64_t *rooms,
                     const struct row *rows,
                     uint64_t n)
{
    struct journal new = *j;
    char tmp[sizeof (j->tmp)];
    int e;

    new.kept = NULL; /* of 'j' until all is in the new file */

    for (int i = 0; i < COLUMNS; i++)
        new.columns[i].room = rooms[i];
    link_tmp_name (tmp, sizeof (tmp), "");
    if (journal_make_file (tmp, &new) < 0)
        return -1;
    if (journal_copy_columns (j, &new, rows, n) < 0 || fsync (new.fd) < 0
        || journal_give_name (&new, tmp) < 0) {
        e = errno;
        close (new.fd);
        unlinkat (j->folder, tmp, 0);
        errno = e;
        return -1;
    }
    close (j->fd);
    new.kept = j->kept;
    *j = new;
    journal_kept_synced (j);
    return 0;
}

void journal_rooms (const struct journal *j, uint64_t *rooms)
{
    for (int i = 0; i < COLUMNS; i++)
        rooms[i] = j->columns[i].room;
}
