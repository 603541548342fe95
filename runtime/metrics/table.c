/* SPDX-License-Identifier: Apache-2.0 */
/* Open a metrics file and read it in blocks. */
#include "runtime/metrics/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/metrics/header.h"
#include "runtime/metrics/metrics.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/h5.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"

/* More than file.c needs, because names have a limit. */
enum { IMAGE_MAX = 8192, END_OF_FILE = 40 };

static const char *const dataset_names[DATASETS] = {
    [NAMES] = "names",
    [METRICS] = "metrics",
    [RECORDS] = "records",
    [BYTES] = "bytes",
};

static uint64_t header_word (const struct header_image *image, uint64_t at)
{
    uint64_t word;

    memcpy (&word, image->bytes + at, sizeof (word));
    return word;
}

static int find_places (struct source *s, const struct header_image *image)
{
    for (int i = 0; i < DATASETS; i++) {
        struct header_dataset d;
        if (header_find (image, dataset_names[i], &d) != HEADER_FOUND)
            return -1;
        s->places[i].length = d.length;
        s->places[i].size = d.size;
        s->places[i].address = header_word (image, d.storage);
        s->places[i].bytes = header_word (image, d.storage + 8);
    }
    return 0;
}

/* Whether the file has our layout and is complete. */
static bool is_in_place (struct source *s, const struct stat *st)
{
    char bytes[IMAGE_MAX];
    struct header_image image = { bytes, sizeof (bytes) };

    if ((uint64_t)st->st_size < image.size)
        image.size = (uint64_t)st->st_size;
    return image.size > END_OF_FILE + 8 && io_read_at (s->fd, bytes, image.size, 0) == 0
           && header_attempt (&image, &s->attempt) == 0
           && header_word (&image, END_OF_FILE) <= (uint64_t)st->st_size
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

/* Open through the descriptor: given a path, HDF5 would block on a pipe and follow
 * links.
 */
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

/* Open a dataset with its current length.  Returns -1 if it is missing or has
 * records of another size.  Call dataset_close() in any case.
 */
static int dataset_open (const struct source *s, enum dataset_name name, size_t size,
                         struct dataset *d)
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

static void dataset_close (struct dataset *d)
{
    if (d->id >= 0)
        H5Dclose (d->id);
}

static int dataset_read (const struct source *s, const struct dataset *d, uint64_t first,
                         uint64_t n, void *buf)
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

/* The first record at or after 'first' that has data.  A file may claim a hole so
 * large that reading it would never end.
 */
static uint64_t dataset_skip_hole (const struct source *s, const struct dataset *d, uint64_t first)
{
    off_t here = (off_t)(d->address + first * d->size);
    off_t data = d->id < 0 ? lseek (s->fd, here, SEEK_DATA) : here;
    uint64_t next;

    if (data < 0)
        return errno == ENXIO ? d->n : first;
    next = first + (uint64_t)(data - here) / d->size;
    return next < d->n ? next : d->n;
}

/* Block sizes that fit into a near cache. */
enum { BLOCK = 8192, RECORDS_BLOCK = 1024 };

/* No writer adds more names, and looking up names takes quadratic time. */
enum { NAMES_READ_MAX = 2 * NAMES_MAX, EVENT_MAX = 4096 };

static int fail_damaged_table (const char *path, struct slurmdl_error *err)
{
    errno = EBADMSG;
    return errorf (err, "%s: is not a metrics file, or is damaged", path);
}

static int refuse_table (const struct table *t, struct slurmdl_error *err)
{
    errno = EBADMSG;
    return errorf (err,
                   "%s: refusing to read it: another program wrote it, and it belongs to user %ld "
                   "or others can write to it, so HDF5 could run their code; if you trust them, "
                   "replace it with your own copy (chmod go-w)",
                   t->path, (long)t->source.owner);
}

static int read_names (struct table *t)
{
    struct dataset d;
    int rv = dataset_open (&t->source, NAMES, NAME_SIZE, &d);

    /* a file may claim any number of names */
    if (rv == 0 && d.n <= NAMES_READ_MAX) {
        t->nnames = d.n;
        t->names = calloc (d.n + 1, NAME_SIZE);
    }
    rv = t->names ? dataset_read (&t->source, &d, 0, d.n, t->names) : -1;
    for (uint64_t i = 0; rv == 0 && i < t->nnames; i++)
        t->names[i][NAME_SIZE - 1] = '\0';
    dataset_close (&d);
    return rv;
}

/* Open rows and records first, so that the names and bytes they use are in the file
 * by the time we read those.
 */
static int open_columns (struct table *t)
{
    const struct source *s = &t->source;

    if (source_open (&t->source, t->path) < 0
        || dataset_open (s, METRICS, sizeof (struct row), &t->rows) < 0
        || dataset_open (s, RECORDS, sizeof (struct record), &t->records) < 0
        || dataset_open (s, BYTES, 1, &t->bytes) < 0)
        return -1;
    t->attempt = (long)s->attempt;
    return read_names (t);
}

/* ---- rows ---- */

bool table_superseded (const struct table *t, uint64_t number, const struct row *row)
{
    size_t low = 0, high = t->nresumes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (number < t->resumes[middle].row)
            high = middle;
        else
            low = middle + 1;
    }
    return low < t->nresumes && row->step > t->resumes[low].step;
}

