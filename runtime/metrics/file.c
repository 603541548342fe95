/* SPDX-License-Identifier: Apache-2.0 */
/* Write a metrics file: create it, extend it with pwrite(), sync it, and replace it
 * with a larger copy or one of exact size.
 */
#include "runtime/metrics/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/futex.h"
#include "runtime/base/thread.h"
#include "runtime/metrics/header.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/h5.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"

/* When a column is full, its room grows by this factor.  Unused room is a hole in
 * the file.
 */
enum { ROOM_GROWTH = 8 };

/* ---- the blank file ---- */

/* END_OF_FILE: offset of that address in the superblock. */
enum { IMAGE_BLOCK = 64 << 10, END_OF_FILE = 40 };

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
} column_layout[COLUMNS] = {
    { "names", name_type, NAME_SIZE, 32 },
    { "metrics", row_type, sizeof (struct row), 1024 },
    { "records", record_type, sizeof (struct record), 64 },
    { "bytes", byte_type, 1, 16384 },
};

/* The length is 1 because HDF5 2.0 rejects an empty dataset. */
static int add_dataset (hid_t file, int i)
{
    hsize_t one = 1;
    hid_t type = column_layout[i].type ();
    hid_t space = H5Screate_simple (1, &one, NULL);
    hid_t how = h5_contiguous ();
    hid_t d = H5Dcreate2 (file, column_layout[i].name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);

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
        if (header_find (&image, column_layout[i].name, &d) == HEADER_FOUND)
            columns[i] = (struct column){ .length = (off_t)d.length,
                                          .storage = (off_t)d.storage,
                                          .room = column_layout[i].room,
                                          .size = column_layout[i].size };
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
    H5Pset_fapl_core (access, IMAGE_BLOCK, 0);
    file = H5Fcreate ("metrics.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file >= 0) {
        rv = write_structure (file, b, about, columns);
        rv = H5Fclose (file) < 0 ? -1 : rv;
    }
    H5Pclose (access);
    h5_quiet_end (&q);
    return rv;
}

/* Keep the last image: libhdf5 is slow, and the files of a worker differ only in two numbers. */
static struct {
    pthread_mutex_t lock;
    struct metrics_file_about about;
    struct blank blank;
    struct column columns[COLUMNS];
} last_blank = { .lock = PTHREAD_MUTEX_INITIALIZER };

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
    free (last_blank.blank.image);
    last_blank.blank.image = NULL;
    if (copy_blank (&last_blank.blank, b) < 0)
        return;
    last_blank.about = *about;
    memcpy (last_blank.columns, columns, sizeof (last_blank.columns));
}

static int set_attribute (struct blank *b, const char *name, int64_t n, uint64_t *at)
{
    const struct header_image image = { b->image, b->size };

    if (!(*at = header_number (&image, name)))
        return -1;
    write_word (b, (off_t)*at, (uint64_t)n);
    return 0;
}

/* Set the attributes trial and attempt in the image. */
static int blank_number (struct blank *b, const struct metrics_file_about *about)
{
    return set_attribute (b, "trial", about->trial, &b->trial) < 0
                   || set_attribute (b, "attempt", about->attempt, &b->attempt) < 0
               ? -1
               : 0;
}

/* Make the image, and set all members of the columns but 'data'.  Returns -1 on failure; the
 * caller frees the image in any case.
 */
static int blank_make (struct blank *b, const struct metrics_file_about *about,
                       struct column *columns)
{
    /* a forked child whose parent held the lock works without the cache */
    bool locked = pthread_mutex_trylock (&last_blank.lock) == 0;
    int rv;

    *b = (struct blank){ .image = NULL };
    if (locked && last_blank.blank.image
        && !strcmp (last_blank.about.experiment, about->experiment)) {
        rv = copy_blank (b, &last_blank.blank);
        memcpy (columns, last_blank.columns, sizeof (last_blank.columns));
    } else if ((rv = make_blank (b, about, columns)) == 0 && locked)
        keep_blank (b, about, columns);
    if (locked)
        pthread_mutex_unlock (&last_blank.lock);
    return rv == 0 ? blank_number (b, about) : -1;
}

