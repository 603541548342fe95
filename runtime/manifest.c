/* SPDX-License-Identifier: Apache-2.0 */
/* Write and read the manifest of a checkpoint. */
#include "runtime/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/crc32c.h"

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

/* Over the rows and the step, so that neither can be mixed up. */
static uint32_t checksum (const struct manifest *m)
{
    uint32_t crc = crc32c (0, &m->step, sizeof (m->step));

    return crc32c (crc, m->rows, m->n * sizeof (*m->rows));
}

int manifest_write (hid_t file, const struct manifest *m)
{
    hid_t type = manifest_type ();
    hid_t space = H5Screate_simple (1, &m->n, NULL);
    hid_t d = H5Dcreate2 (
        file, "manifest", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int rv = -1;

    if (d >= 0
        && H5Dwrite (d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, m->rows) >= 0
        && h5_write_int (file, "slurmdl_version", 1) == 0
        && h5_write_int (file, "step", m->step) == 0
        && h5_write_int (file, "manifest_crc32c", checksum (m)) == 0)
        rv = 0;
    if (d >= 0)
        H5Dclose (d);
    H5Sclose (space);
    H5Tclose (type);
    return rv;
}

static int read_rows (hid_t file, struct manifest *m)
{
    hid_t type = manifest_type ();
    hid_t d = H5Dopen2 (file, "manifest", H5P_DEFAULT);
    hid_t space = d >= 0 ? H5Dget_space (d) : -1;
    int rv = -1;

    if (space >= 0 && H5Sget_simple_extent_ndims (space) == 1
        && H5Sget_simple_extent_dims (space, &m->n, NULL) == 1 && m->n < 1000000
        && (m->rows = calloc (m->n + 1, sizeof (*m->rows)))
        && H5Dread (d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, m->rows) >= 0)
        rv = 0;
    if (space >= 0)
        H5Sclose (space);
    if (d >= 0)
        H5Dclose (d);
    H5Tclose (type);
    return rv;
}

int manifest_read (hid_t file, struct manifest *m)
{
    long long step;
    long long crc;

    *m = (struct manifest){ 0 };
    if (h5_read_int (file, "step", &step) < 0
        || h5_read_int (file, "manifest_crc32c", &crc) < 0
        || read_rows (file, m) < 0)
        return -1;
    m->step = step;
    return crc == checksum (m) ? 0 : -1;
}

static bool row_fits (hid_t file, const struct manifest_row *row)
{
    hid_t d = H5Dopen2 (file, row->name, H5P_DEFAULT);
    hid_t want = element_h5 (row->type);
    hid_t type = d >= 0 ? H5Dget_type (d) : -1;
    hid_t space = d >= 0 ? H5Dget_space (d) : -1;
    hsize_t dims[DIMS_MAX] = { 0 };
    bool fits = false;

    if (space >= 0 && type >= 0 && want >= 0 && H5Tequal (type, want) > 0
        && H5Sget_simple_extent_ndims (space) == (int)row->ndims
        && H5Sget_simple_extent_dims (space, dims, NULL) >= 0)
        fits = H5Dget_offset (d) == row->offset || row->bytes == 0;
    for (uint32_t i = 0; fits && i < row->ndims; i++)
        fits = dims[i] == row->dims[i];
    if (space >= 0)
        H5Sclose (space);
    if (type >= 0)
        H5Tclose (type);
    if (want >= 0)
        H5Tclose (want);
    if (d >= 0)
        H5Dclose (d);
    return fits;
}

bool manifest_fits (hid_t file, const struct manifest *m)
{
    for (hsize_t i = 0; i < m->n; i++)
        if (m->rows[i].ndims > DIMS_MAX || !row_fits (file, &m->rows[i]))
            return false;
    return true;
}
