/* SPDX-License-Identifier: Apache-2.0 */
/* Read datasets in place, or by libhdf5. */
#include "runtime/metrics/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/metrics/header.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"

/* More than empty_file.c needs: names have limits. */
enum { IMAGE_MAX = 8192, END_OF_FILE = 40 };

static const char *const dataset_names[DATASETS] = {
    [NAMES] = "names",
    [METRICS] = "metrics",
    [RECORDS] = "records",
    [BYTES] = "bytes",
};

static uint64_t word_of (const struct header_image *image, uint64_t at)
{
    uint64_t word;

    memcpy (&word, image->bytes + at, sizeof (word));
    return word;
}

static int find_places (struct source *s, const struct header_image *image)
{
    for (int i = 0; i < DATASETS; i++) {
        struct header_dataset d;
        if (header_find (image, dataset_names[i], &d) != 0)
            return -1;
        s->places[i].length = d.length;
        s->places[i].size = d.size;
        s->places[i].address = word_of (image, d.storage);
        s->places[i].bytes = word_of (image, d.storage + 8);
    }
    return 0;
}

/* Whether it has our layout and is whole. */
static bool is_in_place (struct source *s, const struct stat *st)
{
    char bytes[IMAGE_MAX];
    struct header_image image = { bytes, sizeof (bytes) };

    if ((uint64_t)st->st_size < image.size)
        image.size = (uint64_t)st->st_size;
    return image.size > END_OF_FILE + 8 && io_read_at (s->fd, bytes, image.size, 0) == 0
           && header_attempt (&image, &s->attempt) == 0
           && word_of (&image, END_OF_FILE) <= (uint64_t)st->st_size
           && find_places (s, &image) == 0;
}

static int open_in_place (const struct source *s, enum dataset_name name, struct dataset *d)
{
    uint64_t n;

    if (s->places[name].length == 0 || s->places[name].size != d->size
        || io_read_at (s->fd, &n, sizeof (n), (off_t)s->places[name].length) < 0
        || n > s->places[name].bytes / d->size
        || s->places[name].address > INT64_MAX - s->places[name].bytes)
        return -1;
    d->address = s->places[name].address;
    d->n = n;
    return 0;
}

/* HDF5 would wait for a pipe, and follow a link. */
static hid_t open_by_hdf5 (int fd)
{
    char opened[32];
    hid_t access = h5_access ();
    hid_t file;

    snprintf (opened, sizeof (opened), "/proc/self/fd/%d", fd);
    file = H5Fopen (opened, H5F_ACC_RDONLY, access);
    H5Pclose (access);
    return file;
}

static int64_t read_attempt (hid_t file)
{
    long long attempt = 0;

    h5_read_number (file, "attempt", H5T_NATIVE_LLONG, &attempt);
    return attempt;
}

static int open_dataset (hid_t file, const char *name, struct dataset *d)
{
    hsize_t n;

    d->id = h5_open_inside (file, name);
    if (d->id < 0)
        return -1;
    hid_t type = H5Dget_type (d->id);
    hid_t space = H5Dget_space (d->id);
    bool good = H5Tget_size (type) == d->size && H5Sget_simple_extent_ndims (space) == 1
                && H5Sget_simple_extent_dims (space, &n, NULL) == 1;

    H5Sclose (space);
    H5Tclose (type);
    d->n = good ? n : 0;
    return good ? 0 : -1;
}

static int read_dataset (hid_t dataset, hsize_t first, hsize_t n, void *buf)
{
    hid_t type = H5Dget_type (dataset);
    hid_t space = H5Dget_space (dataset);
    hid_t memory = H5Screate_simple (1, &n, NULL);
    int rv = -1;

    if (H5Sselect_hyperslab (space, H5S_SELECT_SET, &first, NULL, &n, NULL) >= 0
        && H5Dread (dataset, type, memory, space, H5P_DEFAULT, buf) >= 0)
        rv = 0;
    H5Sclose (memory);
    H5Sclose (space);
    H5Tclose (type);
    return rv;
}

int source_open (struct source *s, const char *path)
{
    struct h5_quiet q;
    struct stat st;
    int fd = inside_open_any (path, O_RDONLY, 0, &st);

    *s = (struct source){ .fd = fd, .file = -1 };
    if (fd < 0)
        return -1;
    s->owner = st.st_uid;
    if (is_in_place (s, &st))
        return 0;
    s->fd = -1;
    if (!h5_may_parse (&st)) {
        close (fd);
        errno = EPERM;
        return -1;
    }
    h5_quiet_begin (&q);
    s->file = open_by_hdf5 (fd);
    s->attempt = s->file >= 0 ? read_attempt (s->file) : 0;
    h5_quiet_end (&q);
    close (fd);
    errno = s->file >= 0 ? errno : EBADMSG;
    return s->file >= 0 ? 0 : -1;
}

void source_close (struct source *s)
{
    if (s->fd >= 0)
        close (s->fd);
    if (s->file >= 0)
        H5Fclose (s->file);
}

int dataset_open (const struct source *s, enum dataset_name name, size_t size, struct dataset *d)
{
    struct h5_quiet q;
    int rv;

    *d = (struct dataset){ .id = -1, .size = size };
    if (s->fd >= 0)
        return open_in_place (s, name, d);
    if (s->file < 0)
        return -1;
    h5_quiet_begin (&q);
    rv = open_dataset (s->file, dataset_names[name], d);
    h5_quiet_end (&q);
    return rv;
}

void dataset_close (struct dataset *d)
{
    if (d->id >= 0)
        H5Dclose (d->id);
}

int dataset_read (const struct source *s, const struct dataset *d, uint64_t first, uint64_t n,
                  void *buf)
{
    struct h5_quiet q;
    int rv;

    if (d->id < 0)
        return io_read_at (s->fd, buf, n * d->size, (off_t)(d->address + first * d->size));
    h5_quiet_begin (&q);
    rv = read_dataset (d->id, first, n, buf);
    h5_quiet_end (&q);
    return rv;
}

uint64_t dataset_skip_hole (const struct source *s, const struct dataset *d, uint64_t first)
{
    off_t here = (off_t)(d->address + first * d->size);
    off_t data = d->id < 0 ? lseek (s->fd, here, SEEK_DATA) : here;
    uint64_t next;

    if (data < 0)
        return errno == ENXIO ? d->n : first;
    next = first + (uint64_t)(data - here) / d->size;
    return next < d->n ? next : d->n;
}