/* Set the place and the room of a column's data in the image, and the length 1. */
static void blank_place (struct blank *b, const struct column *c)
{
    write_word (b, c->storage, (uint64_t)c->data);
    write_word (b, c->storage + 8, c->room * c->size);
    write_word (b, c->length, 1);
    write_word (b, c->length + 8, c->room); /* maximum length */
}

static void blank_end (struct blank *b, uint64_t end)
{
    write_word (b, END_OF_FILE, end);
}

/* ---- checksums ---- */

void rows_seal (struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rows[i].crc = crc32c (0, &rows[i], offsetof (struct row, crc));
}

static size_t rows_check_plain (const struct row *rows, size_t n)
{
    size_t i = 0;

    while (i < n && rows[i].crc == crc32c (0, &rows[i], 28))
        i++;
    return i;
}

#if defined(__x86_64__)
__attribute__ ((target ("sse4.2"))) static size_t rows_check_sse (const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t w[4];
        uint64_t c = 0xffffffff;
        memcpy (w, &rows[i], sizeof (w));
        c = __builtin_ia32_crc32di (c, w[0]);
        c = __builtin_ia32_crc32di (c, w[1]);
        c = __builtin_ia32_crc32di (c, w[2]);
        c = __builtin_ia32_crc32si ((uint32_t)c, (uint32_t)w[3]);
        if (~(uint32_t)c != (uint32_t)(w[3] >> 32))
            return i;
    }
    return n;
}
#endif

size_t rows_check (const struct row *rows, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports ("sse4.2"))
        return rows_check_sse (rows, n);
#endif
    return rows_check_plain (rows, n);
}

uint32_t record_crc (const struct record *r)
{
    return crc32c (0, r, offsetof (struct record, crc));
}

/* ---- what was written since the last sync ---- */

/* Most bytes kept per column.  A program that writes more within seconds has to
 * rely on the file.
 */
enum { KEPT_MAX = 1 << 20, KEPT_LEAST = 4 << 10 };

struct metrics_file_kept {
    struct {
        char *data;
        size_t room;
        uint64_t from; /* number of the first record in 'data' */
    } columns[COLUMNS];
    bool over; /* more than KEPT_MAX, or out of memory */
};

/* The whole file is on stable storage, so forget what was kept. */
static void metrics_file_kept_synced (struct metrics_file *f)
{
    for (int i = 0; f->kept && i < COLUMNS; i++)
        f->kept->columns[i].from = f->columns[i].n;
    if (f->kept)
        f->kept->over = false;
}

/* After a failed sync, the client of a network file system may have thrown the data
 * away: reads return zeros, and the next sync succeeds.  So keep up to 1 MiB per
 * column in memory, and write it into the file that replaces the suspect one.
 */
static void metrics_file_keep_new (struct metrics_file *f)
{
    f->kept = calloc (1, sizeof (*f->kept));
    metrics_file_kept_synced (f);
}

static void metrics_file_keep_end (struct metrics_file *f)
{
    for (int i = 0; f->kept && i < COLUMNS; i++)
        free (f->kept->columns[i].data);
    free (f->kept);
    f->kept = NULL;
}

static int grow_kept (struct metrics_file_kept *k, int i, size_t size)
{
    size_t room = k->columns[i].room ? k->columns[i].room : KEPT_LEAST;
    char *data;

    while (room < size)
        room *= 2;
    if (room > KEPT_MAX)
        return -1;
    if (room == k->columns[i].room)
        return 0;
    if (!(data = realloc (k->columns[i].data, room)))
        return -1;
    k->columns[i].data = data;
    k->columns[i].room = room;
    return 0;
}

