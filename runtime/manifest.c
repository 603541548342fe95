/* SPDX-License-Identifier: Apache-2.0 */
/* Write, seal and read the manifest of a checkpoint. */
#include "runtime/manifest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/crc32c.h"
#include "runtime/io.h"

const struct element elements[] = {
    { SLURMDL_I8, "i8", 1 },   { SLURMDL_U8, "u8", 1 },
    { SLURMDL_I32, "i32", 4 }, { SLURMDL_U32, "u32", 4 },
    { SLURMDL_I64, "i64", 8 }, { SLURMDL_U64, "u64", 8 },
    { SLURMDL_F16, "f16", 2 }, { SLURMDL_F32, "f32", 4 },
    { SLURMDL_F64, "f64", 8 },
};

/* IEEE 754 binary16, as h5py writes it. */
static hid_t half (void)
{
    hid_t t = H5Tcopy (H5T_IEEE_F32LE);

    H5Tset_fields (t, 15, 10, 5, 0, 10);
    H5Tset_size (t, 2);
    H5Tset_ebias (t, 15);
    return t;
}

hid_t element_h5 (enum slurmdl_type type)
{
    switch (type) {
    case SLURMDL_I8:
        return H5Tcopy (H5T_STD_I8LE);
    case SLURMDL_U8:
        return H5Tcopy (H5T_STD_U8LE);
    case SLURMDL_I32:
        return H5Tcopy (H5T_STD_I32LE);
    case SLURMDL_U32:
        return H5Tcopy (H5T_STD_U32LE);
    case SLURMDL_I64:
        return H5Tcopy (H5T_STD_I64LE);
    case SLURMDL_U64:
        return H5Tcopy (H5T_STD_U64LE);
    case SLURMDL_F16:
        return half ();
    case SLURMDL_F32:
        return H5Tcopy (H5T_IEEE_F32LE);
    case SLURMDL_F64:
        return H5Tcopy (H5T_IEEE_F64LE);
    }
    return -1;
}

static hid_t manifest_type (void)
{
    hsize_t most = DIMS_MAX;
    hid_t name = H5Tcopy (H5T_C_S1);
    hid_t dims = H5Tarray_create2 (H5T_STD_U64LE, 1, &most);
    hid_t t = H5Tcreate (H5T_COMPOUND, sizeof (struct manifest_row));

    H5Tset_size (name, DATASET_NAME_SIZE);
    H5Tset_strpad (name, H5T_STR_NULLPAD);
    H5Tinsert (t, "name", offsetof (struct manifest_row, name), name);
    H5Tinsert (t, "dims", offsetof (struct manifest_row, dims), dims);
    H5Tinsert (
        t, "offset", offsetof (struct manifest_row, offset), H5T_STD_U64LE);
    H5Tinsert (
        t, "bytes", offsetof (struct manifest_row, bytes), H5T_STD_U64LE);
    H5Tinsert (t, "type", offsetof (struct manifest_row, type), H5T_STD_U32LE);
    H5Tinsert (
        t, "ndims", offsetof (struct manifest_row, ndims), H5T_STD_U32LE);
    H5Tinsert (t, "crc32c", offsetof (struct manifest_row, crc), H5T_STD_U32LE);
    H5Tinsert (
        t, "reserved", offsetof (struct manifest_row, reserved), H5T_STD_U32LE);
    H5Tclose (name);
    H5Tclose (dims);
    return t;
}

