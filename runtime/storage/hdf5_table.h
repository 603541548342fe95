/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the functions and data of HDF5 that we use.  dl loads the library on first use,
 * because loading it takes 5 ms (with the libraries that Debian links it to) and most commands do
 * not need it. Everything else is linked with it.
 */
#pragma once

#include <hdf5.h>

/* clang-format off */
#if H5_VERSION_GE(1, 10, 7)
#define HDF5_LOCKING(X) X (H5Pset_file_locking)
#else
#define HDF5_LOCKING(X)
#endif
#if H5_VERSION_GE(1, 12, 0)
#define HDF5_LINK_INFO(X) X (H5Lget_info1)
#else
#define HDF5_LINK_INFO(X) X (H5Lget_info)
#endif
#define HDF5_FUNCTIONS(X) \
    HDF5_LOCKING (X) X (H5Aclose) X (H5Acreate2) X (H5Aget_space) \
    X (H5Aget_type) X (H5Aopen) X (H5Aread) X (H5Awrite) X (H5Dclose) \
    X (H5Dcreate2) X (H5Dget_create_plist) X (H5Dget_space) X (H5Dget_type) \
    X (H5Dopen2) X (H5Dread) X (H5Dwrite) X (H5Eget_auto2) X (H5Eset_auto2) \
    X (H5Fclose) X (H5Fcreate) X (H5Fflush) X (H5Fget_file_image) \
    X (H5Fget_filesize) X (H5Fopen) X (H5Gclose) X (H5Gcreate2) \
    HDF5_LINK_INFO (X) X (H5Pclose) X (H5Pcreate) X (H5Pget_external_count) \
    X (H5Pget_layout) X (H5Pset_alloc_time) X (H5Pset_fapl_core) \
    X (H5Pset_fill_time) X (H5Pset_layout) X (H5Pset_libver_bounds) \
    X (H5Sclose) X (H5Screate) X (H5Screate_simple) \
    X (H5Sget_simple_extent_dims) X (H5Sget_simple_extent_ndims) \
    X (H5Sget_simple_extent_npoints) X (H5Sselect_hyperslab) X (H5Tclose) \
    X (H5Tcopy) X (H5Tcreate) X (H5Tdetect_class) X (H5Tequal) \
    X (H5Tget_class) X (H5Tget_size) X (H5Tinsert) X (H5Tis_variable_str) \
    X (H5Tset_cset) X (H5Tset_size) X (H5Tset_strpad) X (H5check_version) \
    X (H5open)
#define HDF5_DATA(X) \
    X (H5P_CLS_DATASET_CREATE_ID_g) X (H5P_CLS_FILE_ACCESS_ID_g) \
    X (H5T_C_S1_g) X (H5T_IEEE_F64LE_g) X (H5T_NATIVE_DOUBLE_g) \
    X (H5T_NATIVE_LLONG_g) X (H5T_STD_I64LE_g) X (H5T_STD_U32LE_g) \
    X (H5T_STD_U64LE_g) X (H5T_STD_U8LE_g)

struct hdf5_table {
#define HDF5_FIELD(name) __typeof__ (name) *name;
    HDF5_FUNCTIONS (HDF5_FIELD)
    HDF5_DATA (HDF5_FIELD)
#undef HDF5_FIELD
};

/* This does not fail: if HDF5 cannot be loaded, the process prints a line and exits with status 127, as
 * if a library that it is linked with were missing.
 */
const struct hdf5_table *hdf5 (void);

