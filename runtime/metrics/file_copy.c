/* SPDX-License-Identifier: Apache-2.0 */
/* A metrics file is replaced by a larger, or an exact, copy. */
#include "runtime/metrics/file_create.h"

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
        if (io_read_at (from, buf, n, at) < 0 || io_write_at (to, buf, n, where) < 0)
            rv = -1;
        at += (off_t)n;
        where += (off_t)n;
        len -= n;
    }
    free (buf);
    return rv;
}

static int copy_column (const struct metrics_file *old, const struct column *from,
                        struct metrics_file *f, struct column *to)
{
    const char *data = NULL;
    uint64_t kept = metrics_file_kept (old, from, &data);
    off_t done = (off_t)(to->n * to->size);
    off_t at = (off_t)(kept * to->size);

    if (kept > to->n
        && copy_bytes (old->fd, from->data + done, f->fd, to->data + done,
                       (kept - to->n) * from->size)
               < 0)
        return -1;
    if (from->n > kept
        && io_write_at (f->fd, data, (from->n - kept) * from->size, to->data + at) < 0)
        return -1;
    return metrics_file_set_length (f, to, from->n);
}

int metrics_file_copy_columns (const struct metrics_file *old, struct metrics_file *f,
                               const struct row *rows, uint64_t n)
{
    int rv = 0;

    for (int i = 0; rv == 0 && i < COLUMNS; i++) {
        struct column *to = &f->columns[i];
        if (rows && to == &f->rows) {
            to->n = 0;
            rv = metrics_file_append (f, to, rows, n);
        } else
            rv = copy_column (old, &old->columns[i], f, to);
    }
    return rv;
}

static bool has_name (const struct metrics_file *f)
{
    struct stat file;
    struct stat named;

    return fstat (f->fd, &file) == 0 && fstatat (f->folder, metrics_file_name (f), &named, 0) == 0
           && file.st_dev == named.st_dev && file.st_ino == named.st_ino;
}

/* What fails after the new file has the name has not failed: the old one is
 * out of reach then.  The next sync tries once more.
 */
int metrics_file_give_name (struct metrics_file *f, const char *tmp)
{
    f->dirty = 0;
    f->suspect = f->fresh = false;
    f->files++;
    if (*f->tmp) {
        if (metrics_file_first_name (f, tmp) < 0)
            return -1;
        unlinkat (f->folder, f->tmp, 0);
        *f->tmp = '\0';
        if (link_sync_folder (f->folder) == 0)
            f->fresh = false;
        else
            f->dirty = 1; /* the next sync tries once more */
        return 0;
    }
    if (link_replace_at (f->folder, tmp, metrics_file_name (f)) == 0)
        return 0;
    f->suspect = has_name (f);
    f->dirty = f->suspect;
    return f->suspect ? 0 : -1;
}

int metrics_file_replace (struct metrics_file *f, const uint64_t *rooms, const struct row *rows,
                          uint64_t n)
{
    struct metrics_file new = *f;
    char tmp[sizeof (f->tmp)];
    int e;

    new.kept = NULL; /* of 'f' until all is in the new file */

    for (int i = 0; i < COLUMNS; i++)
        new.columns[i].room = rooms[i];
    link_tmp_name (tmp, sizeof (tmp), "");
    if (metrics_file_make (tmp, &new) < 0)
        return -1;
    if (metrics_file_copy_columns (f, &new, rows, n) < 0 || fsync (new.fd) < 0
        || metrics_file_give_name (&new, tmp) < 0) {
        e = errno;
        close (new.fd);
        unlinkat (f->folder, tmp, 0);
        errno = e;
        return -1;
    }
    close (f->fd);
    new.kept = f->kept;
    *f = new;
    metrics_file_kept_synced (f);
    return 0;
}

void metrics_file_rooms (const struct metrics_file *f, uint64_t *rooms)
{
    for (int i = 0; i < COLUMNS; i++)
        rooms[i] = f->columns[i].room;
}
