/* SPDX-License-Identifier: Apache-2.0 */
/* Verify, find and restore checkpoints. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/crc32c.h"
#include "runtime/error.h"
#include "runtime/io.h"
#include "runtime/manifest.h"
#include "runtime/memory.h"

enum { CHUNK = 4 << 20 };

/* ---- verify ---- */

static bool data_fits (int fd, const struct manifest_row *row, void *buf)
{
    uint32_t crc = 0;

    for (uint64_t at = 0; at < row->bytes; at += CHUNK) {
        size_t n = row->bytes - at < CHUNK ? (size_t)(row->bytes - at) : CHUNK;
        if (io_read_at (fd, buf, n, (off_t)(row->offset + at)) < 0)
            return false;
        crc = crc32c (crc, buf, n);
    }
    return crc == row->crc;
}

static bool all_data_fits (int fd, const struct manifest *m)
{
    void *buf = malloc (CHUNK);
    bool fits = buf != NULL;

    for (hsize_t i = 0; fits && i < m->n; i++)
        fits = data_fits (fd, &m->rows[i], buf);
    free (buf);
    return fits;
}

/* The manifest of a checkpoint all of which is right; free m->rows. */
static int
verify (const char *path, struct manifest *m, struct slurmdl_error *err)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    bool whole;

    *m = (struct manifest){ 0 };
    if (fd < 0)
        return errorf (err, "%s: %s", path, strerror (errno));
    whole = manifest_read (fd, m) == 0 && all_data_fits (fd, m);
    close (fd);
    if (whole)
        return 0;
    free (m->rows);
    m->rows = NULL;
    errno = EBADMSG;
    return errorf (err, "%s: is no checkpoint, or is damaged", path);
}

int slurmdl_checkpoint_verify (const char *path,
                               int64_t *step,
                               struct slurmdl_error *err)
{
    struct manifest m;

    if (verify (path, &m, err) < 0)
        return -1;
    *step = m.step;
    free (m.rows);
    return 0;
}

/* ---- find ---- */

struct candidate {
    int64_t step;
    long attempt;
};

struct candidates {
    struct candidate *list;
    size_t n;
};

static int add_candidate (struct candidates *c, int64_t step, long attempt)
{
    struct candidate *list = realloc (c->list, (c->n + 1) * sizeof (*list));

    if (!list)
        return -1;
    c->list = list;
    list[c->n++] = (struct candidate){ step, attempt };
    return 0;
}

static void add_attempt (struct candidates *c,
                         const char *dir,
                         long attempt,
                         int64_t max_step)
{
    char path[PATH_MAX];
    struct dirent *e;
    char *end;
    DIR *d;

    snprintf (path, sizeof (path), "%s/a.%ld/ckpt", dir, attempt);
    if (!(d = opendir (path)))
        return;
    while ((e = readdir (d))) {
        int64_t step = strtoll (e->d_name, &end, 10);
        if (end != e->d_name && !strcmp (end, ".h5") && step <= max_step)
            add_candidate (c, step, attempt);
    }
    closedir (d);
}

static void
add_attempts (struct candidates *c, const char *dir, int64_t max_step)
{
    DIR *d = opendir (dir);
    struct dirent *e;

    if (!d)
        return;
    while ((e = readdir (d)))
        if (!strncmp (e->d_name, "a.", 2) && atol (e->d_name + 2) > 0)
            add_attempt (c, dir, atol (e->d_name + 2), max_step);
    closedir (d);
}

static bool
before (const struct candidate *a, const struct candidate *b, long prefer)
{
    if (a->step != b->step)
        return a->step > b->step;
    if ((a->attempt == prefer) != (b->attempt == prefer))
        return a->attempt == prefer;
    return a->attempt > b->attempt;
}

/* Take the best one that is left out of the list. */
static struct candidate take_best (struct candidates *c, long prefer)
{
    size_t best = 0;
    struct candidate taken;

    for (size_t i = 1; i < c->n; i++)
        if (before (&c->list[i], &c->list[best], prefer))
            best = i;
    taken = c->list[best];
    c->list[best] = c->list[--c->n];
    return taken;
}

/* Path of the newest that verifies, with its manifest; NULL with ENOENT. */
static char *
find (const char *dir, int64_t max_step, long prefer, struct manifest *m)
{
    struct candidates c = { 0 };
    char path[PATH_MAX];
    char *found = NULL;

    add_attempts (&c, dir, max_step);
    while (c.n > 0 && !found) {
        struct candidate best = take_best (&c, prefer);
        snprintf (path,
                  sizeof (path),
                  "%s/a.%ld/ckpt/%08lld.h5",
                  dir,
                  best.attempt,
                  (long long)best.step);
        if (verify (path, m, NULL) == 0 && m->step == best.step)
            found = strdup (path);
    }
    free (c.list);
    if (!found)
        errno = ENOENT;
    return found;
}

