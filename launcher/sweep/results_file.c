/* SPDX-License-Identifier: Apache-2.0 */
/* Write results.h5, reusing the metrics of an older one. */
#include "launcher/sweep/results_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/columns.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/error.h"
#include "runtime/storage/h5.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"

/* ---- an older results.h5 ---- */

enum { RESULTS_VERSION = 1 };

/* A checksum behind the end of the HDF5 file, where libhdf5 ignores it.  Check it before opening a
 * file, because libhdf5 crashes on damaged ones.
 */
struct seal {
    char magic[8];
    uint64_t xxh64; /* of the HDF5 file */
};

static const char seal_magic[8] = "SLDLRES1";

/* Do not read a larger old file; write a new one from scratch. */
static const size_t RESULTS_MAX = (size_t)8 << 30;

enum { SUM_BLOCK = 1 << 20 };

/* The types of texts with so many bytes, and of struct metric_row; release them with H5Tclose(). */
static hid_t results_text_type (size_t size)
{
    hid_t t = H5Tcopy (H5T_C_S1);

    H5Tset_size (t, size ? size : 1);
    H5Tset_strpad (t, H5T_STR_NULLPAD);
    H5Tset_cset (t, H5T_CSET_UTF8);
    return t;
}

static hid_t results_row_type (void)
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

/* Check the type first: libhdf5 crashes when it converts from types that somebody made up. */
static bool dataset_has_type (hid_t dataset, hid_t type)
{
    hid_t stored = H5Dget_type (dataset);
    bool same = stored >= 0 && H5Tequal (stored, type) > 0;

    if (stored >= 0)
        H5Tclose (stored);
    return same;
}

/* Read a one-dimensional dataset whose records have the type.  The file may claim any number of
 * them: there cannot be more than fit into it.
 */