/* Keep these records, which are about to be appended. */
static void metrics_file_keep (struct metrics_file *f, const struct column *c, const void *records,
                               uint64_t n)
{
    struct metrics_file_kept *k = f->kept;
    int i = (int)(c - f->columns);
    size_t at;

    if (!k || k->over)
        return;
    at = (c->n - k->columns[i].from) * c->size;
    if (grow_kept (k, i, at + n * c->size) < 0)
        k->over = true;
    else
        memcpy (k->columns[i].data + at, records, n * c->size);
}

/* Returns the number of the column's first kept record, and sets '*data' to it.
 * All later records follow there.  If none is kept, returns the number of records
 * in the column.
 */
static uint64_t metrics_file_kept (const struct metrics_file *f, const struct column *c,
                                   const char **data)
{
    const struct metrics_file_kept *k = f->kept;
    int i = (int)(c - f->columns);

    if (!k || k->over)
        return c->n;
    *data = k->columns[i].data;
    return k->columns[i].from;
}

/* ---- make a file and write into it ---- */

enum { ALIGN = 64, FILES_MAX = 1000 };

static int metrics_file_set_length (struct metrics_file *f, struct column *c, uint64_t n)
{
    if (io_write_at (f->fd, &n, sizeof (n), c->length) < 0)
        return -1;
    c->n = n;
    return 0;
}

/* Write records behind the existing ones, but do not count them yet: readers see no
 * record before all are written.
 */
static int metrics_file_put (struct metrics_file *f, const struct column *c, const void *records,
                             uint64_t n)
{
    f->dirty += n * c->size;
    metrics_file_keep (f, c, records, n);
    return io_write_at (f->fd, records, n * c->size, c->data + (off_t)(c->n * c->size));
}

/* Write the records before the length, so that nobody sees half of them. */
static int metrics_file_append (struct metrics_file *f, struct column *c, const void *records,
                                uint64_t n)
{
    return metrics_file_put (f, c, records, n) < 0 ? -1 : metrics_file_set_length (f, c, c->n + n);
}

/* HDF5 2.0 rejects a dataset of length 0, so each begins with one record, as in the
 * blank.
 */
static int first_records (struct metrics_file *f)
{
    static const char name[NAME_SIZE] = "slurmdl";
    struct row row = { .value = 1 };
    struct record record = { .bytes = 1 };

    rows_seal (&row, 1);
    record.data_crc = crc32c (0, "", 1);
    record.crc = record_crc (&record);
    for (int i = 0; i < COLUMNS; i++)
        f->columns[i].n = 0;
    if (metrics_file_put (f, &f->names, name, 1) < 0 || metrics_file_put (f, &f->rows, &row, 1) < 0
        || metrics_file_put (f, &f->bytes, "", 1) < 0
        || metrics_file_put (f, &f->records, &record, 1) < 0)
        return -1;
    for (int i = 0; i < COLUMNS; i++)
        f->columns[i].n = 1;
    return 0;
}

