/* SPDX-License-Identifier: Apache-2.0 */
/* Open a checkpoint; list, read and verify its tensors. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/thread_pool.h"
#include "runtime/checkpoint/fetch.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/origin.h"

/* Sets '*bad' to the tensor that cannot be read, or NULL. */
static int check_data (int fd, const struct manifest *m, long threads, atomic_int *cancel,
                       const struct manifest_row **bad)
{
    struct fetch f = { .fd = fd, .m = m };
    int rv = 0;
    int e;

    for (hsize_t i = 0; rv == 0 && i < m->n; i++)
        rv = fetch_add_whole (&f, &m->rows[i]);
    if (rv == 0)
        rv = fetch_run (&f, threads, cancel);
    *bad = f.bad;
    /* by now the rest is in the page cache */
    if (rv == 0 && m->guessed)
        rv = manifest_check_rest (fd, m);
    e = errno;
    fetch_free (&f);
    errno = e;
    return rv;
}

int check_file (const char *path, int64_t step, atomic_int *cancel)
{
    int fd = inside_open_any (path, O_RDONLY, 0, NULL);
    const struct manifest_row *bad;
    struct manifest m = { 0 };
    int rv = -1;
    int e;

    if (fd < 0)
        return -1;
    /* the page cache proves nothing about the disk */
    posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
    if (manifest_read (fd, &m) == 0) {
        rv = check_data (fd, &m, 1, cancel, &bad);
        if (rv == 0 && m.step != step) {
            errno = EBADMSG;
            rv = -1;
        }
    }
    e = errno;
    posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED);
    manifest_free (&m);
    close (fd);
    errno = e;
    return rv;
}

static int report_unreadable (const char *path, struct slurmdl_error *err)
{
    if (errno == EBADMSG)
        return errorf (err, "%s: is not a checkpoint, or is damaged", path);
    if (errno == EPROTONOSUPPORT)
        return errorf (err,
                       "%s: was written by a later version of slurm-dl, and "
                       "cannot be read by this one",
                       path);
    return errorf (err, "%s: cannot read: %s", path, strerror (errno));
}

static int open_checkpoint (const char *path)
{
    struct stat st;
    int fd = inside_open_any (path, O_RDONLY, 0, &st);

    if (fd < 0 && errno == EINVAL)
        errno = stat (path, &st) == 0 && S_ISDIR (st.st_mode) ? EISDIR : EBADMSG;
    return fd;
}

struct slurmdl_checkpoint *slurmdl_checkpoint_open (const char *path, struct slurmdl_error *err)
{
    struct slurmdl_checkpoint *c = calloc (1, sizeof (*c));

    error_clear (err);
    if (!c || !(c->path = strdup (path))) {
        errorf (err, "out of memory");
        free (c);
        return NULL;
    }
    if ((c->fd = open_checkpoint (path)) >= 0 && manifest_read (c->fd, &c->m) == 0)
        return c;
    report_unreadable (path, err);
    slurmdl_checkpoint_close (c);
    return NULL;
}

void slurmdl_checkpoint_close (struct slurmdl_checkpoint *c)
{
    int e = errno;

    if (!c)
        return;
    if (c->fd >= 0)
        close (c->fd);
    manifest_free (&c->m);
    free (c->path);
    free (c);
    errno = e;
}

int64_t slurmdl_checkpoint_step (const struct slurmdl_checkpoint *c)
{
    return c->m.step;
}

int slurmdl_checkpoint_origin (const struct slurmdl_checkpoint *c, struct slurmdl_origin *origin)
{
    struct stat st;

    if (fstat (c->fd, &st) < 0)
        return -1;
    *origin = (struct slurmdl_origin){ .path = c->path };
    origin->own = origin_is_own (c->fd, &st, &origin->owner);
    return 0;
}

size_t slurmdl_checkpoint_count (const struct slurmdl_checkpoint *c)
{
    return c->m.n;
}

int slurmdl_checkpoint_info (const struct slurmdl_checkpoint *c, size_t i, struct slurmdl_tensor *t)
{
    const struct manifest_row *row = &c->m.rows[i];

    if (i >= c->m.n) {
        errno = EINVAL;
        return -1;
    }
    *t = (struct slurmdl_tensor){ .type = row->type,
                                  .ndims = (int)row->ndims,
                                  .bytes = row->bytes,
                                  .shards = manifest_shards (row),
                                  .state = is_state (row->name) };
    memcpy (t->name, row->name, sizeof (t->name));
    memcpy (t->dims, row->dims, sizeof (t->dims));
    return 0;
}

int64_t slurmdl_checkpoint_find_tensor (const struct slurmdl_checkpoint *c, const char *name)
{
    const struct manifest_row *row = manifest_find (&c->m, name);

    if (row)
        return row - c->m.rows;
    errno = ENOENT;
    return -1;
}

int slurmdl_checkpoint_read (struct slurmdl_checkpoint *c, const char *name, const uint64_t *offset,
                             const uint64_t *dims, void *data, struct slurmdl_error *err)
{
    const struct manifest_row *row = manifest_find (&c->m, name);
    struct fetch f = { .fd = c->fd, .m = &c->m };
    struct slab to;
    int rv;
    int e;

    error_clear (err);
    if (!row) {
        errno = ENOENT;
        return errorf (err, "%s: no tensor '%s'", c->path, name);
    }
    to = slab_whole ((int)row->ndims, dims ? dims : row->dims);
    for (uint32_t i = 0; offset && i < row->ndims; i++)
        to.offset[i] = offset[i];
    if (!slab_fits (&to, row->dims)) {
        errno = EINVAL;
        return errorf (err, "%s: '%s' has no such slab", c->path, name);
    }
    if ((rv = fetch_add (&f, row, &to, data)) == 0)
        rv = fetch_run (&f, thread_pool_size (THREAD_POOL_MAX), NULL);
    e = errno;
    fetch_free (&f);
    errno = e;
    if (rv == 0)
        return 0;
    if (errno == EBADMSG)
        return errorf (err, "%s: '%s' is damaged", c->path, name);
    return errorf (err, "%s: cannot read '%s': %s", c->path, name, strerror (errno));
}

int slurmdl_checkpoint_verify (const char *path, int64_t *step, struct slurmdl_error *err)
{
    struct slurmdl_checkpoint *c = slurmdl_checkpoint_open (path, err);
    const struct manifest_row *bad;
    int rv;

    if (!c)
        return -1;
    rv = check_data (c->fd, &c->m, thread_pool_size (THREAD_POOL_MAX), NULL, &bad);
    if (rv == 0)
        *step = c->m.step;
    else if (bad && errno == EBADMSG)
        errorf (err, "%s: '%s' is damaged", path, bad->name);
    slurmdl_checkpoint_close (c);
    return rv == 0 ? 0 : report_unreadable (path, err);
}

int slurmdl_checkpoint_remove (const char *path, struct slurmdl_error *err)
{
    error_clear (err);
    if (inside_unlink_any (path, 0) == 0)
        return 0;
    return errorf (err, "%s: cannot remove: %s", path, inside_error (errno));
}