/* A power failure may lose a name even though it was written earlier. */
static bool name_is_stored (const struct table *t, uint32_t name)
{
    return name < t->nnames && t->names[name][0];
}

static size_t count_good_rows (const struct table *t, const struct row *rows, size_t n)
{
    size_t good = rows_check (rows, n);

    for (size_t i = 0; i < good; i++)
        if (!name_is_stored (t, rows[i].name))
            return i;
    return good;
}

static bool is_zero (const void *record, size_t size)
{
    const char *bytes = record;

    return !*bytes && !memcmp (bytes, bytes + 1, size - 1);
}

/* Damaged records.  Zeros at the end of a file do not count: a power failure kept
 * them from being written.
 */
struct lost {
    uint64_t n, first;
    uint64_t zeros; /* zero records since the last nonzero one */
};

static void lose (struct lost *l, uint64_t number, bool zero)
{
    if (zero) {
        l->zeros++;
        return;
    }
    if (l->n == 0)
        l->first = number - l->zeros;
    l->n += l->zeros + 1;
    l->zeros = 0;
}

/* A good record follows, so the zeros before it are damage. */
static void count_zeros (struct lost *l, uint64_t number)
{
    if (l->zeros > 0 && l->n == 0)
        l->first = number - l->zeros;
    l->n += l->zeros;
    l->zeros = 0;
}

/* After a block of zeros, skip to the next record outside a hole. */
static uint64_t skip_hole (const struct table *t, const struct dataset *d, uint64_t at,
                           uint64_t block, struct lost *l)
{
    uint64_t next = at < d->n && l->zeros >= block ? dataset_skip_hole (&t->source, d, at) : at;

    l->zeros += next - at;
    return next;
}

static int tell_lost (const struct lost *l, const char *path, struct slurmdl_error *err)
{
    if (l->n == 0)
        return 0;
    errno = EBADMSG;
    return errorf (
        err, "%s: damaged: %llu row%s lost, the first is number %llu (checksums are wrong)", path,
        (unsigned long long)l->n, l->n == 1 ? " is" : "s are", (unsigned long long)l->first);
}

/* Pass the good rows of a block to 'f', in runs. */
static int give_good (const struct table *t, const struct row *rows, size_t n, uint64_t at,
                      block_f f, void *arg, struct lost *l)
{
    size_t i = 0;
    int rv = 0;

    while (rv == 0 && i < n) {
        size_t good = count_good_rows (t, rows + i, n - i);
        if (good > 0) {
            count_zeros (l, at + i);
            rv = f (t, rows + i, good, at + i, arg);
        }
        i += good;
        if (i < n)
            lose (l, at + i, is_zero (&rows[i], sizeof (*rows)));
        i++;
    }
    return rv;
}

