/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 as this library uses it: quiet, without locks, in the old file format. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "runtime/storage/hdf5_table.h"

/* Between this pair HDF5 does not print its own errors; afterwards the setting
 * is restored, which the program may rely on.
 */
struct h5_quiet {
    H5E_auto2_t print;
    void *data;
};
void h5_quiet_begin (struct h5_quiet *q);
void h5_quiet_end (const struct h5_quiet *q);

/* Property list for opening files: no locks, and created files can be read by
 * HDF5 1.8, without checksums of objects.
 */
hid_t h5_access (void);

/* Property list for a contiguous dataset whose place in the file is fixed at
 * creation, and whose bytes stay unwritten.
 */
hid_t h5_contiguous (void);

int h5_write_int (hid_t object, const char *name, long long value);
int h5_write_real (hid_t object, const char *name, double value);
int h5_write_text (hid_t object, const char *name, const char *text);

/* ---- files that others may have made ---- */

/* Whether HDF5 may parse a file: a crafted one can overflow its memory, so the
 * file must be this user's (inside_is_of()).
 */
bool h5_may_parse (const struct stat *st);

/* Read an attribute, a single number, as HDF5's native 'type'. */
int h5_read_number (hid_t object, const char *name, hid_t type, void *value);

/* Open a dataset of the root group that lies in this file: HDF5 would follow
 * links to other files, and read data from any file that a dataset names.  The
 * caller closes it (H5Dclose); negative if there is none, or if its elements
 * have memory of their own.
 */
hid_t h5_open_inside (hid_t file, const char *name);
