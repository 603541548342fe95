/* SPDX-License-Identifier: Apache-2.0 */
/* Write results.h5. */
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

#include "launcher/sweep/columns.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/metric_rows.h"
#include "launcher/sweep/old_results.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/sys/publish.h"
#include "runtime/base/error.h"
#include "runtime/storage/h5.h"
#include "runtime/storage/inside.h"

/* Before the seal: what the file shows, for who asks that only. */
struct made {
    char magic[8];
    uint64_t changes; /* of the sweep */
    uint64_t damaged; /* trials */
};
static const char made_magic[8] = "SLDLMADE";

enum { BLOCK = 1 << 20, TEXT_MOST = 256 };

/* The file is made in memory; HDF5 wants a name that no file has. */
static const char no_file[] = "/dev/null/results.h5";

static hid_t access_memory (void)
{
    hid_t list = h5_access ();

    H5Pset_fapl_core (list, BLOCK, 0);
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

/* Bytes of a text that go into the file, without half a character. */
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

static void put_cell (char *to, enum column_type type, const struct cell *cell)
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
    char *data = calloc ((size_t)s->ntrials + 1, size);
    int rv = -1;

    if (data) {
        for (long n = 1; n <= s->ntrials; n++) {
            struct cell cell = column_cell (c, s, n);
            put_cell (data + (size_t)(n - 1) * size, c->type, &cell);
        }
        rv = write_dataset (group, c->name, type, (size_t)s->ntrials, data);
    }
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

static int write_rows (hid_t file, const struct rows *r)
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
                   || h5_write_int (file, "smaller_is_better", e->search.smaller_is_better) < 0
                   || h5_write_text (file, "state", sweep_state_name (s->state)) < 0
                   || h5_write_int (file, "entries", s->log ? log_length (s->log) : 0) < 0
                   || h5_write_real (file, "created", s->created) < 0
               ? -1
               : 0;
}

/* ---- the file ---- */

static int fill (hid_t file, const struct sweep *s, const struct columns *columns,
                 const struct rows *rows)
{
    return write_about (file, s) < 0 || write_group (file, "trials", false, s, columns) < 0
                   || write_group (file, "hyperparameters", true, s, columns) < 0
                   || write_rows (file, rows) < 0 || H5Fflush (file, H5F_SCOPE_GLOBAL) < 0
               ? -1
               : 0;
}

/* The bytes of the file and its seal; the caller frees them. */
static char *image_of (hid_t file, const struct made *made, size_t *size)
{
    ssize_t n = H5Fget_file_image (file, NULL, 0);
    struct seal seal;
    char *buf;

    if (n <= 0 || !(buf = malloc ((size_t)n + sizeof (*made) + sizeof (seal))))
        return NULL;
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
    if (file >= 0 && fill (file, s, columns, rows) == 0)
        buf = image_of (file, &made, size);
    if (file >= 0)
        H5Fclose (file);
    H5Pclose (access);
    return buf;
}

static int write_new (const struct sweep *s, const char *path, struct rows *old,
                      struct slurmdl_error *err)
{
    struct columns columns = { 0 };
    struct rows rows = { 0 };
    size_t size = 0;
    char *buf = NULL;
    int rv = rows_read (&rows, s, old->ntrials ? old : NULL);

    rows_destroy (old);
    if (rv == 0 && columns_create (&columns, s) == 0)
        buf = make_image (s, &columns, &rows, &size);
    if (buf) {
        rv = publish_replace (path, buf, size, err);
        if (rv == 0 && rows.damaged > 0) {
            errorf (err, "%s", rows.damage.text);
            rv = 1;
        }
    } else
        rv = errorf (err, "%s: cannot be made: out of memory", path);
    int e = errno;
    free (buf);
    rows_destroy (&rows);
    columns_destroy (&columns);
    errno = e;
    return rv;
}

int results_write (const struct sweep *s, const char *path, struct slurmdl_error *err)
{
    struct rows old;
    struct h5_quiet q;
    int rv;

    h5_quiet_begin (&q);
    old_results_read (&old, s, path);
    rv = write_new (s, path, &old, err);
    h5_quiet_end (&q);
    return rv;
}

/* ---- whether it is whole ---- */

static void results_path (char *path, size_t size, const struct sweep *s)
{
    snprintf (path, size, "%s/results.h5", s->dir);
}

/* 1, 0 if there is no file, -1 if results_write() did not finish it. */
static int read_made (struct made *made, const struct sweep *s)
{
    struct {
        struct made made;
        struct seal seal;
    } end;
    char path[PATH_MAX];
    struct stat st;
    int fd;
    int rv = -1;

    results_path (path, sizeof (path), s);
    if ((fd = inside_open (path, O_RDONLY, 0, &st)) < 0)
        return errno == ENOENT ? 0 : -1;
    if (S_ISREG (st.st_mode)
        && pread (fd, &end, sizeof (end), st.st_size - (off_t)sizeof (end)) == (ssize_t)sizeof (end)
        && !memcmp (end.made.magic, made_magic, sizeof (made_magic))
        && !memcmp (end.seal.magic, seal_magic, sizeof (seal_magic))) {
        *made = end.made;
        rv = 1;
    }
    close (fd);
    return rv;
}

bool results_are_stale (const struct sweep *s)
{
    struct made made;
    int rv = sweep_has_ended (s) ? read_made (&made, s) : -1;

    return rv == 0 || (rv == 1 && made.changes != (uint64_t)s->changes);
}

long results_damaged (const struct sweep *s)
{
    struct made made;

    return read_made (&made, s) == 1 ? (long)made.damaged : 0;
}

/* The superuser leaves others' files alone. */
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
    if (may_write (s) && results_write (s, path, &why) >= 0)
        return 0;
    return errorf (err,
                   "%s does not show the end of the experiment, as its last "
                   "writer died; 'dl export --format=h5' makes a whole one%s%s",
                   path, *why.text ? ": " : "", why.text);
}
