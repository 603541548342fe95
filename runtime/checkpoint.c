/* SPDX-License-Identifier: Apache-2.0 */
/* Save protected memory as one HDF5 file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/crc32c.h"
#include "runtime/error.h"
#include "runtime/io.h"
#include "runtime/link.h"
#include "runtime/manifest.h"
#include "runtime/memory.h"

/* The two newest stay: while one is being read back, the other is whole. */
enum { ALIGNMENT = 4096 };

/* ---- what is saved ---- */

static bool good_name (const char *name)
{
    size_t n = strlen (name);

    return n > 0 && n < DATASET_NAME_SIZE && name[0] != '/'
           && name[n - 1] != '/' && !strstr (name, "//")
           && strcmp (name, "manifest") && strncmp (name, ".", 1);
}

static size_t element_size (enum slurmdl_type type)
{
    return (unsigned)type <= SLURMDL_F64 ? elements[type].size : 0;
}

static struct region *find_region (struct slurmdl *run, const char *name)
{
    for (size_t i = 0; i < run->nregions; i++)
        if (!strcmp (run->regions[i].name, name))
            return &run->regions[i];
    return NULL;
}

static struct region *new_region (struct slurmdl *run)
{
    struct region *list =
        realloc (run->regions, (run->nregions + 1) * sizeof (*list));

    if (!list)
        return NULL;
    run->regions = list;
    return &list[run->nregions++];
}

int slurmdl_protect (struct slurmdl *run,
                     const char *name,
                     enum slurmdl_type type,
                     int ndims,
                     const uint64_t *dims,
                     void *data)
{
    struct region new = { .type = type, .ndims = ndims, .data = data };
    struct region *r;

    new.bytes = element_size (type);
    if (!good_name (name) || new.bytes == 0 || ndims < 0 || ndims > DIMS_MAX
        || !data) {
        errno = EINVAL;
        return -1;
    }
    snprintf (new.name, sizeof (new.name), "%s", name);
    for (int i = 0; i < ndims; i++) {
        new.dims[i] = dims[i];
        if (__builtin_mul_overflow (new.bytes, dims[i], &new.bytes)) {
            errno = EOVERFLOW;
            return -1;
        }
    }
    if (!(r = find_region (run, name)) && !(r = new_region (run)))
        return -1;
    *r = new;
    return 0;
}

/* ---- a copy on the host of what a device has ---- */

struct source {
    const unsigned char *data;
    unsigned char *copy; /* NULL: 'data' is the program's own memory */
};

static int open_source (struct source *s, const struct region *r)
{
    const struct memory_ops *ops = memory_ops_of (r->data);

    *s = (struct source){ .data = r->data };
    if (!ops)
        return 0;
    if (!(s->copy = malloc (r->bytes + 1))
        || ops->to_host (s->copy, r->data, r->bytes) < 0)
        return -1;
    s->data = s->copy;
    return 0;
}

static void close_sources (struct source *s, size_t n)
{
    for (size_t i = 0; s && i < n; i++)
        free (s[i].copy);
    free (s);
}

static struct source *open_sources (const struct slurmdl *run)
{
    struct source *s = calloc (run->nregions + 1, sizeof (*s));

    for (size_t i = 0; s && i < run->nregions; i++)
        if (open_source (&s[i], &run->regions[i]) < 0) {
            int e = errno;
            close_sources (s, run->nregions);
            errno = e;
            return NULL;
        }
    return s;
}

/* ---- layout ---- */

static int
lay_out_region (hid_t file, const struct region *r, struct manifest_row *row)
{
    hsize_t dims[DIMS_MAX];
    hid_t how = h5_contiguous ();
    hid_t path = H5Pcreate (H5P_LINK_CREATE);
    hid_t type = element_h5 (r->type);
    hid_t space;
    hid_t d;

    for (int i = 0; i < r->ndims; i++)
        dims[i] = r->dims[i];
    space = r->ndims ? H5Screate_simple (r->ndims, dims, NULL)
                     : H5Screate (H5S_SCALAR);
    H5Pset_create_intermediate_group (path, 1);
    d = H5Dcreate2 (file, r->name, type, space, path, how, H5P_DEFAULT);
    row->offset = d >= 0 && r->bytes ? H5Dget_offset (d) : 0;
    if (d >= 0)
        H5Dclose (d);
    H5Sclose (space);
    H5Tclose (type);
    H5Pclose (path);
    H5Pclose (how);
    return d < 0 || row->offset == HADDR_UNDEF ? -1 : 0;
}

