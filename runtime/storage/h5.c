/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers over HDF5. */
#include "runtime/storage/h5.h"

#include <string.h>

void h5_quiet_begin (struct h5_quiet *q)
{
    H5Eget_auto2 (H5E_DEFAULT, &q->print, &q->data);
    H5Eset_auto2 (H5E_DEFAULT, NULL, NULL);
}

void h5_quiet_end (const struct h5_quiet *q)
{
    H5Eset_auto2 (H5E_DEFAULT, q->print, q->data);
}

hid_t h5_access (void)
{
    hid_t list = H5Pcreate (H5P_FILE_ACCESS);

    H5Pset_libver_bounds (list, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking (list, 0, 1);
#endif
    return list;
}

hid_t h5_contiguous (void)
{
    hid_t list = H5Pcreate (H5P_DATASET_CREATE);

    H5Pset_layout (list, H5D_CONTIGUOUS);
    H5Pset_alloc_time (list, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time (list, H5D_FILL_TIME_NEVER);
    return list;
}

static int
write_attribute (hid_t object, const char *name, hid_t type, const void *value)
{
    hid_t space = H5Screate (H5S_SCALAR);
    hid_t a = H5Acreate2 (object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    int rv = a < 0 || H5Awrite (a, type, value) < 0 ? -1 : 0;

    if (a >= 0)
        H5Aclose (a);
    H5Sclose (space);
    return rv;
}

int h5_write_int (hid_t object, const char *name, long long value)
{
    return write_attribute (object, name, H5T_NATIVE_LLONG, &value);
}

int h5_write_real (hid_t object, const char *name, double value)
{
    return write_attribute (object, name, H5T_NATIVE_DOUBLE, &value);
}

int h5_write_text (hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy (H5T_C_S1);
    int rv;

    H5Tset_size (type, strlen (text) + 1);
    rv = write_attribute (object, name, type, text);
    H5Tclose (type);
    return rv;
}
