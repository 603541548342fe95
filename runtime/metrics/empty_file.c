/* SPDX-License-Identifier: Apache-2.0 */
/* Lay out an HDF5 file in memory, and find the words in it that change later. */
#include "runtime/metrics/empty_file.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/metrics/file.h"
#include "runtime/metrics/header.h"
#include "runtime/storage/h5.h"

enum { BLOCK = 64 << 10, END_OF_FILE = 40 };

static void write_word (struct blank *b, off_t at, uint64_t word)
{
    memcpy (b->image + at, &word, sizeof (word));
}

static hid_t row_type (void)
{
    hid_t t = H5Tcreate (H5T_COMPOUND, sizeof (struct row));

    H5Tinsert (t, "step", offsetof (struct row, step), H5T_STD_I64LE);
    H5Tinsert (t, "time", offsetof (struct row, time), H5T_IEEE_F64LE);
    H5Tinsert (t, "value", offsetof (struct row, value), H5T_IEEE_F64LE);
    H5Tinsert (t, "name", offsetof (struct row, name), H5T_STD_U32LE);
    H5Tinsert (t, "crc32c", offsetof (struct row, crc), H5T_STD_U32LE);
    return t;
}

static hid_t record_type (void)
{
    hid_t t = H5Tcreate (H5T_COMPOUND, sizeof (struct record));

#define MEMBER(name, member, type) H5Tinsert (t, name, offsetof (struct record, member), type)
    MEMBER ("step", step, H5T_STD_I64LE);
    MEMBER ("time", time, H5T_IEEE_F64LE);
    MEMBER ("offset", offset, H5T_STD_U64LE);
    MEMBER ("bytes", bytes, H5T_STD_U64LE);
    MEMBER ("name", name, H5T_STD_U32LE);
    MEMBER ("kind", kind, H5T_STD_U32LE);
    MEMBER ("data_crc32c", data_crc, H5T_STD_U32LE);
    MEMBER ("crc32c", crc, H5T_STD_U32LE);
#undef MEMBER
    return t;
}

static hid_t name_type (void)
{
    hid_t t = H5Tcopy (H5T_C_S1);

    H5Tset_size (t, NAME_SIZE);
    H5Tset_strpad (t, H5T_STR_NULLPAD);
    return t;
}

static hid_t byte_type (void)
{
    return H5Tcopy (H5T_STD_U8LE);
}

static int add_about (hid_t file, const struct metrics_file_about *about)
{
    char host[65] = "";

    gethostname (host, sizeof (host) - 1);
    if (h5_write_int (file, "slurmdl_version", 1) < 0
        || h5_write_text (file, "experiment", about->experiment) < 0
        || h5_write_int (file, "trial", about->trial) < 0
        || h5_write_int (file, "attempt", about->attempt) < 0
        || h5_write_text (file, "host", host) < 0)
        return -1;
    return 0;
}

static const struct {
    const char *name;
    hid_t (*type) (void);
    size_t size;
    uint64_t room;
} layout[COLUMNS] = {
    { "names", name_type, NAME_SIZE, 32 },
    { "metrics", row_type, sizeof (struct row), 1024 },
    { "records", record_type, sizeof (struct record), 64 },
    { "bytes", byte_type, 1, 16384 },
};

/* The length is 1 because HDF5 2.0 rejects an empty dataset. */
static int add_dataset (hid_t file, int i)
{
    hsize_t one = 1;
    hid_t type = layout[i].type ();
    hid_t space = H5Screate_simple (1, &one, NULL);
    hid_t how = h5_contiguous ();
    hid_t d = H5Dcreate2 (file, layout[i].name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);

    if (d >= 0)
        H5Dclose (d);
    H5Pclose (how);
    H5Sclose (space);
    H5Tclose (type);
    return d < 0 ? -1 : 0;
}

static int take_image (hid_t file, struct blank *b)
{
    ssize_t n = -1;

    if (H5Fflush (file, H5F_SCOPE_LOCAL) >= 0)
        n = H5Fget_file_image (file, NULL, 0);
    if (n <= 0 || !(b->image = malloc ((size_t)n)))
        return -1;
    b->size = (size_t)n;
    return H5Fget_file_image (file, b->image, b->size) == n ? 0 : -1;
}