int table_read_rows (const struct table *t, block_f f, void *arg, struct slurmdl_error *err)
{
    struct row *rows = malloc (BLOCK * sizeof (*rows));
    struct lost lost = { 0 };
    int rv = 0;

    if (!rows)
        return errorf (err, "out of memory");
    for (uint64_t at = 1; rv == 0 && at < t->rows.n;) {
        uint64_t n = t->rows.n - at < BLOCK ? t->rows.n - at : BLOCK;
        if (dataset_read (&t->source, &t->rows, at, n, rows) < 0) {
            rv = fail_damaged_table (t->path, err);
            break;
        }
        rv = give_good (t, rows, n, at, f, arg, &lost);
        at = skip_hole (t, &t->rows, at + n, BLOCK, &lost);
    }
    if (rv == 0)
        rv = tell_lost (&lost, t->path, err);
    int e = errno;
    free (rows);
    errno = e;
    return rv;
}

/* ---- records ---- */

static bool good_record (const struct table *t, const struct record *r)
{
    return r->crc == record_crc (r) && name_is_stored (t, r->name) && r->bytes <= RECORD_MAX
           && r->bytes <= t->bytes.n && r->offset <= t->bytes.n - r->bytes;
}

/* The record's data with a NUL appended, or NULL if they are damaged. */
static char *read_data (const struct table *t, const struct record *r)
{
    char *data = malloc (r->bytes + 1);

    if (!data)
        return NULL;
    if ((r->bytes == 0 || dataset_read (&t->source, &t->bytes, r->offset, r->bytes, data) == 0)
        && crc32c (0, data, r->bytes) == r->data_crc) {
        data[r->bytes] = '\0';
        return data;
    }
    free (data);
    return NULL;
}

/* Returns false if the data are damaged.  Sets '*rv' to the result of f(). */
static bool give_record (const struct table *t, const struct record *r, slurmdl_record_f f,
                         void *arg, int *rv)
{
    char *data = read_data (t, r);

    if (!data)
        return false;
    *rv =
        f (&(struct slurmdl_record){ r->step, r->time, t->names[r->name], r->kind, r->bytes, data },
           arg);
    free (data);
    return true;
}

static bool is_event (const struct table *t, const struct record *r, const char *event)
{
    return r->kind == SLURMDL_EVENT && r->bytes <= EVENT_MAX && !strcmp (t->names[r->name], event);
}

/* Read all records, or only the events of one kind without the data of others. */
static int read_table_records (const struct table *t, const char *event, slurmdl_record_f f,
                               void *arg, struct slurmdl_error *err)
{
    struct record *list;
    struct lost lost = { 0 };
    int rv = 0;

    if (t->records.n < 2)
        return 0;
    if (!(list = malloc (RECORDS_BLOCK * sizeof (*list))))
        return errorf (err, "out of memory");
    for (uint64_t at = 1; rv == 0 && at < t->records.n;) {
        uint64_t n = t->records.n - at;
        n = n < RECORDS_BLOCK ? n : RECORDS_BLOCK;
        if (dataset_read (&t->source, &t->records, at, n, list) < 0) {
            rv = fail_damaged_table (t->path, err);
            break;
        }
        for (uint64_t i = 0; rv == 0 && i < n; i++)
            if (!good_record (t, &list[i]))
                lose (&lost, at + i, is_zero (&list[i], sizeof (*list)));
            else if ((!event || is_event (t, &list[i], event))
                     && !give_record (t, &list[i], f, arg, &rv))
                lose (&lost, at + i, false);
            else
                count_zeros (&lost, at + i);
        at = skip_hole (t, &t->records, at + n, RECORDS_BLOCK, &lost);
    }
    /* events are read while opening the table; the reader of all records reports
     * damage
     */
    if (rv == 0 && !event)
        rv = tell_lost (&lost, t->path, err);
    int e = errno;
    free (list);
    errno = e;
    return rv;
}