static void *read_h5_dataset (hid_t file, const char *name, hid_t type, hsize_t *n)
{
    hid_t d = h5_open_inside (file, name);
    hid_t space = d >= 0 ? H5Dget_space (d) : -1;
    hsize_t most = 0;
    void *buf = NULL;

    if (d >= 0 && dataset_has_type (d, type) && H5Sget_simple_extent_ndims (space) == 1
        && H5Sget_simple_extent_dims (space, n, NULL) == 1 && H5Fget_filesize (file, &most) >= 0
        && *n <= most / H5Tget_size (type)) {
        buf = xmalloc (*n * H5Tget_size (type) + 1);
        if (H5Dread (d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buf) < 0) {
            free (buf);
            buf = NULL;
        }
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

/* Experiments of the same name differ in the time of their creation. */
static bool file_is_of (const struct sweep *s, hid_t file)
{
    return real_attribute (file, "slurmdl_version") == RESULTS_VERSION
           && real_attribute (file, "created") == s->created;
}

/* A checksum is no signature: anyone who can write to the folder may have made it. */
static bool rows_are_sane (const struct rows *r)
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

    r->list = read_h5_dataset (file, "metrics", row, &n[0]);
    r->names = read_h5_dataset (file, "names", name, &n[1]);
    r->covered = read_h5_dataset (file, "covered", H5T_STD_I64LE, &n[2]);
    r->n = (size_t)n[0];
    r->nnames = (size_t)n[1];
    r->ntrials = (long)n[2];
    H5Tclose (row);
    H5Tclose (name);
    return rows_are_sane (r) ? 0 : -1;
}

/* XXH64 of the file's first bytes; 0 if they cannot be read. */
static uint64_t sum_of (int fd, off_t size)
{
    XXH64_state_t *sum = XXH64_createState ();
    char *buf = xmalloc (SUM_BLOCK);
    uint64_t rv = 0;
    off_t at = 0;

    if (!sum)
        out_of_memory ();
    XXH64_reset (sum, 0);
    while (at < size) {
        size_t n = size - at < SUM_BLOCK ? (size_t)(size - at) : SUM_BLOCK;
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

/* The file cannot change while it is read: it is only ever replaced by rename(2). */
static int read_sealed (struct rows *r, const struct sweep *s, int fd)
{
    hid_t access = h5_access ();
    char opened[32];
    hid_t file;
    int rv = -1;

    snprintf (opened, sizeof (opened), "/proc/self/fd/%d", fd);
    if ((file = H5Fopen (opened, H5F_ACC_RDONLY, access)) >= 0) {
        rv = file_is_of (s, file) ? fill_old (r, file) : -1;
        H5Fclose (file);
    }
    H5Pclose (access);
    return rv;
}

/* Read the rows of the file at 'path'; none if it is damaged or another sweep's, or others may have
 * written it (h5_may_parse()).  rows_destroy() in any case.
 */
static void old_results_read (struct rows *r, const struct sweep *s, const char *path)
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

/* ---- writing ---- */

/* Before the seal: what the file contains, for readers that need only that. */
struct made {
    char magic[8];
    uint64_t changes; /* of the sweep */
    uint64_t damaged; /* trials */
};
static const char made_magic[8] = "SLDLMADE";

enum { IMAGE_BLOCK = 1 << 20, TEXT_MOST = 256 };

/* HDF5 creates the file in memory, but insists on a name, which must not exist. */
static const char no_file[] = "/dev/null/results.h5";

static hid_t access_memory (void)
{
    hid_t list = h5_access ();

    H5Pset_fapl_core (list, IMAGE_BLOCK, 0);
    return list;
}

/* ---- datasets ---- */

static int write_dataset (hid_t where, const char *name, hid_t type, size_t n, const void *data)
{
    hsize_t dims[1] = { n };
    hid_t space = H5Screate_simple (1, dims, NULL);
    hid_t d = H5Dcreate2 (where, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int rv = d < 0 ? -1 : 0;

    if (rv == 0 && n > 0 && H5Dwrite (d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        rv = -1;
    if (d >= 0)
        H5Dclose (d);
    H5Sclose (space);
    return rv;
}

/* Bytes of a text that go into the file; does not cut a character in two. */
static size_t text_length (const char *text)
{
    size_t n = text ? strlen (text) : 0;

    if (n <= TEXT_MOST)
        return n;
    for (n = TEXT_MOST; n > 0 && (text[n] & 0xC0) == 0x80; n--)
        ;
    return n;
}

static size_t longest_text (const struct sweep *s, const struct result_column *c)
{
    size_t longest = 1;

    for (long n = 1; n <= s->ntrials; n++) {
        size_t length = text_length (column_cell (c, s, n).text);
        longest = length > longest ? length : longest;
    }
    return longest;
}

static void store_cell (char *to, enum column_type type, const struct cell *cell)
{
    switch (type) {
    case COLUMN_INT:
        memcpy (to, &cell->integer, sizeof (cell->integer));
        break;
    case COLUMN_REAL:
        memcpy (to, &cell->real, sizeof (cell->real));
        break;
    case COLUMN_TEXT:
        if (cell->text)
            memcpy (to, cell->text, text_length (cell->text));
        break;
    }
}

static int write_column (hid_t group, const struct sweep *s, const struct result_column *c)
{
    bool text = c->type == COLUMN_TEXT;
    size_t size = text ? longest_text (s, c) : 8;
    hid_t type = text ? results_text_type (size)
                      : H5Tcopy (c->type == COLUMN_INT ? H5T_STD_I64LE : H5T_IEEE_F64LE);
    char *data = xcalloc ((size_t)s->ntrials + 1, size);
    int rv;

    for (long n = 1; n <= s->ntrials; n++) {
        struct cell cell = column_cell (c, s, n);
        store_cell (data + (size_t)(n - 1) * size, c->type, &cell);
    }
    rv = write_dataset (group, c->name, type, (size_t)s->ntrials, data);
    free (data);
    H5Tclose (type);
    return rv;
}

static int write_group (hid_t file, const char *name, bool hparams, const struct sweep *s,
                        const struct columns *columns)
{
    hid_t group = H5Gcreate2 (file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int rv = group < 0 ? -1 : 0;

    for (size_t i = 0; rv == 0 && i < columns->n; i++)
        if (columns->list[i].hparam == hparams)
            rv = write_column (group, s, &columns->list[i]);
    if (group >= 0)
        H5Gclose (group);
    return rv;
}

static int write_metric_rows (hid_t file, const struct rows *r)
{
    hid_t row = results_row_type ();
    hid_t name = results_text_type (ROW_NAME_SIZE);
    int rv = 0;

    if (write_dataset (file, "metrics", row, r->n, r->list) < 0
        || write_dataset (file, "names", name, r->nnames, r->names) < 0
        || write_dataset (file, "covered", H5T_STD_I64LE, (size_t)r->ntrials, r->covered) < 0)
        rv = -1;
    H5Tclose (row);
    H5Tclose (name);
    return rv;
}

static int write_about (hid_t file, const struct sweep *s)
{
    const struct experiment *e = s->exp;

    return h5_write_int (file, "slurmdl_version", RESULTS_VERSION) < 0
                   || h5_write_text (file, "experiment", e->name) < 0
                   || h5_write_text (file, "metric", sweep_metric (s, 0)) < 0
                   || h5_write_int (file, "smaller_is_better", e->search->config.smaller_is_better)
                          < 0
                   || h5_write_text (file, "state", sweep_state_name (s->state)) < 0
                   || h5_write_int (file, "entries", s->log ? log_length (s->log) : 0) < 0
                   || h5_write_real (file, "created", s->created) < 0
               ? -1
               : 0;
}

/* ---- the file ---- */

static int write_tables (hid_t file, const struct sweep *s, const struct columns *columns,
                         const struct rows *rows)
{
    return write_about (file, s) < 0 || write_group (file, "trials", false, s, columns) < 0
                   || write_group (file, "hyperparameters", true, s, columns) < 0
                   || write_metric_rows (file, rows) < 0 || H5Fflush (file, H5F_SCOPE_GLOBAL) < 0
               ? -1
               : 0;
}

/* The bytes of the file and its seal; the caller frees them. */
static char *sealed_image (hid_t file, const struct made *made, size_t *size)
{
    ssize_t n = H5Fget_file_image (file, NULL, 0);
    struct seal seal;
    char *buf;

    if (n <= 0)
        return NULL;
    buf = xmalloc ((size_t)n + sizeof (*made) + sizeof (seal));
    if (H5Fget_file_image (file, buf, (size_t)n) != n) {
        free (buf);
        return NULL;
    }
    memcpy (buf + n, made, sizeof (*made));
    n += (ssize_t)sizeof (*made);
    memcpy (seal.magic, seal_magic, sizeof (seal_magic));
    seal.xxh64 = XXH64 (buf, (size_t)n, 0);
    memcpy (buf + n, &seal, sizeof (seal));
    *size = (size_t)n + sizeof (seal);
    return buf;
}

static char *make_image (const struct sweep *s, const struct columns *columns,
                         const struct rows *rows, size_t *size)
{
    hid_t access = access_memory ();
    hid_t file = H5Fcreate (no_file, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    struct made made = { .changes = (uint64_t)s->changes, .damaged = (uint64_t)rows->damaged };
    char *buf = NULL;

    memcpy (made.magic, made_magic, sizeof (made_magic));
    if (file >= 0 && write_tables (file, s, columns, rows) == 0)
        buf = sealed_image (file, &made, size);
    if (file >= 0)
        H5Fclose (file);
    H5Pclose (access);
    return buf;
}

static enum results_outcome write_new (const struct sweep *s, const char *path, struct rows *old,
                                       struct slurmdl_error *err)
{
    struct columns columns = { 0 };
    struct rows rows = { 0 };
    size_t size = 0;
    char *buf;
    int rv;

    rows_read (&rows, s, old->ntrials ? old : NULL);
    rows_destroy (old);
    columns_create (&columns, s);
    buf = make_image (s, &columns, &rows, &size);
    if (buf) {
        rv = publish_replace (path, buf, size, err);
        if (rv == 0 && rows.damaged > 0) {
            errorf (err, "%s", rows.damage.text);
            rv = RESULTS_DAMAGED;
        }
    } else
        rv = errorf (err, "%s: cannot be created: HDF5 failed", path);
    int e = errno;
    free (buf);
    rows_destroy (&rows);
    columns_destroy (&columns);
    errno = e;
    return rv;
}

enum results_outcome results_write (const struct sweep *s, const char *path,
                                    struct slurmdl_error *err)
{
    struct rows old;
    struct h5_quiet q;
    enum results_outcome rv;

    h5_quiet_begin (&q);
    old_results_read (&old, s, path);
    rv = write_new (s, path, &old, err);
    h5_quiet_end (&q);
    return rv;
}

/* ---- whether the file is complete ---- */

static void results_path (char *path, size_t size, const struct sweep *s)
{
    snprintf (path, size, "%s/results.h5", s->dir);
}

enum made_state {
    MADE_UNFINISHED = -1, /* results_write() did not finish the file */
    MADE_ABSENT,
    MADE_WHOLE,
};

static enum made_state read_made (struct made *made, const struct sweep *s)
{
    struct {
        struct made made;
        struct seal seal;
    } end;
    char path[PATH_MAX];
    struct stat st;
    int fd;
    enum made_state state = MADE_UNFINISHED;

    results_path (path, sizeof (path), s);
    if ((fd = inside_open (path, O_RDONLY, 0, &st)) < 0)
        return errno == ENOENT ? MADE_ABSENT : MADE_UNFINISHED;
    if (S_ISREG (st.st_mode)
        && pread (fd, &end, sizeof (end), st.st_size - (off_t)sizeof (end)) == (ssize_t)sizeof (end)
        && !memcmp (end.made.magic, made_magic, sizeof (made_magic))
        && !memcmp (end.seal.magic, seal_magic, sizeof (seal_magic))) {
        *made = end.made;
        state = MADE_WHOLE;
    }
    close (fd);
    return state;
}

bool results_are_stale (const struct sweep *s)
{
    struct made made;
    enum made_state state = sweep_has_ended (s) ? read_made (&made, s) : MADE_UNFINISHED;

    return state == MADE_ABSENT || (state == MADE_WHOLE && made.changes != (uint64_t)s->changes);
}

long results_damaged (const struct sweep *s)
{
    struct made made;

    return read_made (&made, s) == MADE_WHOLE ? (long)made.damaged : 0;
}

/* root leaves other users' files alone. */
static bool may_write (const struct sweep *s)
{
    return geteuid () == s->owner || (geteuid () != 0 && access (s->dir, W_OK) == 0);
}

int results_renew (const struct sweep *s, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    char path[PATH_MAX];

    if (!results_are_stale (s))
        return 0;
    results_path (path, sizeof (path), s);
    if (may_write (s) && results_write (s, path, &why) != RESULTS_FAILED)
        return 0;
    return errorf (err,
                   "%s is incomplete, because its last writer died; 'dl "
                   "export --format=h5' writes a complete one%s%s",
                   path, *why.text ? ": " : "", why.text);
}