#ifndef HDF5_TABLE_ONLY
#define H5Aclose (hdf5 ()->H5Aclose)
#define H5Acreate2 (hdf5 ()->H5Acreate2)
#define H5Aget_space (hdf5 ()->H5Aget_space)
#define H5Aget_type (hdf5 ()->H5Aget_type)
#define H5Aopen (hdf5 ()->H5Aopen)
#define H5Aread (hdf5 ()->H5Aread)
#define H5Awrite (hdf5 ()->H5Awrite)
#define H5Dclose (hdf5 ()->H5Dclose)
#define H5Dcreate2 (hdf5 ()->H5Dcreate2)
#define H5Dget_create_plist (hdf5 ()->H5Dget_create_plist)
#define H5Dget_space (hdf5 ()->H5Dget_space)
#define H5Dget_type (hdf5 ()->H5Dget_type)
#define H5Dopen2 (hdf5 ()->H5Dopen2)
#define H5Dread (hdf5 ()->H5Dread)
#define H5Dwrite (hdf5 ()->H5Dwrite)
#define H5Eget_auto2 (hdf5 ()->H5Eget_auto2)
#define H5Eset_auto2 (hdf5 ()->H5Eset_auto2)
#define H5Fclose (hdf5 ()->H5Fclose)
#define H5Fcreate (hdf5 ()->H5Fcreate)
#define H5Fflush (hdf5 ()->H5Fflush)
#define H5Fget_file_image (hdf5 ()->H5Fget_file_image)
#define H5Fget_filesize (hdf5 ()->H5Fget_filesize)
#define H5Fopen (hdf5 ()->H5Fopen)
#define H5Gclose (hdf5 ()->H5Gclose)
#define H5Gcreate2 (hdf5 ()->H5Gcreate2)
#if H5_VERSION_GE(1, 12, 0)
#define H5Lget_info1 (hdf5 ()->H5Lget_info1)
#else
#define H5Lget_info (hdf5 ()->H5Lget_info)
#endif
#define H5Pclose (hdf5 ()->H5Pclose)
#define H5Pcreate (hdf5 ()->H5Pcreate)
#define H5Pget_external_count (hdf5 ()->H5Pget_external_count)
#define H5Pget_layout (hdf5 ()->H5Pget_layout)
#define H5Pset_alloc_time (hdf5 ()->H5Pset_alloc_time)
#define H5Pset_fapl_core (hdf5 ()->H5Pset_fapl_core)
#define H5Pset_file_locking (hdf5 ()->H5Pset_file_locking)
#define H5Pset_fill_time (hdf5 ()->H5Pset_fill_time)
#define H5Pset_layout (hdf5 ()->H5Pset_layout)
#define H5Pset_libver_bounds (hdf5 ()->H5Pset_libver_bounds)
#define H5Sclose (hdf5 ()->H5Sclose)
#define H5Screate (hdf5 ()->H5Screate)
#define H5Screate_simple (hdf5 ()->H5Screate_simple)
#define H5Sget_simple_extent_dims (hdf5 ()->H5Sget_simple_extent_dims)
#define H5Sget_simple_extent_ndims (hdf5 ()->H5Sget_simple_extent_ndims)
#define H5Sget_simple_extent_npoints (hdf5 ()->H5Sget_simple_extent_npoints)
#define H5Sselect_hyperslab (hdf5 ()->H5Sselect_hyperslab)
#define H5Tclose (hdf5 ()->H5Tclose)
#define H5Tcopy (hdf5 ()->H5Tcopy)
#define H5Tcreate (hdf5 ()->H5Tcreate)
#define H5Tdetect_class (hdf5 ()->H5Tdetect_class)
#define H5Tequal (hdf5 ()->H5Tequal)
#define H5Tget_class (hdf5 ()->H5Tget_class)
#define H5Tget_size (hdf5 ()->H5Tget_size)
#define H5Tinsert (hdf5 ()->H5Tinsert)
#define H5Tis_variable_str (hdf5 ()->H5Tis_variable_str)
#define H5Tset_cset (hdf5 ()->H5Tset_cset)
#define H5Tset_size (hdf5 ()->H5Tset_size)
#define H5Tset_strpad (hdf5 ()->H5Tset_strpad)
#define H5check_version (hdf5 ()->H5check_version)
#define H5open (hdf5 ()->H5open)
#define H5P_CLS_DATASET_CREATE_ID_g (*hdf5 ()->H5P_CLS_DATASET_CREATE_ID_g)
#define H5P_CLS_FILE_ACCESS_ID_g (*hdf5 ()->H5P_CLS_FILE_ACCESS_ID_g)
#define H5T_C_S1_g (*hdf5 ()->H5T_C_S1_g)
#define H5T_IEEE_F64LE_g (*hdf5 ()->H5T_IEEE_F64LE_g)
#define H5T_NATIVE_DOUBLE_g (*hdf5 ()->H5T_NATIVE_DOUBLE_g)
#define H5T_NATIVE_LLONG_g (*hdf5 ()->H5T_NATIVE_LLONG_g)
#define H5T_STD_I64LE_g (*hdf5 ()->H5T_STD_I64LE_g)
#define H5T_STD_U32LE_g (*hdf5 ()->H5T_STD_U32LE_g)
#define H5T_STD_U64LE_g (*hdf5 ()->H5T_STD_U64LE_g)
#define H5T_STD_U8LE_g (*hdf5 ()->H5T_STD_U8LE_g)
#endif
/* clang-format on */
