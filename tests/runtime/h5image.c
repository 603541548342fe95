/* SPDX-License-Identifier: Apache-2.0 */
/* libhdf5 reads what h5_image_make() writes as if it had written it itself. */
#include <hdf5.h>

#include "runtime/storage/h5_image.h"
#include "tests/unit.h"

enum { MOST = 20000, NAME = 128, BASE = 4096 };

static char names[MOST][NAME];
static const uint64_t shape[] = { 3, 0, 5 };

/* ---- a file ---- */

static void describe (struct h5_dataset *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        list[i] = (struct h5_dataset){ .name = names[i],
                                       .type = SLURMDL_F32,
                                       .ndims = (int)(i % 2),
                                       .dims = shape,
                                       .offset = H5_SUPERBLOCK + 12 * i,
                                       .bytes = i % 2 ? 12 : 4 };
}

static void make_file (const char *path, struct h5_dataset *list, size_t n)
{
    const struct h5_attribute attributes[] = { { "slurmdl_version", 2 }, { "a longer name", -7 } };
    struct h5_image image;
    uint64_t at = BASE + 16 * (uint64_t)n;
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    assert_int_equal (h5_image_make (&image, list, n, attributes, 2, at), 0);
    assert_int_equal (pwrite (fd, image.superblock, H5_SUPERBLOCK, 0), H5_SUPERBLOCK);
    assert_int_equal (pwrite (fd, image.rest, image.n, (off_t)at), image.n);
    close (fd);
    free (image.rest);
}

/* ---- what libhdf5 reads ---- */

static void check_attributes (hid_t file)
{
    long long value = 0;
    hid_t a = H5Aopen (file, "slurmdl_version", H5P_DEFAULT);

    assert_true (H5Aread (a, H5T_NATIVE_LLONG, &value) >= 0);
    assert_int_equal (value, 2);
    H5Aclose (a);
    a = H5Aopen (file, "a longer name", H5P_DEFAULT);
    assert_true (H5Aread (a, H5T_NATIVE_LLONG, &value) >= 0);
    assert_int_equal (value, -7);
    H5Aclose (a);
}

static void check_dataset (hid_t file, const char *name, size_t i)
{
    hid_t d = H5Dopen2 (file, name, H5P_DEFAULT);
    hid_t space = H5Dget_space (d);
    hsize_t dims[8] = { 0 };

    assert_true (d >= 0);
    assert_int_equal (H5Dget_offset (d), H5_SUPERBLOCK + 12 * i);
    assert_int_equal (H5Dget_storage_size (d), i % 2 ? 12 : 4);
    assert_int_equal (H5Sget_simple_extent_dims (space, dims, NULL), i % 2);
    assert_int_equal (dims[0], i % 2 ? 3 : 0);
    H5Sclose (space);
    H5Dclose (d);
}

static herr_t count_dataset (hid_t object, const char *name, const H5O_info_t *info, void *arg)
{
    (void)object;
    (void)name;
    *(size_t *)arg += info->type == H5O_TYPE_DATASET;
    return 0;
}

