/* SPDX-License-Identifier: Apache-2.0 */
/* The types of elements as HDF5 knows them. */
#include "runtime/storage/h5_type.h"

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
