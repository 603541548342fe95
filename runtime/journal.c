/* SPDX-License-Identifier: Apache-2.0 */
/* Lay out a metrics file with libhdf5, then extend it with pwrite(). */
#include "runtime/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/crc32c.h"
#include "runtime/error.h"
#include "runtime/h5.h"
#include "runtime/io.h"
#include "runtime/link.h"

enum { COPY_SIZE = 1 << 20, FILES_MAX = 1000, WASTE_MAX = 64 << 10 };
enum { BLOCK = 64 << 10 };
enum { MESSAGE_DATASPACE = 0x01, MESSAGE_CONTINUATION = 0x10 };

uint32_t row_crc (const struct row *row)
{
    return crc32c (0, row, offsetof (struct row, crc));
}

/* ---- the layout ---- */

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

static hid_t name_type (void)
{
    hid_t t = H5Tcopy (H5T_C_S1);

    H5Tset_size (t, NAME_SIZE);
    H5Tset_strpad (t, H5T_STR_NULLPAD);
    return t;
}

/* A file as libhdf5 has made it, in memory: an error of the disk inside of
 * libhdf5 would leave it with a file that it cannot close, and crash at exit.
 */
struct image {
    char *data;
    size_t size;
};

static int read_image (const struct image *im, void *to, size_t n, uint64_t at)
{
    if (at > im->size || n > im->size - at)
        return -1;
    memcpy (to, im->data + at, n);
    return 0;
}

/* Look for the dataspace in a block of version 1 messages: type and size (2
 * bytes each), flags, 3 bytes unused, then the message (HDF5 File Format
 * Specification 1.1, IV.A.1.a).  A continuation names a further block.
 */
static off_t
find_length (const struct image *im, uint64_t at, uint64_t len, uint64_t room)
{
    static const unsigned char simple[8] = { 1, 1, 1 }; /* version, rank, max */
    uint64_t end = at + len;
    off_t found = -1;
    uint64_t v[3];
    uint16_t head[4];

    while (found < 0 && at + 8 <= end
           && read_image (im, head, sizeof (head), at) == 0
           && read_image (im, v, sizeof (v), at + 8) == 0) {
        if (head[0] == MESSAGE_DATASPACE && !memcmp (v, simple, 8)
            && v[1] == room && v[2] == room)
            found = (off_t)at + 16;
        if (head[0] == MESSAGE_CONTINUATION)
            found = find_length (im, v[0], v[1], room);
        at += 8 + head[1];
    }
    return found;
}

/* Where the dataset's data and, in its object header, its length lie. */
static int find_column (hid_t dataset, const struct image *im, struct column *c)
{
    haddr_t data = H5Dget_offset (dataset);
    unsigned char prefix[16];
    uint32_t len;
    H5O_info_t info;

    if (data == HADDR_UNDEF || H5Oget_info2 (dataset, &info, H5O_INFO_BASIC) < 0
        || read_image (im, prefix, sizeof (prefix), info.addr) < 0
        || prefix[0] != 1)
        return -1;
    memcpy (&len, prefix + 8, sizeof (len));
    c->data = (off_t)data;
    c->length = find_length (im, info.addr + 16, len, c->room);
    return c->length > 0 && c->length % 8 == 0 ? 0 : -1;
}

static int
add_dataset (hid_t file, const char *name, hid_t type, const struct column *c)
{
    hsize_t room = c->room;
    hid_t space = H5Screate_simple (1, &room, NULL);
    hid_t how = h5_contiguous ();
    hid_t d =
        H5Dcreate2 (file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);

    if (d >= 0)
        H5Dclose (d);
    H5Pclose (how);
    H5Sclose (space);
    H5Tclose (type);
    return d < 0 ? -1 : 0;
}

static int add_about (hid_t file, const struct journal_about *about)
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

static hid_t in_memory (void)
{
    hid_t access = h5_access ();

    H5Pset_fapl_core (access, BLOCK, 0);
    return access;
}

static int take_image (hid_t file, struct image *im)
{
    ssize_t n = -1;

    if (H5Fflush (file, H5F_SCOPE_LOCAL) >= 0)
        n = H5Fget_file_image (file, NULL, 0);
    if (n <= 0 || !(im->data = malloc ((size_t)n)))
        return -1;
    im->size = (size_t)n;
    return H5Fget_file_image (file, im->data, im->size) == n ? 0 : -1;
}

