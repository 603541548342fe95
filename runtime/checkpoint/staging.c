/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint under construction: its layout, and everything except data. */
#include "runtime/checkpoint/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/h5_image.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"
#include "runtime/storage/tensor.h"

/* ---- tensors ---- */

struct draft_folder {
    char name[DATASET_NAME_SIZE];
};

int draft_create (struct draft *d, const char *path, int64_t step)
{
    *d = (struct draft){ .m.step = step, .end = H5_SUPERBLOCK };
    /* 0644: nobody else ever writes to it, even in a group's folder */
    d->fd = inside_open_any (path, O_RDWR | O_CREAT | O_EXCL, 0644, NULL);
    return d->fd < 0 ? -1 : 0;
}

static void *find_draft_folder (const struct draft *d, const char *name)
{
    return name_index_find (&d->folder_names, d->folders, sizeof (*d->folders), name);
}

static int add_folder (struct draft *d, const char *name)
{
    struct draft_folder *list = array_grow (d->folders, d->nfolders, sizeof (*list));

    if (!list)
        return -1;
    d->folders = list;
    memcpy (list[d->nfolders].name, name, sizeof (list->name));
    return name_index_add (&d->folder_names, list, sizeof (*list), d->nfolders++);
}

/* Fails with EINVAL if a name exists, or is a folder in another name. */
static int take_name (struct draft *d, const char *name)
{
    char folder[DATASET_NAME_SIZE] = "";

    errno = EINVAL;
    if (manifest_find (&d->m, name) || find_draft_folder (d, name))
        return -1;
    for (const char *slash = strchr (name, '/'); slash; slash = strchr (slash + 1, '/')) {
        memcpy (folder, name, (size_t)(slash - name));
        if (manifest_find (&d->m, folder))
            return -1;
        if (!find_draft_folder (d, folder) && add_folder (d, folder) < 0)
            return -1;
    }
    return 0;
}

/* Choose the place of a row's data.  Large tensors start on a page boundary. */
static int take_place (struct draft *d, struct manifest_row *row)
{
    uint64_t at = d->end;

    if (row->bytes >= MANIFEST_ALIGNMENT)
        at = (at + MANIFEST_ALIGNMENT - 1) / MANIFEST_ALIGNMENT * MANIFEST_ALIGNMENT;
    if (row->bytes == 0)
        return 0;
    if (row->bytes > INT64_MAX / 2 - at) {
        errno = EFBIG;
        return -1;
    }
    row->offset = at;
    d->end = at + row->bytes;
    return 0;
}

struct manifest_row *draft_add (struct draft *d, const char *name, enum slurmdl_type type,
                                int ndims, const uint64_t *dims)
{
    struct manifest *m = &d->m;
    struct manifest_row *row = array_grow (m->rows, m->n, sizeof (*row));

    if (!row)
        return NULL;
    m->rows = row;
    row += m->n;
    *row = (struct manifest_row){ .type = type, .ndims = (uint32_t)ndims };
    if (tensor_bytes (type, ndims, dims, &row->bytes) < 0)
        return NULL;
    for (int i = 0; i < ndims; i++)
        row->dims[i] = dims[i];
    snprintf (row->name, sizeof (row->name), "%s", name);
    if (take_name (d, row->name) < 0 || take_place (d, row) < 0
        || name_index_add (&m->names, m->rows, sizeof (*row), m->n) < 0)
        return NULL;
    m->n++;
    return row;
}

/* ---- the layout ---- */

/* clang-format off */
#define ROW(member, type) { #member, offsetof (struct manifest_row, member), type }
#define SHARD(member, type) { #member, offsetof (struct shard_row, member), type }
/* clang-format on */

static const struct h5_member row_members[] = {
    ROW (name, H5_NAME),
    ROW (dims, H5_DIMS),
    ROW (offset, H5_U64),
    ROW (bytes, H5_U64),
    ROW (type, H5_U32),
    ROW (ndims, H5_U32),
    { "crc32c", offsetof (struct manifest_row, crc), H5_U32 },
    ROW (shards, H5_U32),
    { 0 },
};
static const struct h5_member shard_members[] = {
    SHARD (offset, H5_DIMS),
    SHARD (dims, H5_DIMS),
    SHARD (tensor, H5_U32),
    SHARD (rank, H5_U32),
    { "crc32c", offsetof (struct shard_row, crc), H5_U32 },
    SHARD (reserved, H5_U32),
    { 0 },
};