int table_read_records (const struct table *t, slurmdl_record_f f, void *arg,
                        struct slurmdl_error *err)
{
    return read_table_records (t, NULL, f, arg, err);
}

/* ---- open and close ---- */

static int note_resumed (const struct slurmdl_record *r, void *arg)
{
    struct table *t = arg;
    struct resume *list;
    long long step;
    unsigned long row;

    if (sscanf (r->data, "{\"step\": %lld, \"row\": %lu}", &step, &row) != 2)
        return 0;
    list = realloc (t->resumes, (t->nresumes + 1) * sizeof (*list));
    if (!list)
        return -1;
    t->resumes = list;
    list[t->nresumes++] = (struct resume){ step, row };
    return 0;
}

static int by_row (const void *a, const void *b)
{
    const struct resume *x = a;
    const struct resume *y = b;

    return (x->row > y->row) - (x->row < y->row);
}

/* Sort resumes by row, and give each the lowest step from there on. */
static void order_resumes (struct table *t)
{
    if (t->nresumes > 1)
        qsort (t->resumes, t->nresumes, sizeof (*t->resumes), by_row);
    for (size_t i = t->nresumes; i-- > 1;)
        if (t->resumes[i].step < t->resumes[i - 1].step)
            t->resumes[i - 1].step = t->resumes[i].step;
}

int table_open (struct table *t, const char *path, struct slurmdl_error *err)
{
    int rv;

    *t = (struct table){ .path = path,
                         .source = { .fd = -1, .file = -1 },
                         .rows.id = -1,
                         .records.id = -1,
                         .bytes.id = -1 };
    errno = 0;
    if (open_columns (t) < 0)
        return errno == EPERM ? refuse_table (t, err) : fail_damaged_table (path, err);
    rv = read_table_records (t, "resumed", note_resumed, t, err);
    order_resumes (t);
    return rv;
}

void table_close (struct table *t)
{
    int e = errno;

    dataset_close (&t->rows);
    dataset_close (&t->records);
    dataset_close (&t->bytes);
    source_close (&t->source);
    free (t->names);
    free (t->resumes);
    errno = e;
}

/* ---- folders ---- */

static int is_metrics (const struct dirent *e)
{
    size_t n = strlen (e->d_name);

    return !strncmp (e->d_name, "metrics.", 8) && n >= 10 && !strcmp (e->d_name + n - 3, ".h5");
}

/* Sort in the order metrics.h5, metrics.1.h5, ..., metrics.10.h5. */
static int compare_file_numbers (const struct dirent **a, const struct dirent **b)
{
    long x = atol ((*a)->d_name + 8);
    long y = atol ((*b)->d_name + 8);

    return x != y ? (x > y) - (x < y) : strcmp ((*a)->d_name, (*b)->d_name);
}

int each_metrics_file (const char *dir,
                       int (*f) (const char *path, void *arg, struct slurmdl_error *err), void *arg,
                       struct slurmdl_error *err)
{
    struct dirent **list;
    int fd = inside_open_any (dir, O_RDONLY | O_DIRECTORY, 0, NULL);
    int n = fd < 0 ? -1 : scandirat (fd, ".", &list, is_metrics, compare_file_numbers);
    char path[PATH_MAX];
    int rv = 0;

    if (fd >= 0)
        close (fd);
    if (n < 0)
        return errno == ENOENT ? 0 : errorf (err, "%s: %s", dir, inside_error (errno));
    for (int i = 0; i < n; i++) {
        snprintf (path, sizeof (path), "%s/%s", dir, list[i]->d_name);
        if (rv == 0)
            rv = f (path, arg, err);
        free (list[i]);
    }
    free (list);
    return rv;
}
