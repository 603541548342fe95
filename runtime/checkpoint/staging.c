/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint that is being made: the layout by HDF5, the rest by us. */
#include "runtime/checkpoint/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/h5_type.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"
#include "runtime/storage/tensor.h"

enum { METADATA_EACH = 768 };

/* ---- by HDF5 ---- */

static const char memory[] = "/dev/shm";

/* Whether it is the layout of a process that is no more. */
static bool is_stale (int folder, const char *name)
{
    struct stat st;
    int end = 0;
    int pid;

    return sscanf (name, "slurmdl.%d.%n", &pid, &end) == 1 && end > 0 && pid > 0
           && kill (pid, 0) < 0 && errno == ESRCH
           && fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (st.st_mode)
           && st.st_uid == geteuid ();
}

void draft_clean_up (void)
{
    DIR *d = opendir (memory);
    struct dirent *e;
    int saved = errno;

    while (d && (e = readdir (d)))
        if (is_stale (dirfd (d), e->d_name))
            unlinkat (dirfd (d), e->d_name, 0);
    if (d)
        closedir (d);
    errno = saved;
}

/* A process of another PID namespace may have taken it for a dead one's. */
static bool is_named (int fd, const char *name)
{
    struct stat a;
    struct stat b;

    return fstat (fd, &a) == 0 && stat (name, &b) == 0 && a.st_dev == b.st_dev
           && a.st_ino == b.st_ino;
}

/* A new file; beside 'path' where there is no file system in memory.  HDF5
 * wants a name, which says who removes it.
 */
static int open_layout (const char *path, char *name)
{
    int fd;

    draft_clean_up ();
    snprintf (name, PATH_MAX, "%s/slurmdl.%ld.XXXXXX", memory, (long)getpid ());
    if ((fd = mkostemp (name, O_CLOEXEC)) >= 0)
        return fd;
    snprintf (name, PATH_MAX, "%.*s.XXXXXX", PATH_MAX - 8, path);
    return mkostemp (name, O_CLOEXEC);
}

int draft_create (struct draft *d, const char *path, int64_t step, size_t tensors)
{
    struct h5_quiet q;
    char name[PATH_MAX];

    *d = (struct draft){ .file = -1, .layout = -1, .m.step = step };
    /* nobody else ever writes to it, in a group's folder either */
    if ((d->fd = inside_open_any (path, O_RDWR | O_CREAT | O_EXCL, 0644, NULL)) < 0
        || (d->layout = open_layout (path, name)) < 0)
        return -1;
    h5_quiet_begin (&q);
    d->access = h5_access ();
    d->dataset = h5_contiguous ();
    d->link = H5Pcreate (H5P_LINK_CREATE);
    H5Pset_create_intermediate_group (d->link, 1);
    H5Pset_alignment (d->access, MANIFEST_ALIGNMENT, MANIFEST_ALIGNMENT);
    /* else a piece of it lies behind every few tensors */
    H5Pset_meta_block_size (d->access, (tensors * METADATA_EACH + MANIFEST_ALIGNMENT)
                                           / MANIFEST_ALIGNMENT * MANIFEST_ALIGNMENT);
    errno = 0;
    d->file = H5Fcreate (name, H5F_ACC_TRUNC, H5P_DEFAULT, d->access);
    h5_quiet_end (&q);
    bool named = is_named (d->layout, name);
    unlink (name);
    if (d->file >= 0 && named)
        return 0;
    if (errno == 0)
        errno = EIO;
    return -1;
}

/* Types are asked for once each: many datasets have one. */
static hid_t type_of (struct draft *d, enum slurmdl_type type)
{
    if (d->type_of != type || !d->type) {
        if (d->type > 0)
            H5Tclose (d->type);
        d->type = storage_h5_type (type);
        d->type_of = type;
    }
    return d->type;
}

/* The folder of the last dataset is open once a second one is in it: to go
 * there from the root takes as long as to make a dataset.
 */
