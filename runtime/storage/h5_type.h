/* SPDX-License-Identifier: Apache-2.0 */
/* The types of elements as HDF5 knows them. */
#pragma once

#include "runtime/slurmdl.h"
#include "runtime/storage/hdf5_table.h"

/* The caller closes it (H5Tclose). */
hid_t storage_h5_type (enum slurmdl_type type);
