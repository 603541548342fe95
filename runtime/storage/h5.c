/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 helpers. */
#include "runtime/storage/h5.h"

#include <string.h>
#include <unistd.h>

#include "runtime/storage/inside.h"

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

static int write_attribute (hid_t object, const char *name, hid_t type, const void *value)
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

bool h5_may_parse (const struct stat *st)
{
    return inside_is_of (st, geteuid ());
}

static bool is_one_number (hid_t a)
{
    hid_t space = H5Aget_space (a);
    hid_t type = H5Aget_type (a);
    H5T_class_t class = H5Tget_class (type);
    bool is =
        H5Sget_simple_extent_npoints (space) == 1 && (class == H5T_INTEGER || class == H5T_FLOAT);

    H5Tclose (type);
    H5Sclose (space);
    return is;
}

int h5_read_number (hid_t object, const char *name, hid_t type, void *value)
{
    hid_t a = H5Aopen (object, name, H5P_DEFAULT);
    int rv = a >= 0 && is_one_number (a) && H5Aread (a, type, value) >= 0 ? 0 : -1;

    if (a >= 0)
        H5Aclose (a);
    return rv;
}

static bool is_link_inside (hid_t file, const char *name)
{
    H5L_info_t link;

    return H5Lget_info (file, name, &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD;
}

static bool has_data_inside (hid_t dataset)
{
    hid_t list = H5Dget_create_plist (dataset);
    H5D_layout_t layout = H5Pget_layout (list);
    bool has =
        layout != H5D_LAYOUT_ERROR && layout != H5D_VIRTUAL && H5Pget_external_count (list) == 0;

    H5Pclose (list);
    return has;
}

static bool has_plain_type (hid_t dataset)
{
    hid_t type = H5Dget_type (dataset);
    bool plain = H5Tget_class (type) == H5T_STRING
                     ? H5Tis_variable_str (type) == 0
                     : H5Tdetect_class (type, H5T_STRING) == 0
                           && H5Tdetect_class (type, H5T_VLEN) == 0
                           && H5Tdetect_class (type, H5T_REFERENCE) == 0;

    H5Tclose (type);
    return plain;
}

hid_t h5_open_inside (hid_t file, const char *name)
{
    hid_t d = is_link_inside (file, name) ? H5Dopen2 (file, name, H5P_DEFAULT) : -1;

    if (d < 0 || (has_data_inside (d) && has_plain_type (d)))
        return d;
    H5Dclose (d);
    return -1;
}