static hid_t folder_of (struct draft *d, const char **name)
{
    const char *slash = strrchr (*name, '/');
    size_t n = slash ? (size_t)(slash - *name) : 0;

    if (!slash)
        return d->file;
    if (strlen (d->folder) != n || memcmp (d->folder, *name, n)) {
        if (d->group > 0)
            H5Gclose (d->group);
        d->group = 0;
        snprintf (d->folder, sizeof (d->folder), "%.*s", (int)n, *name);
        return d->file;
    }
    if (d->group == 0)
        d->group = H5Gopen2 (d->file, d->folder, H5P_DEFAULT);
    if (d->group > 0)
        *name = slash + 1;
    return d->group > 0 ? d->group : d->file;
}

static int create_dataset (struct draft *file, struct manifest_row *row)
{
    const char *name = row->name;
    hid_t folder = folder_of (file, &name);
    hid_t type = type_of (file, row->type);
    hsize_t dims[DIMS_MAX];
    hid_t space;
    hid_t d;

    for (uint32_t i = 0; i < row->ndims; i++)
        dims[i] = row->dims[i];
    space = row->ndims ? H5Screate_simple ((int)row->ndims, dims, NULL) : H5Screate (H5S_SCALAR);
    d = H5Dcreate2 (folder, name, type, space, file->link, file->dataset, H5P_DEFAULT);
    row->offset = d >= 0 && row->bytes ? H5Dget_offset (d) : 0;
    if (d >= 0)
        H5Dclose (d);
    H5Sclose (space);
    return d < 0 || row->offset == HADDR_UNDEF ? -1 : 0;
}

static struct manifest_row *new_row (struct draft *d)
{
    struct manifest_row *rows = array_grow (d->m.rows, d->m.n, sizeof (*rows));

    if (!rows)
        return NULL;
    d->m.rows = rows;
    return memset (&rows[d->m.n], 0, sizeof (*rows));
}

struct manifest_row *draft_add (struct draft *d, const char *name, enum slurmdl_type type,
                                int ndims, const uint64_t *dims)
{
    struct manifest_row *row = new_row (d);
    struct h5_quiet q;
    int rv;

    if (!row || tensor_bytes (type, ndims, dims, &row->bytes) < 0)
        return NULL;
    row->type = type;
    row->ndims = (uint32_t)ndims;
    for (int i = 0; i < ndims; i++)
        row->dims[i] = dims[i];
    snprintf (row->name, sizeof (row->name), "%s", name);
    errno = 0;
    h5_quiet_begin (&q);
    rv = create_dataset (d, row);
    h5_quiet_end (&q);
    if (rv < 0) {
        /* one name is a group in another, or the same */
        if (errno == 0)
            errno = EINVAL;
        return NULL;
    }
    d->m.n++;
    return row;
}

static int close_h5 (struct draft *d)
{
    struct h5_quiet q;
    int rv = 0;

    h5_quiet_begin (&q);
    if (d->group > 0)
        H5Gclose (d->group);
    if (d->file >= 0 && H5Fclose (d->file) < 0)
        rv = -1;
    if (d->access > 0)
        H5Pclose (d->access);
    if (d->dataset > 0)
        H5Pclose (d->dataset);
    if (d->link > 0)
        H5Pclose (d->link);
    if (d->type > 0)
        H5Tclose (d->type);
    h5_quiet_end (&q);
    d->file = -1;
    d->access = d->dataset = d->link = d->type = d->group = 0;
    return rv;
}

/* ---- the rest ---- */

