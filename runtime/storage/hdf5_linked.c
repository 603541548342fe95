/* SPDX-License-Identifier: Apache-2.0 */
/* The table of HDF5 functions for programs that are linked with libhdf5. */
#define HDF5_TABLE_ONLY
#include "runtime/storage/hdf5_table.h"

const struct hdf5_table *hdf5 (void)
{
#define FUNCTION(name) .name = name,
#define DATA(name)     .name = &name,
    static const struct hdf5_table table = { HDF5_FUNCTIONS (FUNCTION) HDF5_DATA (DATA) };

    return &table;
}
