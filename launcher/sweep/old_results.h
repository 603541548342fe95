/* SPDX-License-Identifier: Apache-2.0 */
/* Read what is to be kept of an old results.h5. */
#pragma once

#include "launcher/sweep/metric_rows.h"
#include "runtime/storage/h5.h"

enum { RESULTS_VERSION = 1 };

/* Behind the HDF5 file, where HDF5 does not look: libhdf5 is not made to read
 * a damaged file.
 */
struct seal {
    char magic[8];
    uint64_t xxh64; /* of the HDF5 file */
};
extern const char seal_magic[8];

/* Of texts with so many bytes, and of struct metric_row; H5Tclose(). */
hid_t results_text_type (size_t size);
hid_t results_row_type (void);

/* The rows of the file at 'path'; none if it is not of this sweep, or damaged,
 * or others may have written it (h5_may_parse()).
 * rows_destroy() in any case.
 */
void old_results_read (struct rows *r, const struct sweep *s, const char *path);
