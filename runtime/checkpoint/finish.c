/* SPDX-License-Identifier: Apache-2.0 */
/* Seal a checkpoint that was written, read it back, and give it its name. */
#include "runtime/checkpoint/finish.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/staging.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"
#include "runtime/storage/own_folder.h"

int finish_name (const char *tmp, const char *path)
{
    int rv = link_if_absent (tmp, path);

    /* a step is saved again only after a restore from an older one: the file
     * of that name is then this attempt's own and out of date */
    return rv == 1 ? link_replace (tmp, path) : rv;
}

/* What was written is there: of a small file all, else the tables. */
static int read_back (const char *tmp, const struct draft *d)
{
    size_t size = d->m.n * sizeof (*d->m.rows);
    struct stat st;
    void *rows;
    int64_t step;
    int rv = -1;

    if (d->length <= SMALL_FILE)
        return slurmdl_checkpoint_verify (tmp, &step, NULL);
    if (fstat (d->fd, &st) < 0 || !(rows = malloc (size + 1)))
        return -1;
    if ((uint64_t)st.st_size == d->length + sizeof (struct trailer)
        && io_read_at (d->fd, rows, size, (off_t)d->m.offset) == 0
        && !memcmp (rows, d->m.rows, size))
        rv = 0;
    free (rows);
    if (rv < 0)
        errno = EIO;
    return rv;
}

int finish_file (struct draft *d, const char *tmp, const char *path, struct slurmdl_error *err)
{
    if (draft_seal (d) < 0 || fsync (d->fd) < 0 || read_back (tmp, d) < 0
        || finish_name (tmp, path) < 0)
        return errorf (err, "%s: cannot save: %s", path, strerror (errno));
    return 0;
}

int finish_paths (const char *dir, int64_t step, char *tmp, char *path, struct slurmdl_error *err)
{
    char folder[PATH_MAX];

    snprintf (folder, sizeof (folder), "%s/ckpt", dir);
    if (snprintf (path, PATH_MAX, "%s/%08lld.h5", folder, (long long)step) > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", dir);
    }
    if (own_folder_make (folder, 0777, err) < 0)
        return -1;
    link_tmp_name (tmp, PATH_MAX, path);
    return 0;
}