static uint64_t round_up (uint64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Leave the room for records at the end as a hole. */
static int write_blank (struct metrics_file *f)
{
    uint64_t at = round_up (f->blank.size);

    for (int i = 0; i < COLUMNS; i++) {
        struct column *c = &f->columns[i];
        c->data = (off_t)at;
        blank_place (&f->blank, c);
        at = round_up (at + c->room * c->size);
    }
    blank_end (&f->blank, at);
    return io_write_at (f->fd, f->blank.image, f->blank.size, 0) < 0
                   || ftruncate (f->fd, (off_t)at) < 0
               ? -1
               : 0;
}

/* Create a file with the columns' room as 'name' in its folder, and open it as f->fd. */
static int metrics_file_make (const char *name, struct metrics_file *f)
{
    int e;

    f->fd = inside_open_at (f->folder, name, O_RDWR | O_CREAT | O_EXCL, 0644, NULL);
    if (f->fd < 0)
        return -1;
    if (write_blank (f) == 0 && first_records (f) == 0)
        return 0;
    e = errno;
    close (f->fd);
    unlinkat (f->folder, name, 0);
    f->fd = -1;
    errno = e;
    return -1;
}

/* The file name without its folder. */
static const char *metrics_file_name (const struct metrics_file *f)
{
    return strrchr (f->path, '/') + 1;
}

/* Record that the file now has a name, which is not synced yet. */
static void metrics_file_is_named (struct metrics_file *f)
{
    f->fresh = true;
    if (f->named)
        atomic_store (f->named, f->number + 1);
}

/* Link the synced file 'tmp' to the first free name. */
static int metrics_file_first_name (struct metrics_file *f, const char *tmp)
{
    size_t stem = strlen (f->path) - strlen (".h5");
    enum link_result linked = link_unsynced_at (f->folder, tmp, metrics_file_name (f));

    f->number = 0;
    for (int i = 1; linked == LINK_TAKEN && i < FILES_MAX; i++) {
        f->number = i;
        snprintf (f->path + stem, sizeof (f->path) - stem, ".%d.h5", i);
        linked = link_unsynced_at (f->folder, tmp, metrics_file_name (f));
    }
    if (linked != LINKED) {
        strcpy (f->path + stem, ".h5");
        return -1;
    }
    metrics_file_is_named (f);
    return 0;
}

/* ---- a larger or an exact copy ---- */

enum { COPY_SIZE = 1 << 20 };

static int copy_bytes (int from, off_t at, int to, off_t where, uint64_t len)
{
    char *buf = malloc (COPY_SIZE);
    int rv = buf ? 0 : -1;

    while (rv == 0 && len > 0) {
        size_t n = len < COPY_SIZE ? (size_t)len : COPY_SIZE;
        if (io_read_at (from, buf, n, at) < 0 || io_write_at (to, buf, n, where) < 0)
            rv = -1;
        at += (off_t)n;
        where += (off_t)n;
        len -= n;
    }
    free (buf);
    return rv;
}

static int copy_column (const struct metrics_file *old, const struct column *from,
                        struct metrics_file *f, struct column *to)
{
    const char *data = NULL;
    uint64_t kept = metrics_file_kept (old, from, &data);
    off_t done = (off_t)(to->n * to->size);
    off_t at = (off_t)(kept * to->size);

    if (kept > to->n
        && copy_bytes (old->fd, from->data + done, f->fd, to->data + done,
                       (kept - to->n) * from->size)
               < 0)
        return -1;
    if (from->n > kept
        && io_write_at (f->fd, data, (from->n - kept) * from->size, to->data + at) < 0)
        return -1;
    return metrics_file_set_length (f, to, from->n);
}

/* Copy the records that the new file lacks.  Put 'n' rows in place of the old ones
 * unless 'rows' is NULL.
 */
static int metrics_file_copy_columns (const struct metrics_file *old, struct metrics_file *f,
                                      const struct row *rows, uint64_t n)
{
    int rv = 0;

    for (int i = 0; rv == 0 && i < COLUMNS; i++) {
        struct column *to = &f->columns[i];
        if (rows && to == &f->rows) {
            to->n = 0;
            rv = metrics_file_append (f, to, rows, n);
        } else
            rv = copy_column (old, &old->columns[i], f, to);
    }
    return rv;
}

static bool file_is_named (const struct metrics_file *f)
{
    struct stat file;
    struct stat named;

    return fstat (f->fd, &file) == 0 && fstatat (f->folder, metrics_file_name (f), &named, 0) == 0
           && file.st_dev == named.st_dev && file.st_ino == named.st_ino;
}

/* Once the new file has the name, this does not fail, because the old file is out
 * of reach.  The next sync tries again what failed.
 */
static int metrics_file_give_name (struct metrics_file *f, const char *tmp)
{
    f->dirty = 0;
    f->suspect = f->fresh = false;
    f->files++;
    if (*f->tmp) {
        if (metrics_file_first_name (f, tmp) < 0)
            return -1;
        unlinkat (f->folder, f->tmp, 0);
        *f->tmp = '\0';
        if (link_sync_folder (f->folder) == 0)
            f->fresh = false;
        else
            f->dirty = 1; /* the next sync tries again */
        return 0;
    }
    if (link_replace_at (f->folder, tmp, metrics_file_name (f)) == 0)
        return 0;
    f->suspect = file_is_named (f);
    f->dirty = f->suspect;
    return f->suspect ? 0 : -1;
}

/* Replace the file by one with these rooms.  The 'n' rows in 'rows' take the place
 * of all rows, unless 'rows' is NULL.  On failure nothing changes.
 */
static int metrics_file_replace (struct metrics_file *f, const uint64_t *rooms,
                                 const struct row *rows, uint64_t n)
{
    struct metrics_file new = *f;
    char tmp[sizeof (f->tmp)];
    int e;

    new.kept = NULL; /* stays with 'f' until everything is in the new file */

    for (int i = 0; i < COLUMNS; i++)
        new.columns[i].room = rooms[i];
    link_tmp_name (tmp, sizeof (tmp), "");
    if (metrics_file_make (tmp, &new) < 0)
        return -1;
    if (metrics_file_copy_columns (f, &new, rows, n) < 0 || fsync (new.fd) < 0
        || metrics_file_give_name (&new, tmp) < 0) {
        e = errno;
        close (new.fd);
        unlinkat (f->folder, tmp, 0);
        errno = e;
        return -1;
    }
    close (f->fd);
    new.kept = f->kept;
    *f = new;
    metrics_file_kept_synced (f);
    return 0;
}

/* The current rooms of the columns. */
static void metrics_file_rooms (const struct metrics_file *f, uint64_t *rooms)
{
    for (int i = 0; i < COLUMNS; i++)
        rooms[i] = f->columns[i].room;
}

/* ---- growth and syncs in another thread ---- */

/* A smaller file is copied only when it is full, because that takes no time. */
enum { LARGE = 1 << 20 };

struct metrics_file_work {
    pthread_t thread;
    int (*run) (struct metrics_file_work *w);
    int (*end) (struct metrics_file *f, struct metrics_file_work *w);
    atomic_uint *wakeups;
    atomic_bool done;
    int error;                /* errno of run(), or 0 */
    struct metrics_file from; /* state at the start, with a duplicate of fd */
    struct metrics_file to;   /* the larger file; fd is -1 if there is none */
    char tmp[40];
};

static int run_sync (struct metrics_file_work *w)
{
    if (fdatasync (w->from.fd) < 0)
        return -1;
    return w->from.fresh ? link_sync_folder (w->from.folder) : 0;
}

static int end_sync (struct metrics_file *f, struct metrics_file_work *w)
{
    if (w->error == 0 || w->from.files != f->files)
        return 0;
    f->suspect = true;
    f->fresh = w->from.fresh;
    f->dirty += w->from.dirty;
    errno = w->error;
    return -1;
}

static int run_growth (struct metrics_file_work *w)
{
    if (metrics_file_make (w->tmp, &w->to) < 0)
        return -1;
    return metrics_file_copy_columns (&w->from, &w->to, NULL, 0) < 0 || fsync (w->to.fd) < 0 ? -1
                                                                                             : 0;
}

/* Also copy what was added meanwhile.  A failure does no harm: there is still room,
 * and once it is used up the file is replaced synchronously.
 */
static int end_growth (struct metrics_file *f, struct metrics_file_work *w)
{
    uint64_t dirty = f->dirty;

    if (w->error == 0 && w->from.files == f->files
        && metrics_file_copy_columns (f, &w->to, NULL, 0) == 0
        && metrics_file_give_name (&w->to, w->tmp) == 0) {
        close (f->fd);
        w->to.work = f->work;
        w->to.kept = f->kept;
        w->to.dirty += dirty;
        *f = w->to;
        return 0;
    }
    if (w->to.fd >= 0) {
        close (w->to.fd);
        unlinkat (f->folder, w->tmp, 0);
    }
    f->refused = f->rows.n;
    return 0;
}

/* Grow early, when a quarter is used, because writing continues during the copy. */
static bool needs_room (const struct column *c)
{
    return c->room * c->size >= LARGE && c->n > c->room / 4;
}

/* Whether it is time to create a larger file. */
static bool metrics_file_needs_room (const struct metrics_file *f)
{
    return !f->suspect && f->rows.n >= 2 * f->refused
           && (needs_room (&f->rows) || needs_room (&f->bytes));
}

static void *file_worker (void *arg)
{
    struct metrics_file_work *w = arg;
    atomic_uint *wakeups = w->wakeups;

    w->error = w->run (w) < 0 ? errno : 0;
    atomic_store (&w->done, true);
    /* 'wakeups' stays valid until metrics_file_end_work() has joined this thread */
    atomic_fetch_add (wakeups, 1);
    futex_wake (wakeups);
    return NULL;
}

static struct metrics_file_work *create_work (const struct metrics_file *f, atomic_uint *wakeups)
{
    struct metrics_file_work *w = calloc (1, sizeof (*w));

    if (!w)
        return NULL;
    w->from = w->to = *f;
    w->to.fd = -1;
    w->from.kept = w->to.kept = NULL; /* the caller continues to change it */
    w->wakeups = wakeups;
    if ((w->from.fd = fcntl (f->fd, F_DUPFD_CLOEXEC, 0)) >= 0)
        return w;
    free (w);
    return NULL;
}

static void free_work (struct metrics_file_work *w)
{
    int e = errno;

    close (w->from.fd);
    free (w);
    errno = e;
}

static void metrics_file_begin_growth (struct metrics_file *f, atomic_uint *wakeups)
{
    struct metrics_file_work *w = create_work (f, wakeups);

    if (!w)
        return;
    link_tmp_name (w->tmp, sizeof (w->tmp), "");
    for (int i = 0; i < COLUMNS; i++)
        if (needs_room (&f->columns[i]))
            w->to.columns[i].room *= ROOM_GROWTH;
    w->run = run_growth;
    w->end = end_growth;
    if (thread_start (&w->thread, file_worker, w) == 0)
        f->work = w;
    else
        free_work (w);
}

/* Returns -1 if the caller has to sync itself. */
static int metrics_file_begin_sync (struct metrics_file *f, atomic_uint *wakeups)
{
    struct metrics_file_work *w = f->suspect ? NULL : create_work (f, wakeups);

    if (!w)
        return -1;
    w->run = run_sync;
    w->end = end_sync;
    if (thread_start (&w->thread, file_worker, w) < 0) {
        free_work (w);
        return -1;
    }
    f->work = w;
    f->dirty = 0;
    f->fresh = false;
    return 0;
}

/* Wait for the work to end.  Returns 0, or -1 with the errno of a sync. */
static int metrics_file_end_work (struct metrics_file *f)
{
    struct metrics_file_work *w = f->work;
    int rv;

    if (!w)
        return 0;
    pthread_join (w->thread, NULL);
    rv = w->end (f, w);
    f->work = NULL;
    free_work (w);
    return rv;
}

bool metrics_file_is_done (const struct metrics_file *f)
{
    return f->work && atomic_load (&f->work->done);
}

/* ---- open, append, close ---- */

enum { WASTE_MAX = 64 << 10 };

static int create_metrics_file (struct metrics_file *f, const char *dir, int folder,
                                const char *stem, const char *tmp)
{
    snprintf (f->path, sizeof (f->path), "%s/%s.h5", dir, stem);
    if (tmp)
        snprintf (f->tmp, sizeof (f->tmp), "%s", tmp);
    else
        link_tmp_name (f->tmp, sizeof (f->tmp), "");
    f->folder = folder < 0 ? inside_open_any (dir, O_RDONLY | O_DIRECTORY, 0, NULL)
                           : fcntl (folder, F_DUPFD_CLOEXEC, 0);
    return f->folder < 0 ? -1 : metrics_file_make (f->tmp, f);
}

static void close_file (struct metrics_file *f)
{
    int e = errno;

    if (f->fd >= 0)
        close (f->fd);
    if (f->folder >= 0)
        close (f->folder);
    free (f->blank.image);
    metrics_file_keep_end (f);
    f->fd = f->folder = -1;
    f->blank.image = NULL;
    errno = e;
}

static int create_file (struct metrics_file *f, const char *dir, int folder, const char *stem,
                        const char *tmp, const struct metrics_file_about *about,
                        struct slurmdl_error *err)
{
    *f = (struct metrics_file){ .fd = -1, .folder = -1 };
    if (strlen (dir) + strlen (stem) > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", dir);
    }
    errno = 0;
    if (blank_make (&f->blank, about, f->columns) == 0
        && create_metrics_file (f, dir, folder, stem, tmp) == 0) {
        metrics_file_keep_new (f);
        return 0;
    }
    errno = errno ? errno : EIO; /* HDF5 does not set errno */
    close_file (f);
    return errorf (err, "%s: cannot create a metrics file: %s", dir, strerror (errno));
}

int metrics_file_create (struct metrics_file *f, const char *dir, int folder, const char *tmp,
                         const struct metrics_file_about *about, struct slurmdl_error *err)
{
    return create_file (f, dir, folder, "metrics", tmp, about, err);
}

/* A spare file was created before its trial was known. */
static int write_number (struct metrics_file *f, uint64_t at)
{
    f->dirty += sizeof (uint64_t);
    return io_write_at (f->fd, f->blank.image + at, sizeof (uint64_t), (off_t)at);
}

int metrics_file_move (struct metrics_file *f, const char *dir, int folder,
                       const struct metrics_file_about *about)
{
    int to = -1;

    if (snprintf (f->path, sizeof (f->path), "%s/metrics.h5", dir) >= (int)sizeof (f->path) - 8
        || blank_number (&f->blank, about) < 0 || write_number (f, f->blank.trial) < 0
        || write_number (f, f->blank.attempt) < 0 || (to = fcntl (folder, F_DUPFD_CLOEXEC, 0)) < 0
        || renameat (f->folder, f->tmp, to, metrics_file_name (f)) < 0)
        return inside_close (to, -1);
    close (f->folder);
    f->folder = to;
    f->held = false;
    *f->tmp = '\0';
    metrics_file_is_named (f);
    return 0;
}

int metrics_file_create_as (struct metrics_file *f, const char *dir, int folder, const char *stem,
                            const struct metrics_file_about *about, struct slurmdl_error *err)
{
    if (create_file (f, dir, folder, stem, NULL, about, err) < 0)
        return -1;
    if (metrics_file_sync (f) == 0)
        return 0;
    errorf (err, "%s: cannot write: %s", f->path, strerror (errno));
    if (*f->tmp)
        unlinkat (f->folder, f->tmp, 0);
    close_file (f);
    return -1;
}

static uint64_t room_for (const struct column *c, uint64_t n)
{
    uint64_t room = c->room;

    while (room - c->n < n)
        room *= ROOM_GROWTH;
    return room;
}

/* Make room for 'more' records in each column. */
static int extend_columns (struct metrics_file *f, const uint64_t *more)
{
    uint64_t rooms[COLUMNS];
    bool enough = true;

    for (int i = 0; i < COLUMNS; i++) {
        rooms[i] = room_for (&f->columns[i], more[i]);
        enough = enough && rooms[i] == f->columns[i].room;
    }
    if (enough)
        return 0;
    if (f->work && metrics_file_end_work (f) == 0)
        return extend_columns (f, more); /* the finished work may have made room */
    return metrics_file_replace (f, rooms, NULL, 0);
}

int metrics_file_add_names (struct metrics_file *f, const char (*names)[NAME_SIZE], uint64_t n)
{
    if (extend_columns (f, (uint64_t[COLUMNS]){ n }) < 0)
        return -1;
    return metrics_file_append (f, &f->names, names, n);
}

int metrics_file_add_rows (struct metrics_file *f, const struct row *rows, uint64_t n)
{
    if (extend_columns (f, (uint64_t[COLUMNS]){ 0, n }) < 0)
        return -1;
    return metrics_file_append (f, &f->rows, rows, n);
}

static int put_data (struct metrics_file *f, struct record *records, const void *const *data,
                     uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct record *r = &records[i];
        r->offset = f->bytes.n;
        r->data_crc = crc32c (0, data[i], r->bytes);
        r->crc = record_crc (r);
        if (metrics_file_put (f, &f->bytes, data[i], r->bytes) < 0)
            return -1;
        f->bytes.n += r->bytes;
    }
    return metrics_file_set_length (f, &f->bytes, f->bytes.n);
}