static int locate (hid_t file, const struct image *im, struct journal *j)
{
    hid_t names = H5Dopen2 (file, "names", H5P_DEFAULT);
    hid_t rows = H5Dopen2 (file, "metrics", H5P_DEFAULT);
    int rv = names < 0 || rows < 0 || find_column (names, im, &j->names) < 0
                     || find_column (rows, im, &j->rows) < 0
                 ? -1
                 : 0;

    if (names >= 0)
        H5Dclose (names);
    if (rows >= 0)
        H5Dclose (rows);
    return rv;
}

static int lay_out (struct journal *j, struct image *im)
{
    hid_t access = in_memory ();
    hid_t file = H5Fcreate ("metrics.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    int rv = -1;

    if (file >= 0) {
        rv = add_about (file, &j->about) < 0
                     || add_dataset (file, "names", name_type (), &j->names) < 0
                     || add_dataset (file, "metrics", row_type (), &j->rows) < 0
                     || take_image (file, im) < 0 || locate (file, im, j) < 0
                 ? -1
                 : 0;
        rv = H5Fclose (file) < 0 ? -1 : rv;
    }
    H5Pclose (access);
    return rv;
}

/* ---- writing ---- */

static int set_length (struct journal *j, struct column *c, uint64_t n)
{
    if (io_write_at (j->fd, &n, sizeof (n), c->length) < 0)
        return -1;
    c->n = n;
    return 0;
}

/* The records first: nobody sees them before the length says so. */
static int add (struct journal *j,
                struct column *c,
                const void *records,
                size_t size,
                uint64_t n)
{
    off_t at = c->data + (off_t)(c->n * size);

    j->dirty = true;
    if (io_write_at (j->fd, records, n * size, at) < 0)
        return -1;
    return set_length (j, c, c->n + n);
}

/* HDF5 2.0 refuses a dataset of length 0: each begins with one record. */
static int first_records (struct journal *j)
{
    static const char name[1][NAME_SIZE] = { "slurmdl" };
    struct row row = { .value = 1 };

    row.crc = row_crc (&row);
    j->names.n = j->rows.n = 0;
    return add (j, &j->names, name, NAME_SIZE, 1) < 0
                   || add (j, &j->rows, &row, sizeof (row), 1) < 0
               ? -1
               : 0;
}

/* The room for records, at its end, stays a hole. */
static int write_image (int fd, const struct image *im)
{
    size_t n = im->size;

    while (n > 0 && im->data[n - 1] == 0)
        n--;
    return io_write_at (fd, im->data, n, 0) < 0
                   || ftruncate (fd, (off_t)im->size) < 0
               ? -1
               : 0;
}

/* Make a file of the journal's room under 'path'.  HDF5 sets no errno. */
static int make_file (const char *path, struct journal *j)
{
    struct image im = { NULL };
    struct h5_quiet q;
    int rv;
    int e;

    errno = 0;
    h5_quiet_begin (&q);
    rv = lay_out (j, &im);
    h5_quiet_end (&q);
    if (rv == 0) {
        j->fd = open (path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        rv = j->fd < 0 || write_image (j->fd, &im) < 0 || first_records (j) < 0
                 ? -1
                 : 0;
    }
    free (im.data);
    if (rv == 0)
        return 0;
    e = errno ? errno : EIO;
    if (j->fd >= 0) {
        close (j->fd);
        unlink (path);
    }
    j->fd = -1;
    errno = e;
    return -1;
}

/* Give the file the first name that is free: 0, or -1 */
static int name_file (struct journal *j,
                      const char *tmp,
                      const char *dir,
                      const char *stem)
{
    int rv = 1;

    for (int i = 0; rv == 1 && i < FILES_MAX; i++) {
        if (i == 0)
            snprintf (j->path, sizeof (j->path), "%s/%s.h5", dir, stem);
        else
            snprintf (j->path, sizeof (j->path), "%s/%s.%d.h5", dir, stem, i);
        rv = link_if_absent (tmp, j->path);
    }
    return rv == 0 ? 0 : -1;
}

int journal_create_as (struct journal *j,
                       const char *dir,
                       const char *stem,
                       const struct journal_about *about,
                       struct slurmdl_error *err)
{
    char near[PATH_MAX];
    char tmp[PATH_MAX];
    int e;

    *j = (struct journal){ .fd = -1,
                           .about = *about,
                           .names.room = NAMES_FIRST,
                           .rows.room = ROWS_FIRST };
    if (snprintf (near, sizeof (near), "%s/%s.h5", dir, stem) > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", dir);
    }
    link_tmp_name (tmp, sizeof (tmp), near);
    if (make_file (tmp, j) == 0) {
        bool named = fsync (j->fd) == 0;
        if (named && name_file (j, tmp, dir, stem) == 0) {
            j->dirty = false;
            return 0;
        }
        e = errno;
        if (!named)
            unlink (tmp);
        close (j->fd);
        j->fd = -1;
        errno = e;
    }
    return errorf (
        err, "%s: cannot create a metrics file: %s", dir, strerror (errno));
}

int journal_create (struct journal *j,
                    const char *dir,
                    const struct journal_about *about,
                    struct slurmdl_error *err)
{
    return journal_create_as (j, dir, "metrics", about, err);
}

/* ---- a larger, or an exact, file in the place of this one ---- */

static int copy_bytes (int from, off_t at, int to, off_t where, uint64_t len)
{
    char *buf = malloc (COPY_SIZE);
    int rv = buf ? 0 : -1;

    while (rv == 0 && len > 0) {
        size_t want = len < COPY_SIZE ? (size_t)len : COPY_SIZE;
        ssize_t n = pread (from, buf, want, at);
        if (n <= 0 || io_write_at (to, buf, (size_t)n, where) < 0) {
            rv = -1;
            break;
        }
        at += n;
        where += n;
        len -= (uint64_t)n;
    }
    free (buf);
    return rv;
}

static int copy_column (const struct journal *old,
                        const struct column *from,
                        struct journal *j,
                        struct column *to,
                        size_t size)
{
    if (copy_bytes (old->fd, from->data, j->fd, to->data, from->n * size) < 0)
        return -1;
    return set_length (j, to, from->n);
}

static int copy_rows (const struct journal *old, struct journal *j)
{
    return copy_column (old, &old->rows, j, &j->rows, sizeof (struct row));
}

static int put_rows (struct journal *j, const struct row *rows, uint64_t n)
{
    j->rows.n = 0;
    return add (j, &j->rows, rows, sizeof (*rows), n);
}

/* 'n' rows in the place of all, or all of them if 'rows' is NULL. */
static int replace (struct journal *j,
                    uint64_t room_names,
                    uint64_t room_rows,
                    const struct row *rows,
                    uint64_t n)
{
    struct journal new = *j;
    char tmp[PATH_MAX];
    int e;

    new.fd = -1;
    new.names.room = room_names;
    new.rows.room = room_rows;
    link_tmp_name (tmp, sizeof (tmp), j->path);
    if (make_file (tmp, &new) < 0)
        return -1;
    if (copy_column (j, &j->names, &new, &new.names, NAME_SIZE) < 0
        || (rows ? put_rows (&new, rows, n) : copy_rows (j, &new)) < 0
        || fsync (new.fd) < 0 || link_replace (tmp, j->path) < 0) {
        e = errno;
        close (new.fd);
        unlink (tmp);
        errno = e;
        return -1;
    }
    close (j->fd);
    *j = new;
    return 0;
}

/* ---- the rest of the interface ---- */

static uint64_t room_for (const struct column *c, uint64_t n)
{
    uint64_t room = c->room;

    while (room - c->n < n)
        room *= GROWTH;
    return room;
}

int journal_add_names (struct journal *j,
                       const char (*names)[NAME_SIZE],
                       uint64_t n)
{
    uint64_t room = room_for (&j->names, n);

    if (room > j->names.room && replace (j, room, j->rows.room, NULL, 0) < 0)
        return -1;
    return add (j, &j->names, names, NAME_SIZE, n);
}

int journal_add_rows (struct journal *j, const struct row *rows, uint64_t n)
{
    uint64_t room = room_for (&j->rows, n);

    if (room > j->rows.room && replace (j, j->names.room, room, NULL, 0) < 0)
        return -1;
    return add (j, &j->rows, rows, sizeof (*rows), n);
}

int journal_replace_rows (struct journal *j, const struct row *rows, uint64_t n)
{
    uint64_t room = j->rows.room;

    while (room < n)
        room *= GROWTH;
    return replace (j, j->names.room, room, rows, n);
}

int journal_sync (struct journal *j)
{
    if (j->dirty && fdatasync (j->fd) < 0)
        return -1;
    j->dirty = false;
    return 0;
}

/* Bytes that a file of the exact size would not have. */
static uint64_t waste (const struct journal *j)
{
    return (j->names.room - j->names.n) * NAME_SIZE
           + (j->rows.room - j->rows.n) * sizeof (struct row);
}

int journal_close (struct journal *j)
{
    int rv = 0;

    if (j->fd < 0)
        return 0;
    /* the file that is there is good: a failure here loses nothing */
    if (waste (j) <= WASTE_MAX
        || replace (j, j->names.n, j->rows.n, NULL, 0) < 0)
        rv = journal_sync (j);
    close (j->fd);
    j->fd = -1;
    return rv;
}