static struct h5_dataset table_dataset (const char *name, const struct h5_member *members,
                                        size_t size, const uint64_t *n, uint64_t at)
{
    return (struct h5_dataset){ .name = name,
                                .members = members,
                                .size = size,
                                .ndims = 1,
                                .dims = n,
                                .offset = at,
                                .bytes = *n * size };
}

/* Add the HDF5 metadata behind the data and the tables. */
static int add_hdf5_structure (struct draft *d, struct h5_image *image)
{
    const struct h5_attribute attributes[] = { { "slurmdl_version", 1 }, { "step", d->m.step } };
    const struct manifest *m = &d->m;
    const uint64_t rows[] = { m->n, m->nshards };
    uint64_t end = (d->end + 7) / 8 * 8;
    struct h5_dataset *list = calloc (m->n + 2, sizeof (*list));
    size_t n = 0;
    int rv;

    if (!list)
        return -1;
    for (; n < m->n; n++)
        list[n] = (struct h5_dataset){ .name = m->rows[n].name,
                                       .type = m->rows[n].type,
                                       .ndims = (int)m->rows[n].ndims,
                                       .dims = m->rows[n].dims,
                                       .offset = m->rows[n].offset,
                                       .bytes = m->rows[n].bytes };
    d->m.offset = rows[0] ? end : 0;
    list[n++] = table_dataset ("manifest", row_members, sizeof (*m->rows), &rows[0], end);
    end += rows[0] * sizeof (*m->rows);
    if (rows[1]) {
        d->m.shards_offset = end;
        list[n++] = table_dataset ("shards", shard_members, sizeof (*m->shards), &rows[1], end);
        end += rows[1] * sizeof (*m->shards);
    }
    rv = h5_image_make (image, list, n, attributes, 2, end);
    d->length = end + image->n;
    free (list);
    return rv;
}

int draft_lay_out (struct draft *d)
{
    struct h5_image image = { .rest = NULL };
    uint64_t n = 0;

    if (add_hdf5_structure (d, &image) < 0
        || !(d->rest = manifest_rest (&d->m, d->length, &d->nrest))) {
        free (image.rest);
        return -1;
    }
    for (size_t i = 0; i < d->nrest; i++)
        n += d->rest[i].bytes;
    if ((d->image = calloc (1, n))) {
        memcpy (d->image, image.superblock, H5_SUPERBLOCK);
        memcpy (d->image + n - image.n, image.rest, image.n);
    }
    free (image.rest);
    return d->image ? 0 : -1;
}

/* Reserve space: several ranks can then write side by side, and a full disk shows
 * before anything is written.
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

/* Copy the rows into the image. */
static void put_table_rows (struct draft *d, uint64_t at, const void *rows, size_t bytes)
{
    unsigned char *image = d->image;

    for (size_t i = 0; i < d->nrest; i++) {
        const struct part *p = &d->rest[i];
        if (bytes && at >= p->at && at + bytes <= p->at + p->bytes)
            memcpy (image + (at - p->at), rows, bytes);
        image += p->bytes;
    }
}

/* Write the superblock and what follows the data.  Between them lie only zeros. */
static int write_ends (struct draft *d, uint32_t *crc)
{
    const unsigned char *image = d->image;
    int rv = 0;

    *crc = 0;
    for (size_t i = 0; i < d->nrest && rv == 0; i++) {
        const struct part *p = &d->rest[i];
        *crc = crc32c (*crc, image, p->bytes);
        if (p->at == 0 || p->at >= d->end)
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

    memcpy (t.magic, "SLURMDL1", sizeof (t.magic));
    put_table_rows (d, d->m.offset, d->m.rows, d->m.n * sizeof (*d->m.rows));
    put_table_rows (d, d->m.shards_offset, d->m.shards, d->m.nshards * sizeof (*d->m.shards));
    if (write_ends (d, &t.rest_crc) < 0)
        return -1;
    t.crc = crc32c (0, &t, offsetof (struct trailer, crc));
    return io_write_at (d->fd, &t, sizeof (t), (off_t)d->length);
}

void draft_close (struct draft *d)
{
    int e = errno;

    if (d->fd >= 0)
        close (d->fd);
    d->fd = -1;
    manifest_free (&d->m);
    name_index_free (&d->folder_names);
    free (d->folders);
    d->folders = NULL;
    free (d->rest);
    free (d->image);
    d->rest = NULL;
    d->image = NULL;
    errno = e;
}