static int copy_rest (struct draft *d)
{
    struct stat st;
    uint64_t n = 0;

    if (fstat (d->layout, &st) < 0)
        return -1;
    d->length = (uint64_t)st.st_size;
    if (!(d->rest = manifest_rest (&d->m, d->length, &d->nrest)))
        return -1;
    for (size_t i = 0; i < d->nrest; i++)
        n += d->rest[i].bytes;
    if (!(d->image = malloc (n + 1)))
        return -1;
    n = 0;
    for (size_t i = 0; i < d->nrest; i++) {
        const struct part *p = &d->rest[i];
        if (io_read_at (d->layout, d->image + n, p->bytes, (off_t)p->at) < 0
            || io_write_at (d->fd, d->image + n, p->bytes, (off_t)p->at) < 0)
            return -1;
        n += p->bytes;
    }
    return 0;
}

int draft_lay_out (struct draft *d)
{
    struct h5_quiet q;
    int rv;

    errno = 0;
    h5_quiet_begin (&q);
    rv = manifest_write (d->file, &d->m);
    h5_quiet_end (&q);
    if (close_h5 (d) < 0 || rv < 0) {
        if (errno == 0)
            errno = EIO;
        return -1;
    }
    return copy_rest (d);
}

/* Several can write into room that is there side by side, and a full disk is
 * known before anything is written.
 */
int draft_reserve (struct draft *d)
{
    off_t n = (off_t)(d->length + sizeof (struct trailer));
    int rv;

    do
        rv = fallocate (d->fd, 0, 0, n);
    while (rv < 0 && errno == EINTR);
    d->reserved = rv == 0;
    if (rv < 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
        return -1;
    return 0;
}

/* Write the rows into the file and into the image. */
static int put_rows (struct draft *d, uint64_t at, const void *rows, size_t bytes)
{
    unsigned char *image = d->image;

    for (size_t i = 0; i < d->nrest; i++) {
        const struct part *p = &d->rest[i];
        if (bytes && at >= p->at && at + bytes <= p->at + p->bytes)
            memcpy (image + (at - p->at), rows, bytes);
        image += p->bytes;
    }
    return io_write_at (d->fd, rows, bytes, (off_t)at);
}

static uint64_t end_of_data (const struct draft *d)
{
    uint64_t end = 0;

    for (hsize_t i = 0; i < d->m.n; i++)
        if (d->m.rows[i].bytes && d->m.rows[i].offset + d->m.rows[i].bytes > end)
            end = d->m.rows[i].offset + d->m.rows[i].bytes;
    return end;
}

static int write_tail (struct draft *d, uint32_t *crc)
{
    const unsigned char *image = d->image;
    uint64_t end = end_of_data (d);
    int rv = 0;

    *crc = 0;
    for (size_t i = 0; i < d->nrest && rv == 0; i++) {
        const struct part *p = &d->rest[i];
        *crc = crc32c (*crc, image, p->bytes);
        if (p->at >= end)
            rv = io_write_at (d->fd, image, p->bytes, (off_t)p->at);
        image += p->bytes;
    }
    return rv;
}

int draft_seal (struct draft *d)
{
    struct trailer t = { .step = d->m.step,
                         .length = d->length,
                         .manifest = d->m.offset,
                         .rows = d->m.n,
                         .shards = d->m.shards_offset,
                         .nshards = d->m.nshards };

    memcpy (t.magic, "SLURMDL2", sizeof (t.magic));
    if (put_rows (d, d->m.offset, d->m.rows, d->m.n * sizeof (*d->m.rows)) < 0
        || put_rows (d, d->m.shards_offset, d->m.shards, d->m.nshards * sizeof (*d->m.shards)) < 0
        || write_tail (d, &t.rest_crc) < 0)
        return -1;
    t.crc = crc32c (0, &t, offsetof (struct trailer, crc));
    return io_write_at (d->fd, &t, sizeof (t), (off_t)d->length);
}

void draft_close (struct draft *d)
{
    int e = errno;

    close_h5 (d);
    if (d->layout >= 0)
        close (d->layout);
    if (d->fd >= 0)
        close (d->fd);
    d->layout = d->fd = -1;
    manifest_free (&d->m);
    free (d->rest);
    free (d->image);
    d->rest = NULL;
    d->image = NULL;
    errno = e;
}
