/* SPDX-License-Identifier: Apache-2.0 */
/* The types of elements: names, sizes, and what HDF5 calls them. */
#include "runtime/storage/types.h"

static const struct element {
    const char *name;
    size_t size;
} elements[] = {
    [SLURMDL_I8] = { "i8", 1 },           [SLURMDL_U8] = { "u8", 1 },
    [SLURMDL_I32] = { "i32", 4 },         [SLURMDL_U32] = { "u32", 4 },
    [SLURMDL_I64] = { "i64", 8 },         [SLURMDL_U64] = { "u64", 8 },
    [SLURMDL_F16] = { "f16", 2 },         [SLURMDL_F32] = { "f32", 4 },
    [SLURMDL_F64] = { "f64", 8 },         [SLURMDL_BF16] = { "bf16", 2 },
    [SLURMDL_BOOL] = { "bool", 1 },       [SLURMDL_C64] = { "c64", 8 },
    [SLURMDL_C128] = { "c128", 16 },      [SLURMDL_I16] = { "i16", 2 },
    [SLURMDL_U16] = { "u16", 2 },         [SLURMDL_F8_E4M3] = { "f8_e4m3", 1 },
    [SLURMDL_F8_E5M2] = { "f8_e5m2", 1 },
};

enum { TYPES = sizeof (elements) / sizeof (*elements) };

const char *slurmdl_type_name (enum slurmdl_type type)
{
    return (unsigned)type < TYPES ? elements[type].name : NULL;
}

size_t slurmdl_type_size (enum slurmdl_type type)
{
    return (unsigned)type < TYPES ? elements[type].size : 0;
}

/* A float of 16 bits: sign, exponent, mantissa. */
static hid_t short_float (size_t exponent, size_t bias)
{
    hid_t t = H5Tcopy (H5T_IEEE_F32LE);

    H5Tset_fields (t, 15, 15 - exponent, exponent, 0, 15 - exponent);
    H5Tset_size (t, 2);
    H5Tset_ebias (t, bias);
    return t;
}

/* As h5py writes it. */
static hid_t boolean (void)
{
    hid_t t = H5Tenum_create (H5T_STD_I8LE);
    signed char value = 0;

    H5Tenum_insert (t, "FALSE", &value);
    value = 1;
    H5Tenum_insert (t, "TRUE", &value);
    return t;
}

/* As h5py writes it. */
static hid_t complex_of (hid_t part)
{
    size_t size = H5Tget_size (part);
    hid_t t = H5Tcreate (H5T_COMPOUND, 2 * size);

    H5Tinsert (t, "r", 0, part);
    H5Tinsert (t, "i", size, part);
    return t;
}

hid_t storage_h5_type (enum slurmdl_type type)
{
    switch (type) {
    case SLURMDL_I8:
        return H5Tcopy (H5T_STD_I8LE);
    case SLURMDL_U8:
    /* HDF5's conversions know IEEE's meaning of the largest exponent only */
    case SLURMDL_F8_E4M3:
    case SLURMDL_F8_E5M2:
        return H5Tcopy (H5T_STD_U8LE);
    case SLURMDL_I16:
        return H5Tcopy (H5T_STD_I16LE);
    case SLURMDL_U16:
        return H5Tcopy (H5T_STD_U16LE);
    case SLURMDL_I32:
        return H5Tcopy (H5T_STD_I32LE);
    case SLURMDL_U32:
        return H5Tcopy (H5T_STD_U32LE);
    case SLURMDL_I64:
        return H5Tcopy (H5T_STD_I64LE);
    case SLURMDL_U64:
        return H5Tcopy (H5T_STD_U64LE);
    case SLURMDL_F16:
        return short_float (5, 15);
    case SLURMDL_BF16:
        return short_float (8, 127);
    case SLURMDL_F32:
        return H5Tcopy (H5T_IEEE_F32LE);
    case SLURMDL_F64:
        return H5Tcopy (H5T_IEEE_F64LE);
    case SLURMDL_BOOL:
        return boolean ();
    case SLURMDL_C64:
        return complex_of (H5T_IEEE_F32LE);
    case SLURMDL_C128:
        return complex_of (H5T_IEEE_F64LE);
    }
    return -1;
}