static int write_structure (hid_t file, struct blank *b, const struct metrics_file_about *about,
                            struct column *columns)
{
    int rv = add_about (file, about);

    for (int i = 0; rv == 0 && i < COLUMNS; i++)
        rv = add_dataset (file, i);
    if (rv == 0)
        rv = take_image (file, b);
    for (int i = 0; rv == 0 && i < COLUMNS; i++) {
        struct header_image image = { b->image, b->size };
        struct header_dataset d;
        if (header_find (&image, layout[i].name, &d) == HEADER_FOUND)
            columns[i] = (struct column){ .length = (off_t)d.length,
                                          .storage = (off_t)d.storage,
                                          .room = layout[i].room,
                                          .size = layout[i].size };
        else
            rv = -1;
    }
    return rv;
}

static int make_blank (struct blank *b, const struct metrics_file_about *about,
                       struct column *columns)
{
    struct h5_quiet q;
    hid_t access;
    hid_t file;
    int rv = -1;

    *b = (struct blank){ .image = NULL };
    h5_quiet_begin (&q);
    access = h5_access ();
    H5Pset_fapl_core (access, BLOCK, 0);
    file = H5Fcreate ("metrics.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file >= 0) {
        rv = write_structure (file, b, about, columns);
        rv = H5Fclose (file) < 0 ? -1 : rv;
    }
    H5Pclose (access);
    h5_quiet_end (&q);
    return rv;
}

/* Keep the last image: a worker's files differ in two numbers only, and libhdf5 is
 * slow.
 */
static struct {
    pthread_mutex_t lock;
    struct metrics_file_about about;
    struct blank blank;
    struct column columns[COLUMNS];
} last = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int copy_blank (struct blank *to, const struct blank *from)
{
    if (!(to->image = malloc (from->size)))
        return -1;
    to->size = from->size;
    memcpy (to->image, from->image, from->size);
    return 0;
}

static void keep_blank (const struct blank *b, const struct metrics_file_about *about,
                        const struct column *columns)
{
    free (last.blank.image);
    last.blank.image = NULL;
    if (copy_blank (&last.blank, b) < 0)
        return;
    last.about = *about;
    memcpy (last.columns, columns, sizeof (last.columns));
}

static int set_attribute (struct blank *b, const char *name, int64_t n, uint64_t *at)
{
    const struct header_image image = { b->image, b->size };

    if (!(*at = header_number (&image, name)))
        return -1;
    write_word (b, (off_t)*at, (uint64_t)n);
    return 0;
}

int blank_number (struct blank *b, const struct metrics_file_about *about)
{
    return set_attribute (b, "trial", about->trial, &b->trial) < 0
                   || set_attribute (b, "attempt", about->attempt, &b->attempt) < 0
               ? -1
               : 0;
}

int blank_make (struct blank *b, const struct metrics_file_about *about, struct column *columns)
{
    /* a forked child whose parent held the lock works without the cache */
    bool locked = pthread_mutex_trylock (&last.lock) == 0;
    int rv;

    *b = (struct blank){ .image = NULL };
    if (locked && last.blank.image && !strcmp (last.about.experiment, about->experiment)) {
        rv = copy_blank (b, &last.blank);
        memcpy (columns, last.columns, sizeof (last.columns));
    } else if ((rv = make_blank (b, about, columns)) == 0 && locked)
        keep_blank (b, about, columns);
    if (locked)
        pthread_mutex_unlock (&last.lock);
    return rv == 0 ? blank_number (b, about) : -1;
}

void blank_place (struct blank *b, const struct column *c)
{
    write_word (b, c->storage, (uint64_t)c->data);
    write_word (b, c->storage + 8, c->room * c->size);
    write_word (b, c->length, 1);
    write_word (b, c->length + 8, c->room); /* maximum length */
}

void blank_end (struct blank *b, uint64_t end)
{
    write_word (b, END_OF_FILE, end);
}