int manifest_write (hid_t file, struct manifest *m)
{
    hid_t type = manifest_type ();
    hid_t space = H5Screate_simple (1, &m->n, NULL);
    hid_t how = h5_contiguous ();
    hid_t d = H5Dcreate2 (
        file, "manifest", type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    int rv = -1;

    if (d >= 0
        && H5Dwrite (d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, m->rows) >= 0
        && h5_write_int (file, "slurmdl_version", 1) == 0
        && h5_write_int (file, "step", m->step) == 0) {
        m->offset = m->n ? H5Dget_offset (d) : 0;
        rv = m->offset == HADDR_UNDEF ? -1 : 0;
    }
    if (d >= 0)
        H5Dclose (d);
    H5Pclose (how);
    H5Sclose (space);
    H5Tclose (type);
    return rv;
}

/* ---- the trailer ---- */

static const char magic[8] = "SLURMDL1";

static int crc_range (int fd, uint64_t from, uint64_t to, uint32_t *crc)
{
    unsigned char buf[65536];

    while (from < to) {
        size_t n =
            to - from < sizeof (buf) ? (size_t)(to - from) : sizeof (buf);
        if (io_read_at (fd, buf, n, (off_t)from) < 0)
            return -1;
        *crc = crc32c (*crc, buf, n);
        from += n;
    }
    return 0;
}

static int by_offset (const void *a, const void *b)
{
    const struct manifest_row *const *x = a;
    const struct manifest_row *const *y = b;

    if ((*x)->offset != (*y)->offset)
        return (*x)->offset < (*y)->offset ? -1 : 1;
    return (*x)->bytes < (*y)->bytes ? -1 : (*x)->bytes > (*y)->bytes;
}

/* Checksum of what lies between the data; -1 if these overlap or reach out. */
static int
rest_crc (int fd, const struct manifest *m, uint64_t length, uint32_t *crc)
{
    const struct manifest_row **rows = calloc (m->n + 1, sizeof (*rows));
    uint64_t at = 0;
    int rv = rows ? 0 : -1;

    *crc = 0;
    for (hsize_t i = 0; rv == 0 && i < m->n; i++)
        rows[i] = &m->rows[i];
    if (rv == 0)
        qsort (rows, m->n, sizeof (*rows), by_offset);
    for (hsize_t i = 0; rv == 0 && i < m->n; i++) {
        if (rows[i]->bytes == 0)
            continue;
        if (rows[i]->offset < at || rows[i]->offset > length
            || rows[i]->bytes > length - rows[i]->offset)
            rv = -1;
        else
            rv = crc_range (fd, at, rows[i]->offset, crc);
        at = rows[i]->offset + rows[i]->bytes;
    }
    if (rv == 0)
        rv = crc_range (fd, at, length, crc);
    free (rows);
    return rv;
}

int manifest_seal (int fd, const struct manifest *m)
{
    struct trailer t = { .step = m->step, .manifest = m->offset, .rows = m->n };
    struct stat st;

    memcpy (t.magic, magic, sizeof (magic));
    if (fstat (fd, &st) < 0)
        return -1;
    t.length = (uint64_t)st.st_size;
    if (rest_crc (fd, m, t.length, &t.rest_crc) < 0)
        return -1;
    t.crc = crc32c (0, &t, offsetof (struct trailer, crc));
    return io_write_at (fd, &t, sizeof (t), st.st_size);
}

static int read_trailer (int fd, struct trailer *t)
{
    struct stat st;

    if (fstat (fd, &st) < 0 || st.st_size < (off_t)sizeof (*t)
        || io_read_at (fd, t, sizeof (*t), st.st_size - (off_t)sizeof (*t)) < 0
        || memcmp (t->magic, magic, sizeof (magic))
        || t->crc != crc32c (0, t, offsetof (struct trailer, crc))
        || t->length != (uint64_t)st.st_size - sizeof (*t)
        || t->manifest > t->length
        || t->rows > (t->length - t->manifest) / sizeof (struct manifest_row))
        return -1;
    return 0;
}

int manifest_read (int fd, struct manifest *m)
{
    struct trailer t;
    size_t size;
    uint32_t crc;

    *m = (struct manifest){ 0 };
    if (read_trailer (fd, &t) < 0)
        return -1;
    m->step = t.step;
    m->n = t.rows;
    m->offset = t.manifest;
    size = m->n * sizeof (*m->rows);
    if ((m->rows = malloc (size + 1))
        && io_read_at (fd, m->rows, size, (off_t)t.manifest) == 0
        && rest_crc (fd, m, t.length, &crc) == 0 && crc == t.rest_crc)
        return 0;
    free (m->rows);
    m->rows = NULL;
    return -1;
}