/* All datasets are found by name and by iteration, and more can be added. */
static void check_file (const char *path, size_t n)
{
    hid_t file = H5Fopen (path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t links = H5Pcreate (H5P_LINK_CREATE);
    hid_t space = H5Screate (H5S_SCALAR);
    size_t seen = 0;
    char name[NAME + 8];

    assert_true (file >= 0);
    check_attributes (file);
    for (size_t i = 0; i < n; i++)
        check_dataset (file, names[i], i);
    assert_true (
        H5Ovisit_by_name (file, "/", H5_INDEX_NAME, H5_ITER_INC, count_dataset, &seen, H5P_DEFAULT)
        >= 0);
    assert_int_equal (seen, n);
    H5Pset_create_intermediate_group (links, 1);
    for (size_t i = 0; i < n && i < 100; i++) {
        snprintf (name, sizeof (name), "%s.new", names[i]);
        hid_t d = H5Dcreate2 (file, name, H5T_IEEE_F32LE, space, links, H5P_DEFAULT, H5P_DEFAULT);
        assert_true (d >= 0);
        H5Dclose (d);
    }
    H5Sclose (space);
    H5Pclose (links);
    assert_true (H5Fclose (file) >= 0);
    file = H5Fopen (path, H5F_ACC_RDONLY, H5P_DEFAULT);
    for (size_t i = 0; i < n; i++)
        check_dataset (file, names[i], i);
    H5Fclose (file);
}

static void try_names (size_t n)
{
    struct h5_dataset *list = calloc (n + 1, sizeof (*list));

    describe (list, n);
    make_file ("file.h5", list, n);
    check_file ("file.h5", n);
    free (list);
}

/* ---- cases ---- */

/* A leaf node holds 8 names, an inner one 32 nodes. */
CASE (groups_of_all_sizes)
{
    static const size_t sizes[] = { 1, 7, 8, 9, 16, 17, 255, 256, 257, 8191, 8192, 8193, MOST };

    for (size_t k = 0; k < COUNT (sizes); k++) {
        for (size_t i = 0; i < sizes[k]; i++)
            snprintf (names[i], NAME, "model/blocks.%zu.weight", i * 7919 % sizes[k]);
        try_names (sizes[k]);
    }
}

CASE (groups_in_groups)
{
    for (size_t i = 0; i < 3000; i++)
        snprintf (names[i], NAME, "%zu/%c%c/%s%zu", i % 5, (int)('a' + i % 3), (int)(0x21 + i % 13),
                  i % 7 ? "" : "deep/er/and/deeper/", i);
    try_names (3000);
}

/* '/' sorts before some characters that can follow a common prefix. */
CASE (names_that_begin_alike)
{
    static const char *const list[] = { "a.b",       "a/b",          "a!/b", "a/b!", "a-/c/d",
                                        "a\xc3\xa9", "a/\xc3\xa9/x", "a0",   "b" };

    for (size_t i = 0; i < COUNT (list); i++)
        snprintf (names[i], NAME, "%s", list[i]);
    try_names (COUNT (list));
    for (size_t i = 0; i < 60; i++) {
        memset (names[0] + 2 * i, 'x', 1);
        strcpy (names[0] + 2 * i + 1, i < 59 ? "/" : "");
    }
    try_names (1);
}

/* ---- types ---- */

static hid_t short_float (size_t exponent, size_t bias)
{
    hid_t t = H5Tcopy (H5T_IEEE_F32LE);

    H5Tset_fields (t, 15, 15 - exponent, exponent, 0, 15 - exponent);
    H5Tset_size (t, 2);
    H5Tset_ebias (t, bias);
    return t;
}

static hid_t boolean (void)
{
    hid_t t = H5Tenum_create (H5T_STD_I8LE);
    signed char value = 0;

    H5Tenum_insert (t, "FALSE", &value);
    value = 1;
    H5Tenum_insert (t, "TRUE", &value);
    return t;
}

static hid_t complex_of (hid_t part)
{
    size_t size = H5Tget_size (part);
    hid_t t = H5Tcreate (H5T_COMPOUND, 2 * size);

    H5Tinsert (t, "r", 0, part);
    H5Tinsert (t, "i", size, part);
    return t;
}

CASE (types)
{
    const struct type {
        enum slurmdl_type type;
        hid_t wanted;
    } rows[] = {
        { SLURMDL_I8, H5T_STD_I8LE },
        { SLURMDL_U8, H5T_STD_U8LE },
        { SLURMDL_I16, H5T_STD_I16LE },
        { SLURMDL_U16, H5T_STD_U16LE },
        { SLURMDL_I32, H5T_STD_I32LE },
        { SLURMDL_U32, H5T_STD_U32LE },
        { SLURMDL_I64, H5T_STD_I64LE },
        { SLURMDL_U64, H5T_STD_U64LE },
        { SLURMDL_F16, short_float (5, 15) },
        { SLURMDL_BF16, short_float (8, 127) },
        { SLURMDL_F32, H5T_IEEE_F32LE },
        { SLURMDL_F64, H5T_IEEE_F64LE },
        { SLURMDL_BOOL, boolean () },
        { SLURMDL_C64, complex_of (H5T_IEEE_F32LE) },
        { SLURMDL_C128, complex_of (H5T_IEEE_F64LE) },
        { SLURMDL_F8_E4M3, H5T_STD_U8LE },
        { SLURMDL_F8_E5M2, H5T_STD_U8LE },
    };
    struct h5_dataset list[COUNT (rows)];
    hid_t file;

    for (size_t i = 0; i < COUNT (rows); i++) {
        snprintf (names[i], NAME, "t%zu", i);
        list[i] = (struct h5_dataset){
            .name = names[i], .type = rows[i].type, .ndims = 3, .dims = shape
        };
    }
    make_file ("types.h5", list, COUNT (rows));
    file = H5Fopen ("types.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    for (size_t i = 0; i < COUNT (rows); i++) {
        hid_t d = H5Dopen2 (file, names[i], H5P_DEFAULT);
        hid_t t = H5Dget_type (d);
        assert_true (H5Tequal (t, rows[i].wanted) > 0);
        assert_true (H5Dget_offset (d) == HADDR_UNDEF);
        H5Tclose (t);
        H5Dclose (d);
    }
    H5Fclose (file);
}

CASE (compounds)
{
    static const struct h5_member members[] = {
        { "name", 0, H5_NAME },
        { "dims", 128, H5_DIMS },
        { "offset", 192, H5_U64 },
        { "crc32c", 200, H5_U32 },
        { 0 },
    };
    const hsize_t eight = 8;
    const uint64_t rows = 3;
    struct h5_dataset d = { .name = "table",
                            .members = members,
                            .size = 208,
                            .ndims = 1,
                            .dims = &rows,
                            .offset = 128,
                            .bytes = 3 * 208 };
    hid_t wanted = H5Tcreate (H5T_COMPOUND, 208);
    hid_t text = H5Tcopy (H5T_C_S1);
    hid_t file, set, found;

    H5Tset_size (text, 128);
    H5Tset_strpad (text, H5T_STR_NULLPAD);
    H5Tinsert (wanted, "name", 0, text);
    H5Tinsert (wanted, "dims", 128, H5Tarray_create2 (H5T_STD_U64LE, 1, &eight));
    H5Tinsert (wanted, "offset", 192, H5T_STD_U64LE);
    H5Tinsert (wanted, "crc32c", 200, H5T_STD_U32LE);
    make_file ("compound.h5", &d, 1);
    file = H5Fopen ("compound.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2 (file, "table", H5P_DEFAULT);
    found = H5Dget_type (set);
    assert_true (H5Tequal (found, wanted) > 0);
    H5Tclose (found);
    H5Dclose (set);
    H5Fclose (file);
}

static int enter_folder (void **state)
{
    static char folder[] = "/tmp/dl-h5image.XXXXXX";

    return mkdtemp (folder) ? chdir (folder) : -1;
}

static int leave_folder (void **state)
{
    static const char *const files[] = { "file.h5", "types.h5", "compound.h5" };
    char folder[64];

    for (size_t i = 0; i < COUNT (files); i++)
        unlink (files[i]);
    return getcwd (folder, sizeof (folder)) && chdir ("/") == 0 ? rmdir (folder) : -1;
}

int main (void)
{
    return run_cases (enter_folder, leave_folder);
}