int metrics_file_add_records (struct metrics_file *f, struct record *records,
                              const void *const *data, uint64_t n)
{
    uint64_t bytes = 0;
    uint64_t before;

    for (uint64_t i = 0; i < n; i++)
        bytes += records[i].bytes;
    if (extend_columns (f, (uint64_t[COLUMNS]){ 0, 0, n, bytes }) < 0)
        return -1;
    before = f->bytes.n;
    if (put_data (f, records, data, n) == 0
        && metrics_file_append (f, &f->records, records, n) == 0)
        return 0;
    f->bytes.n = before; /* the next attempt overwrites the data */
    return -1;
}

int metrics_file_replace_rows (struct metrics_file *f, const struct row *rows, uint64_t n)
{
    uint64_t rooms[COLUMNS];

    metrics_file_rooms (f, rooms);
    while (rooms[1] < n)
        rooms[1] *= ROOM_GROWTH;
    return metrics_file_replace (f, rooms, rows, n);
}

/* Name an unnamed file only after everything in it is synced. */
static int sync_columns (struct metrics_file *f)
{
    if (!*f->tmp)
        return f->dirty ? fdatasync (f->fd) : 0;
    if (f->dirty && fsync (f->fd) < 0)
        return -1;
    if (f->held)
        return 0;
    if (metrics_file_first_name (f, f->tmp) < 0)
        return -1;
    *f->tmp = '\0';
    return 0;
}