char *slurmdl_checkpoint_find (const char *dir,
                               int64_t max_step,
                               long prefer,
                               int64_t *step)
{
    struct manifest m = { 0 };
    char *path = find (dir, max_step, prefer, &m);

    *step = m.step;
    free (m.rows);
    return path;
}

/* ---- restore ---- */

static const struct manifest_row *find_row (const struct manifest *m,
                                            const char *name)
{
    for (hsize_t i = 0; i < m->n; i++)
        if (!strcmp (m->rows[i].name, name))
            return &m->rows[i];
    return NULL;
}

static int compare (const struct slurmdl *run,
                    const struct manifest *m,
                    const char *path,
                    struct slurmdl_error *err)
{
    for (size_t i = 0; i < run->nregions; i++) {
        const struct region *r = &run->regions[i];
        const struct manifest_row *row = find_row (m, r->name);
        if (row && row->type == r->type && row->ndims == (uint32_t)r->ndims
            && !memcmp (row->dims, r->dims, sizeof (r->dims)))
            continue;
        errno = EINVAL;
        return errorf (err,
                       "%s: '%s' %s: the checkpoint is of another model; "
                       "remove it, or restore what it holds",
                       path,
                       r->name,
                       row ? "has another type or shape" : "is missing");
    }
    return 0;
}

static int fill (int fd, const struct region *r, const struct manifest_row *row)
{
    const struct memory_ops *ops = memory_ops_of (r->data);
    void *host = ops ? malloc (r->bytes + 1) : r->data;
    int rv = host ? io_read_at (fd, host, r->bytes, (off_t)row->offset) : -1;

    if (ops && rv == 0)
        rv = ops->to_device (r->data, host, r->bytes);
    if (ops)
        free (host);
    return rv;
}

static int fill_all (const struct slurmdl *run,
                     const struct manifest *m,
                     const char *path,
                     struct slurmdl_error *err)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    int rv = fd < 0 ? -1 : 0;

    for (size_t i = 0; rv == 0 && i < run->nregions; i++)
        rv = fill (fd, &run->regions[i], find_row (m, run->regions[i].name));
    if (rv < 0)
        errorf (err, "%s: cannot read: %s", path, strerror (errno));
    if (fd >= 0)
        close (fd);
    return rv;
}

/* The checkpoint of another trial that this one is to begin with: the worker
 * names an attempt's folder, TRIAL/a.K, and the length there.
 */
static char *find_other (const struct slurmdl *run, struct manifest *m)
{
    const char *dir = getenv ("DL_CHECKPOINT_DIR");
    const char *length = getenv ("DL_CHECKPOINT_LENGTH");
    const char *slash = dir ? strrchr (dir, '/') : NULL;
    char *trial, *path = NULL;

    if (!slash || !length || strncmp (slash, "/a.", 3)
        || !(trial = strndup (dir, (size_t)(slash - dir))))
        return NULL;
    if (strcmp (trial, run->trial_dir))
        path = find (trial, strtoll (length, NULL, 10), atol (slash + 3), m);
    free (trial);
    return path;
}

/* The newest of this trial, or the other's if that is newer. */
static char *find_newest (const struct slurmdl *run, struct manifest *m)
{
    const char *prefer = getenv ("DL_CHECKPOINT_ATTEMPT");
    struct manifest other = { 0 };
    char *theirs = find_other (run, &other);
    char *path =
        find (run->trial_dir, run->length, prefer ? atol (prefer) : 0, m);

    if (theirs && (!path || m->step < other.step)) {
        free (path);
        free (m->rows);
        *m = other;
        return theirs;
    }
    free (theirs);
    free (other.rows);
    return path;
}

int slurmdl_restore (struct slurmdl *run,
                     int64_t *step,
                     struct slurmdl_error *err)
{
    struct manifest m = { 0 };
    char *path;
    int rv = -1;

    if (err)
        *err->text = '\0';
    if (!(path = find_newest (run, &m)))
        return 0;
    if (compare (run, &m, path, err) == 0
        && fill_all (run, &m, path, err) == 0) {
        *step = m.step;
        rv = 1;
    }
    int e = errno;
    free (m.rows);
    free (path);
    errno = e;
    return rv;
}
