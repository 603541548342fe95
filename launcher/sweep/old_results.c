/* SPDX-License-Identifier: Apache-2.0 */
/* Read what is to be kept of an old results.h5. */
#include "launcher/sweep/old_results.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "launcher/sweep/sweep.h"
#include "launcher/sys/small_file.h"
#include "runtime/storage/io.h"

const char seal_magic[8] = "SLDLRES1";

/* An old file that is larger is made anew. */
static const size_t RESULTS_MAX = (size_t)8 << 30;

enum { BLOCK = 1 << 20 };

hid_t results_text_type (size_t size)
{
    hid_t t = H5Tcopy (H5T_C_S1);

    H5Tset_size (t, size ? size : 1);
    H5Tset_strpad (t, H5T_STR_NULLPAD);
    H5Tset_cset (t, H5T_CSET_UTF8);
    return t;
}

hid_t results_row_type (void)
{
    hid_t t = H5Tcreate (H5T_COMPOUND, sizeof (struct metric_row));

#define MEMBER(name, type) H5Tinsert (t, #name, offsetof (struct metric_row, name), type)
    MEMBER (trial, H5T_STD_I64LE);
    MEMBER (step, H5T_STD_I64LE);
    MEMBER (time, H5T_IEEE_F64LE);
    MEMBER (value, H5T_IEEE_F64LE);
    MEMBER (attempt, H5T_STD_U32LE);
    MEMBER (name, H5T_STD_U32LE);
#undef MEMBER
    return t;
}

/* libhdf5 converts types that a file has made up, and crashes. */
static bool has_type (hid_t dataset, hid_t type)
{
    hid_t stored = H5Dget_type (dataset);
    bool same = stored >= 0 && H5Tequal (stored, type) > 0;

    if (stored >= 0)
        H5Tclose (stored);
    return same;
}

/* A whole one-dimensional dataset whose records have the type, and lie in the
 * file: it may claim any number of them.
 */
static void *read_dataset (hid_t file, const char *name, hid_t type, hsize_t *n)
{
    hid_t d = h5_open_inside (file, name);
    hid_t space = d >= 0 ? H5Dget_space (d) : -1;
    hsize_t most = 0;
    void *buf = NULL;

    if (d >= 0 && has_type (d, type) && H5Sget_simple_extent_ndims (space) == 1
        && H5Sget_simple_extent_dims (space, n, NULL) == 1 && H5Fget_filesize (file, &most) >= 0
        && *n <= most / H5Tget_size (type) && (buf = malloc (*n * H5Tget_size (type) + 1))
        && H5Dread (d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buf) < 0) {
        free (buf);
        buf = NULL;
    }
    if (space >= 0)
        H5Sclose (space);
    if (d >= 0)
        H5Dclose (d);
    return buf;
}

static double real_attribute (hid_t file, const char *name)
{
    double value = -1;

    h5_read_number (file, name, H5T_NATIVE_DOUBLE, &value);
    return value;
}

/* Two experiments of one name differ in the time of their creation. */
static bool is_of (const struct sweep *s, hid_t file)
{
    return real_attribute (file, "slurmdl_version") == RESULTS_VERSION
           && real_attribute (file, "created") == s->created;
}

/* A checksum is no signature: who may write the folder may have made it. */
static bool is_sane (const struct rows *r)
{
    if (!r->list || !r->names || !r->covered)
        return false;
    for (size_t i = 0; i < r->n; i++)
        if (r->list[i].name >= r->nnames)
            return false;
    for (size_t i = 0; i < r->nnames; i++)
        if (!memchr (r->names[i], '\0', sizeof (r->names[i])))
            return false;
    for (long i = 0; i < r->ntrials; i++)
        if (r->covered[i] < 0)
            return false;
    return true;
}

static int fill_old (struct rows *r, hid_t file)
{
    hid_t row = results_row_type ();
    hid_t name = results_text_type (ROW_NAME_SIZE);
    hsize_t n[3] = { 0 };

    r->list = read_dataset (file, "metrics", row, &n[0]);
    r->names = read_dataset (file, "names", name, &n[1]);
    r->covered = read_dataset (file, "covered", H5T_STD_I64LE, &n[2]);
    r->n = (size_t)n[0];
    r->nnames = (size_t)n[1];
    r->ntrials = (long)n[2];
    H5Tclose (row);
    H5Tclose (name);
    return is_sane (r) ? 0 : -1;
}

/* XXH64 of the file's first bytes; 0 if they cannot be read. */
static uint64_t sum_of (int fd, off_t size)
{
    XXH64_state_t *sum = XXH64_createState ();
    char *buf = malloc (BLOCK);
    uint64_t rv = 0;
    off_t at = 0;

    if (sum && buf)
        XXH64_reset (sum, 0);
    while (sum && buf && at < size) {
        size_t n = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
        if (io_read_at (fd, buf, n, at) < 0)
            break;
        XXH64_update (sum, buf, n);
        at += (off_t)n;
    }
    if (at == size)
        rv = XXH64_digest (sum);
    free (buf);
    XXH64_freeState (sum);
    return rv;
}

static bool is_sealed (int fd)
{
    struct seal seal;
    struct stat st;

    if (fstat (fd, &st) < 0 || !h5_may_parse (&st) || (size_t)st.st_size > RESULTS_MAX
        || (size_t)st.st_size <= sizeof (seal))
        return false;
    st.st_size -= (off_t)sizeof (seal);
    return io_read_at (fd, &seal, sizeof (seal), st.st_size) == 0
           && !memcmp (seal.magic, seal_magic, sizeof (seal_magic))
           && seal.xxh64 == sum_of (fd, st.st_size);
}

/* A file with this name is never written to: a new one takes its place. */
static int read_sealed (struct rows *r, const struct sweep *s, int fd)
{
    hid_t access = h5_access ();
    char opened[32];
    hid_t file;
    int rv = -1;

    snprintf (opened, sizeof (opened), "/proc/self/fd/%d", fd);
    if ((file = H5Fopen (opened, H5F_ACC_RDONLY, access)) >= 0) {
        rv = is_of (s, file) ? fill_old (r, file) : -1;
        H5Fclose (file);
    }
    H5Pclose (access);
    return rv;
}

void old_results_read (struct rows *r, const struct sweep *s, const char *path)
{
    int fd = access (path, F_OK) == 0 ? file_open (path, O_RDONLY) : -1;
    int rv = -1;

    *r = (struct rows){ 0 };
    if (fd >= 0 && is_sealed (fd))
        rv = read_sealed (r, s, fd);
    if (fd >= 0)
        close (fd);
    if (rv < 0)
        rows_destroy (r);
}