/* Nobody would ever see what is written to a removed file. */
static bool is_removed (const struct metrics_file *f)
{
    struct stat st;

    return fstat (f->fd, &st) == 0 && st.st_nlink == 0;
}

/* After a failed sync, the kernel may consider the lost pages written, so only a
 * new file is safe.
 */
int metrics_file_sync (struct metrics_file *f)
{
    uint64_t rooms[COLUMNS];

    metrics_file_end_work (f); /* on failure the file is suspect */
    f->suspect |= is_removed (f);
    metrics_file_rooms (f, rooms);
    if (f->suspect && (f->held || metrics_file_replace (f, rooms, NULL, 0) < 0))
        return -1;
    f->suspect = sync_columns (f) < 0;
    if (f->suspect)
        return -1;
    f->dirty = 0;
    if (f->fresh && link_sync_folder (f->folder) < 0)
        return -1;
    f->fresh = false;
    metrics_file_kept_synced (f);
    return 0;
}

int metrics_file_close (struct metrics_file *f)
{
    uint64_t waste = 0;
    uint64_t exact[COLUMNS];
    int rv = 0;

    if (f->fd < 0)
        return 0;
    metrics_file_end_work (f);
    for (int i = 0; i < COLUMNS; i++) {
        const struct column *c = &f->columns[i];
        exact[i] = c->n;
        waste += (c->room - c->n) * c->size;
    }
    /* a failure here loses nothing: the old file is good */
    if (waste <= WASTE_MAX || metrics_file_replace (f, exact, NULL, 0) < 0)
        rv = metrics_file_sync (f);
    close_file (f);
    return rv;
}

int metrics_file_tend (struct metrics_file *f, bool sync, atomic_uint *wakeups)
{
    int rv = metrics_file_is_done (f) ? metrics_file_end_work (f) : 0;

    if (rv < 0 || f->work)
        return rv;
    if (*f->tmp)
        return metrics_file_sync (f);
    if (metrics_file_needs_room (f))
        metrics_file_begin_growth (f, wakeups);
    else if (sync && f->dirty && metrics_file_begin_sync (f, wakeups) < 0)
        return metrics_file_sync (f);
    return 0;
}