static int lay_out_regions (hid_t file,
                            const struct slurmdl *run,
                            const struct source *from,
                            struct manifest *m)
{
    for (size_t i = 0; i < run->nregions; i++) {
        const struct region *r = &run->regions[i];
        struct manifest_row *row = &m->rows[i];
        *row = (struct manifest_row){ .bytes = r->bytes,
                                      .type = r->type,
                                      .ndims = (uint32_t)r->ndims };
        snprintf (row->name, sizeof (row->name), "%s", r->name);
        memcpy (row->dims, r->dims, sizeof (row->dims));
        row->crc = crc32c (0, from[i].data, r->bytes);
        if (lay_out_region (file, r, row) < 0)
            return -1;
    }
    return manifest_write (file, m);
}

static int lay_out (const char *path,
                    const struct slurmdl *run,
                    const struct source *from,
                    struct manifest *m)
{
    hid_t access = h5_access ();
    struct h5_quiet q;
    hid_t file;
    int rv = -1;

    h5_quiet_begin (&q);
    H5Pset_alignment (access, ALIGNMENT, ALIGNMENT);
    errno = 0;
    file = H5Fcreate (path, H5F_ACC_EXCL, H5P_DEFAULT, access);
    if (file >= 0) {
        rv = lay_out_regions (file, run, from, m);
        rv = H5Fclose (file) < 0 ? -1 : rv;
    }
    H5Pclose (access);
    h5_quiet_end (&q);
    if (rv < 0 && errno == 0)
        errno = EIO;
    return rv;
}

/* ---- data ---- */

static int write_data (const char *path,
                       const struct source *from,
                       const struct manifest *m)
{
    int fd = open (path, O_RDWR | O_CLOEXEC);
    int rv = fd < 0 ? -1 : 0;

    for (hsize_t i = 0; rv == 0 && i < m->n; i++)
        rv = io_write_at (
            fd, from[i].data, m->rows[i].bytes, (off_t)m->rows[i].offset);
    if (rv == 0)
        rv = manifest_seal (fd, m);
    if (rv == 0)
        rv = fsync (fd);
    if (fd >= 0 && close (fd) < 0)
        rv = -1;
    return rv;
}

static int
write_file (const struct slurmdl *run, int64_t step, const char *path)
{
    struct manifest m = { .step = step, .n = run->nregions };
    struct source *from = open_sources (run);
    int rv = -1;
    int e;

    if (from && (m.rows = calloc (m.n + 1, sizeof (*m.rows)))
        && lay_out (path, run, from, &m) == 0)
        rv = write_data (path, from, &m);
    e = errno;
    close_sources (from, run->nregions);
    free (m.rows);
    errno = e;
    return rv;
}

/* ---- names ---- */

/* A step is saved again only after a restore from an older one: the file of
 * that name is then this attempt's own and out of date.
 */
static int give_name (const char *tmp, const char *path)
{
    int rv = link_if_absent (tmp, path);

    return rv == 1 ? link_replace (tmp, path) : rv;
}

int slurmdl_save (struct slurmdl *run, int64_t step, struct slurmdl_error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX];
    char tmp[PATH_MAX];
    int64_t found;
    bool named = false;
    int e;

    if (err)
        *err->text = '\0';
    /* whoever goes on from here will not log the steps before it again; that
     * a metric cannot be kept is no reason to lose the checkpoint as well */
    slurmdl_flush (run, NULL);
    if (run->rank != 0)
        return 0;
    if (step < 0) {
        errno = EINVAL;
        return errorf (
            err, "cannot save step %lld: it is negative", (long long)step);
    }
    snprintf (folder, sizeof (folder), "%s/ckpt", run->dir);
    if (snprintf (path, sizeof (path), "%s/%08lld.h5", folder, (long long)step)
        > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", run->dir);
    }
    link_tmp_name (tmp, sizeof (tmp), path);
    if ((mkdir (folder, 0777) == 0 || errno == EEXIST)
        && write_file (run, step, tmp) == 0
        && slurmdl_checkpoint_verify (tmp, &found, err) == 0) {
        named = true;
        if (give_name (tmp, path) == 0) {
            retain_saved (&run->retention, folder, step);
            return 0;
        }
    }
    e = errno;
    /* the name may be a symlink to it */
    if (!named)
        unlink (tmp);
    errno = e;
    return errorf (err, "%s: cannot save: %s", path, strerror (errno));
}
