/* SPDX-License-Identifier: Apache-2.0 */
/* Restore: find the existing checkpoints, and read the newest intact one and the
 * states in it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/device_memory.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_pool.h"
#include "runtime/checkpoint/fetch.h"
#include "runtime/metrics/metrics.h"
#include "runtime/run/run.h"
#include "runtime/run/session.h"
#include "runtime/storage/inside.h"

struct candidate {
    int64_t step;
    long attempt;
    bool other;  /* belongs to another trial */
    bool prefer; /* wins between equal steps */
    bool bad;    /* tried, and found damaged or not a file */
    char *path;
};

struct candidates {
    struct candidate *list;
    size_t n;
    int error;   /* errno of a folder that could not be listed */
    char *where; /* the folder, or NULL if out of memory */
};

static void add_candidate (struct candidates *c, const struct candidate *new, const char *dir)
{
    struct candidate *list = realloc (c->list, (c->n + 1) * sizeof (*list));
    struct candidate *at;

    if (!list) {
        c->error = ENOMEM;
        return;
    }
    c->list = list;
    at = &list[c->n];
    *at = *new;
    if (asprintf (&at->path, "%s/a.%ld/ckpt/%08lld.h5", dir, at->attempt, (long long)at->step) >= 0)
        c->n++;
    else
        c->error = ENOMEM;
}

static void no_folder (struct candidates *c, const char *path)
{
    if (c->error)
        return;
    c->error = errno;
    c->where = strdup (path);
}

/* The link exists but its target does not, as if a disk is not mounted. */
static bool is_dangling (const char *path)
{
    struct stat st;
    bool is = lstat (path, &st) == 0;

    errno = ENOENT;
    return is;
}

/* A folder that does not exist, or is not ours, contains no checkpoints. */
static DIR *open_candidates (struct candidates *c, const char *path)
{
    int fd = inside_open_any (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *d = fd < 0 ? NULL : fdopendir (fd);

    if (!d
        && (errno == ENOENT ? is_dangling (path)
                            : errno != ENOTDIR && errno != ELOOP && errno != EINVAL))
        no_folder (c, path);
    if (!d && fd >= 0)
        close (fd);
    return d;
}

static struct dirent *next_entry (struct candidates *c, DIR *d, const char *path)
{
    struct dirent *e;

    errno = 0;
    if (!(e = readdir (d)) && errno && errno != ENOENT)
        no_folder (c, path);
    return e;
}

static void add_attempt (struct candidates *c, const char *dir, const struct candidate *like,
                         int64_t max_step)
{
    struct candidate new = *like;
    char path[PATH_MAX];
    struct dirent *e;
    char *end;
    DIR *d;

    snprintf (path, sizeof (path), "%s/a.%ld/ckpt", dir, like->attempt);
    if (!(d = open_candidates (c, path)))
        return;
    while ((e = next_entry (c, d, path))) {
        new.step = strtoll (e->d_name, &end, 10);
        if (end != e->d_name && !strcmp (end, ".h5") && new.step <= max_step)
            add_candidate (c, &new, dir);
    }
    closedir (d);
}

/* Add the checkpoints of all attempts of a trial. */
static void add_attempts (struct candidates *c, const char *dir, int64_t max_step, long prefer,
                          bool other)
{
    struct candidate like = { .other = other };
    DIR *d = open_candidates (c, dir);
    struct dirent *e;

    if (!d)
        return;
    while ((e = next_entry (c, d, dir)))
        if (!strncmp (e->d_name, "a.", 2) && atol (e->d_name + 2) > 0) {
            like.attempt = atol (e->d_name + 2);
            like.prefer = like.attempt == prefer;
            add_attempt (c, dir, &like, max_step);
        }
    closedir (d);
}

/* Sort the newest first. */
static int by_worth (const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;

    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    if (x->other != y->other)
        return x->other ? 1 : -1;
    if (x->prefer != y->prefer)
        return x->prefer ? -1 : 1;
    return x->attempt > y->attempt ? -1 : x->attempt < y->attempt;
}

static void sort_candidates (struct candidates *c)
{
    if (c->n > 0)
        qsort (c->list, c->n, sizeof (*c->list), by_worth);
}

static void candidates_free (struct candidates *c)
{
    for (size_t i = 0; i < c->n; i++)
        free (c->list[i].path);
    free (c->list);
    free (c->where);
}

char *slurmdl_checkpoint_find (const char *dir, int64_t max_step, long prefer, int64_t *step)
{
    struct candidates c = { 0 };
    char *found = NULL;

    add_attempts (&c, dir, max_step, prefer, false);
    sort_candidates (&c);
    for (size_t i = 0; i < c.n && !found; i++)
        if (slurmdl_checkpoint_verify (c.list[i].path, step, NULL) == 0 && *step == c.list[i].step)
            found = strdup (c.list[i].path);
    candidates_free (&c);
    if (!found)
        errno = ENOENT;
    return found;
}

/* Add the checkpoint of another trial that this one starts from.  The worker names
 * the folder of an attempt, TRIAL/a.K, and its length.
 */
static void add_other (struct candidates *c, const struct slurmdl *run)
{
    const char *dir = getenv ("DL_CHECKPOINT_DIR");
    const char *length = getenv ("DL_CHECKPOINT_LENGTH");
    const char *slash = dir ? strrchr (dir, '/') : NULL;
    char *trial;

    if (!slash || !length || strncmp (slash, "/a.", 3)
        || !(trial = strndup (dir, (size_t)(slash - dir))))
        return;
    if (strcmp (trial, run->trial_dir))
        add_attempts (c, trial, strtoll (length, NULL, 10), atol (slash + 3), true);
    free (trial);
}

/* List candidates by name without reading them, newest first.  Returns -1 if an
 * existing folder cannot be listed, because it may contain checkpoints.
 */
static int candidates_find (struct candidates *c, const struct slurmdl *run,
                            struct slurmdl_error *err)
{
    const char *prefer = getenv ("DL_CHECKPOINT_ATTEMPT");
    int64_t most = environment_number ("DL_LENGTH_KNOWN", 1) ? run->length : INT64_MAX;

    add_attempts (c, run->trial_dir, most, prefer ? atol (prefer) : 0, false);
    add_other (c, run);
    sort_candidates (c);
    if (!c->error)
        return 0;
    errno = c->error;
    return errorf (err, "%s: cannot look for checkpoints: %s", c->where ? c->where : run->trial_dir,
                   strerror (c->error));
}

/* ---- one file into the protected memory ---- */

static bool region_matches (const struct region *r, const char *pattern)
{
    return !r->state && (!pattern || fnmatch (pattern, r->name, 0) == 0);
}

static int compare_regions (const struct slurmdl *run, const struct slurmdl_checkpoint *c,
                            const char *pattern, struct slurmdl_error *err)
{
    for (size_t i = 0; i < run->regions.n; i++) {
        const struct region *r = &run->regions.list[i];
        const struct manifest_row *row = manifest_find (&c->m, r->name);
        if (!region_matches (r, pattern)
            || (row && row->type == r->type && row->ndims == (uint32_t)r->slab.ndims
                && !memcmp (row->dims, r->dims, sizeof (r->dims))))
            continue;
        errno = EINVAL;
        return errorf (err,
                       "%s: '%s' %s: the checkpoint belongs to another model; remove it, or "
                       "restore what it contains",
                       c->path, r->name, row ? "has another type or shape" : "is missing");
    }
    return 0;
}

/* Fill device memory through host memory. */
static int fill_device (const struct slurmdl_checkpoint *c, const struct region *r,
                        const struct memory_ops *ops)
{
    struct fetch f = { .fd = c->fd, .m = &c->m };
    void *host = malloc (r->bytes);
    int rv = -1;
    int e;

    if (host && fetch_add (&f, manifest_find (&c->m, r->name), &r->slab, host) == 0
        && fetch_run (&f, thread_pool_size (THREAD_POOL_MAX), NULL) == 0)
        rv = ops->to_device (r->data, host, r->bytes);
    e = errno;
    fetch_free (&f);
    free (host);
    errno = e;
    return rv;
}

/* Verify all states as well, so that a damaged one does not appear later. */
static int add_states (struct fetch *f)
{
    int rv = 0;

    for (hsize_t i = 0; rv == 0 && i < f->m->n; i++)
        if (is_state (f->m->rows[i].name))
            rv = fetch_add_whole (f, &f->m->rows[i]);
    return rv;
}

static int add_wanted (struct fetch *f, const struct slurmdl *run, const char *pattern)
{
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < run->regions.n; i++) {
        const struct region *r = &run->regions.list[i];
        if (region_matches (r, pattern) && r->bytes && !memory_ops_of (r->data))
            rv = fetch_add (f, manifest_find (f->m, r->name), &r->slab, r->data);
    }
    return rv;
}

static int fill_all (const struct slurmdl *run, const struct slurmdl_checkpoint *c,
                     const char *pattern, bool states)
{
    struct fetch f = { .fd = c->fd, .m = &c->m };
    int rv = states ? add_states (&f) : 0;
    int e;

    if (rv == 0)
        rv = add_wanted (&f, run, pattern);
    if (rv == 0)
        rv = fetch_run (&f, thread_pool_size (THREAD_POOL_MAX), NULL);
    e = errno;
    fetch_free (&f);
    errno = e;
    for (size_t i = 0; rv == 0 && i < run->regions.n; i++) {
        const struct region *r = &run->regions.list[i];
        const struct memory_ops *ops =
            region_matches (r, pattern) && r->bytes ? memory_ops_of (r->data) : NULL;
        if (ops)
            rv = fill_device (c, r, ops);
    }
    return rv;
}

/* ---- restore ---- */

struct restore_source {
    const char *path;
    int64_t step;        /* negative: any step */
    const char *pattern; /* NULL: all regions */
    bool states;         /* verify the states as well */
};

/* A file removed since we listed it counts as if it had never existed.  A dangling
 * link does not.
 */
static bool is_gone (const char *path, int e)
{
    struct stat st;

    return (e == ENOENT || e == ESTALE) && lstat (path, &st) < 0
           && (errno == ENOENT || errno == ESTALE);
}

/* Whether the file itself is at fault.  Any other error comes from the disk or this
 * process, and says nothing about the file.
 */
static bool is_damage (int e)
{
    return e == EBADMSG || e == EPROTONOSUPPORT || e == EISDIR || e == ELOOP || e == ENOENT;
}

/* The result for one file, or for all of them.  RESTORE_NEXT: 'err' says why the
 * file cannot be used, but another one may work.  RESTORE_FAILED: it does not fit
 * (EINVAL), or the disk or this process failed; try no other file.  Ranks exchange
 * these values, and the smallest, which is the worst, counts.
 */
enum restore_verdict { RESTORE_FAILED = -1, RESTORE_NEXT, RESTORE_DONE };

static enum restore_verdict unreadable (const char *path, int e, bool *bad,
                                        struct slurmdl_error *err)
{
    bool gone = is_gone (path, e);

    *bad = !gone && is_damage (e);
    if (err && !*err->text) {
        if (e == EBADMSG)
            errorf (err, "%s: is damaged", path);
        else
            errorf (err, "%s: cannot read: %s", path, strerror (e));
    }
    errno = e;
    return *bad || gone ? RESTORE_NEXT : RESTORE_FAILED;
}

static void append_touched (struct slurmdl_error *err)
{
    static const char text[] = "; protected memory has parts of it";

    if (err && strlen (err->text) + sizeof (text) <= sizeof (err->text))
        strcat (err->text, text);
}

/* On RESTORE_DONE, '*from' is the open file.  On RESTORE_NEXT, '*bad' tells a
 * damaged file from one that has vanished.  Sets '*touched' once memory contains
 * parts of the file.
 */
static enum restore_verdict try_file (struct slurmdl *run, const struct restore_source *s,
                                      bool *bad, bool *touched, struct slurmdl_checkpoint **from,
                                      struct slurmdl_error *err)
{
    struct slurmdl_checkpoint *c = slurmdl_checkpoint_open (s->path, err);
    enum restore_verdict verdict = RESTORE_NEXT;

    *from = NULL;
    *bad = false;
    if (!c)
        return unreadable (s->path, errno, bad, err);
    if (s->step >= 0 && c->m.step != s->step) {
        *bad = true;
        errorf (err, "%s: has step %lld", s->path, (long long)c->m.step);
    } else if (compare_regions (run, c, s->pattern, err) < 0)
        verdict = RESTORE_FAILED;
    else if (fill_all (run, c, s->pattern, s->states) == 0)
        verdict = RESTORE_DONE;
    else {
        *touched |= run->regions.n > 0;
        verdict = unreadable (s->path, errno, bad, err);
        if (verdict == RESTORE_FAILED && *touched)
            append_touched (err);
    }
    if (verdict == RESTORE_DONE)
        *from = c;
    else
        slurmdl_checkpoint_close (c);
    return verdict;
}

static void note_restored (struct slurmdl *run, struct slurmdl_checkpoint *c, int64_t *step)
{
    slurmdl_checkpoint_close (run->from);
    run->from = c;
    *step = c->m.step;
}

/* List the names of bad files from 'i' on, as far as they fit.  Returns their number. */
enum { NAMES_SIZE = 768 };

static size_t name_bad (const struct slurmdl *run, const struct candidates *c, size_t i,
                        char list[NAMES_SIZE])
{
    size_t prefix = strlen (run->trial_dir);
    size_t used = 0, n = 0, more = 0;

    for (*list = '\0'; i < c->n; i++) {
        const char *path = c->list[i].path;
        const char *name = c->list[i].other ? path : path + prefix + 1;
        if (!c->list[i].bad)
            continue;
        n++;
        if (more || used + strlen (name) + 32 > NAMES_SIZE)
            more++;
        else
            used += (size_t)sprintf (list + used, "%s%s", used ? ", " : "", name);
    }
    if (more)
        sprintf (list + used, "%s%zu more", used ? " and " : "", more);
    return n;
}

/* Report the newer files that were skipped, because nothing else does.  'why' is
 * about the first.
 */
static void tell_skipped (const struct slurmdl *run, const struct candidates *c, const char *why,
                          struct slurmdl_error *err)
{
    char list[NAMES_SIZE];
    size_t first = 0;

    if (!*why)
        return;
    while (first < c->n && !c->list[first].bad)
        first++;
    if (name_bad (run, c, first + 1, list) > 0)
        errorf (err, "%.230s: skipped, and so are %s", why, list);
    else
        errorf (err, "%.1000s: skipped", why);
}

/* Do not start over in place of damaged checkpoints: that would throw away the
 * training done so far, while a backup may still have it.
 */
static enum restore_verdict none_left (const struct slurmdl *run, const struct candidates *c,
                                       bool touched, struct slurmdl_error *err)
{
    static const char what[] = "every checkpoint is damaged: put back copies "
                               "of them, or move them away to start from the beginning";
    char list[NAMES_SIZE];

    if (name_bad (run, c, 0, list) == 0)
        return RESTORE_NEXT;
    errno = EBADMSG;
    return errorf (err, "%s: %s%s (%s)", run->trial_dir, what,
                   touched ? "; protected memory has parts of them" : "", list);
}

/* File 'i' cannot be read for a reason that says nothing about the file itself.
 * Name the other unreadable files too, so that the user can fix everything at once.
 */
static void name_unreadable (const struct slurmdl *run, struct candidates *c, size_t i,
                             struct slurmdl_error *err)
{
    struct slurmdl_error why = *err;
    char list[NAMES_SIZE];
    int e = errno;

    if (e == EINVAL || e == ENOMEM)
        return;
    for (size_t k = 0; k < c->n; k++) {
        struct slurmdl_checkpoint *other =
            k > i ? slurmdl_checkpoint_open (c->list[k].path, NULL) : NULL;
        if (k > i)
            c->list[k].bad = !other && !is_gone (c->list[k].path, errno);
        slurmdl_checkpoint_close (other);
    }
    c->list[i].bad = false;
    if (name_bad (run, c, 0, list) > 0) {
        error_clear (err);
        errorf (err, "%.230s; nor can be read: %s", why.text, list);
    }
    errno = e;
}

/* Restore the newest readable checkpoint.  Returns RESTORE_NEXT if there is none. */
static enum restore_verdict try_newest (struct slurmdl *run, const char *pattern, bool states,
                                        struct slurmdl_checkpoint **from, struct slurmdl_error *err)
{
    struct slurmdl_error note = { "" };
    struct candidates c = { 0 };
    bool touched = false;
    enum restore_verdict verdict =
        candidates_find (&c, run, err) < 0 ? RESTORE_FAILED : RESTORE_NEXT;

    for (size_t i = 0; i < c.n && verdict == RESTORE_NEXT; i++) {
        struct restore_source s = { c.list[i].path, c.list[i].step, pattern, states };
        struct slurmdl_error why = { "" };
        verdict = try_file (run, &s, &c.list[i].bad, &touched, from, &why);
        if (verdict == RESTORE_FAILED) {
            name_unreadable (run, &c, i, &why);
            errorf (err, "%s", why.text);
        } else if (verdict == RESTORE_NEXT && c.list[i].bad)
            errorf (&note, "%s", why.text); /* keep the first message */
    }
    if (verdict == RESTORE_NEXT)
        verdict = none_left (run, &c, touched, err);
    int e = errno;
    if (verdict != RESTORE_FAILED)
        tell_skipped (run, &c, note.text, err);
    candidates_free (&c);
    errno = e;
    return verdict;
}

static enum restore_verdict restore_alone (struct slurmdl *run, int64_t *step,
                                           struct slurmdl_error *err)
{
    struct slurmdl_checkpoint *from = NULL;
    enum restore_verdict verdict = try_newest (run, NULL, true, &from, err);

    if (verdict == RESTORE_DONE)
        note_restored (run, from, step);
    return verdict;
}

/* ---- by all ranks ---- */

/* Rank 0 names a file, each rank tries it, and rank 0 announces the result. */
struct restore_offer {
    int64_t step;
    int32_t verdict; /* enum restore_verdict for the previous file */
    int32_t error;
    char text[sizeof (struct slurmdl_error)];
    char path[PATH_MAX]; /* empty: no more files */
};

struct outcome {
    int32_t verdict;
    int32_t error;
    int32_t bad;
    int32_t touched;
    char text[sizeof (struct slurmdl_error)];
};

static void outcome_name (char *buf, unsigned restore, const char *what, unsigned i)
{
    snprintf (buf, 64, "restore%u.%s%u", restore, what, i);
}

static void try_offer (struct slurmdl *run, const struct restore_offer *o, struct outcome *out,
                       struct slurmdl_checkpoint **from)
{
    struct slurmdl_error err = { "" };
    struct restore_source s = { o->path, o->step, NULL, true };
    bool bad, touched = false;

    out->verdict = try_file (run, &s, &bad, &touched, from, &err);
    out->error = out->verdict == RESTORE_FAILED ? errno : 0;
    out->bad = bad;
    out->touched = touched;
    memcpy (out->text, err.text, sizeof (out->text));
}

/* Combine the outcomes of all ranks: the worst counts. */
static int worst_outcome (struct slurmdl *run, const char *name, double extra, struct outcome *own,
                          struct slurmdl_error *err)
{
    for (long r = 1; r < run->size; r++) {
        struct outcome *theirs;
        size_t n;
        if (session_get (run->session, r, name, extra, (void **)&theirs, &n, err) < 0)
            return -1;
        own->bad |= theirs->bad;
        own->touched |= theirs->touched;
        if (theirs->verdict < own->verdict) {
            own->verdict = theirs->verdict;
            own->error = theirs->error;
            memcpy (own->text, theirs->text, sizeof (own->text));
        }
        free (theirs);
    }
    return 0;
}

enum { RESTORE_SECONDS = 3600 };

/* Collect the outcomes of offer 'i'.  If that ends the search, notify the ranks by
 * a last offer without a file.
 */
static int settle_offer (struct slurmdl *run, unsigned k, unsigned i, struct candidates *c,
                         struct restore_offer *o, struct outcome *out, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    char name[64];
    int rv;

    outcome_name (name, k, "outcome", i);
    rv = worst_outcome (run, name, RESTORE_SECONDS, out, err);
    if (rv < 0) {
        out->verdict = RESTORE_FAILED;
        out->error = errno;
        if (err)
            memcpy (out->text, err->text, sizeof (out->text));
    }
    o->verdict = out->verdict;
    o->error = out->error;
    memcpy (why.text, out->text, sizeof (why.text));
    if (o->verdict == RESTORE_FAILED && rv == 0) {
        errno = o->error;
        name_unreadable (run, c, i, &why);
    }
    memcpy (o->text, why.text, sizeof (o->text));
    if (o->verdict != RESTORE_NEXT) {
        *o->path = '\0';
        outcome_name (name, k, "offer", i + 1);
        session_put (run->session, name, o, sizeof (*o));
    }
    return rv;
}

/* Make the last offer, which has no file and says whether that is an error. */
static void end_offers (const struct slurmdl *run, const struct candidates *c, bool touched,
                        struct restore_offer *o)
{
    struct slurmdl_error err = { "" };

    o->step = 0;
    *o->path = '\0';
    if (o->verdict == RESTORE_NEXT && none_left (run, c, touched, &err) == RESTORE_FAILED) {
        o->verdict = RESTORE_FAILED;
        o->error = errno;
    }
    memcpy (o->text, err.text, sizeof (o->text));
}

static enum restore_verdict restore_as_leader (struct slurmdl *run, unsigned k, int64_t *step,
                                               struct slurmdl_error *err)
{
    struct candidates c = { 0 };
    struct restore_offer o = { 0 };
    struct outcome out = { 0 };
    struct slurmdl_checkpoint *from = NULL;
    struct slurmdl_error note = { "" };
    bool touched = false;
    char name[64];
    int rv = 0;

    if (candidates_find (&c, run, &note) < 0) {
        o.verdict = RESTORE_FAILED;
        o.error = errno;
        memcpy (o.text, note.text, sizeof (o.text));
        outcome_name (name, k, "offer", 0);
        rv = session_put (run->session, name, &o, sizeof (o));
    }
    for (size_t i = 0; o.verdict == RESTORE_NEXT && rv == 0; i++) {
        if (i < c.n) {
            o.step = c.list[i].step;
            snprintf (o.path, sizeof (o.path), "%s", c.list[i].path);
        } else
            end_offers (run, &c, touched, &o);
        outcome_name (name, k, "offer", (unsigned)i);
        rv = session_put (run->session, name, &o, sizeof (o));
        if (rv < 0 || i >= c.n)
            break;
        try_offer (run, &o, &out, &from);
        rv = settle_offer (run, k, (unsigned)i, &c, &o, &out, err);
        c.list[i].bad = out.bad;
        touched |= out.touched;
        if (o.verdict == RESTORE_NEXT) {
            if (out.bad)
                errorf (&note, "%s", out.text); /* keep the first message */
            slurmdl_checkpoint_close (from);
            from = NULL;
        }
    }
    if (rv == 0 && o.verdict != RESTORE_FAILED)
        tell_skipped (run, &c, note.text, err);
    candidates_free (&c);
    if (o.verdict == RESTORE_DONE)
        note_restored (run, from, step);
    else
        slurmdl_checkpoint_close (from);
    if (rv < 0)
        return errorf (err, "cannot restore: %s", strerror (errno));
    errno = o.error;
    if (o.verdict == RESTORE_FAILED)
        return errorf (err, "%.1023s", o.text);
    return o.verdict;
}

static enum restore_verdict restore_with_leader (struct slurmdl *run, unsigned k, int64_t *step,
                                                 struct slurmdl_error *err)
{
    struct slurmdl_checkpoint *from = NULL;
    struct outcome out = { 0 };
    struct restore_offer *o = NULL;
    enum restore_verdict verdict;
    char name[64];
    size_t n;
    int rv;

    for (unsigned i = 0;; i++) {
        outcome_name (name, k, "offer", i);
        rv = session_get (run->session, 0, name, RESTORE_SECONDS, (void **)&o, &n, err);
        if (rv < 0 || o->verdict != RESTORE_NEXT || !*o->path)
            break;
        slurmdl_checkpoint_close (from);
        try_offer (run, o, &out, &from);
        free (o);
        o = NULL;
        outcome_name (name, k, "outcome", i);
        if ((rv = session_put (run->session, name, &out, sizeof (out))) < 0)
            break;
    }
    verdict = rv < 0 ? RESTORE_FAILED : o->verdict;
    if (verdict == RESTORE_DONE && from)
        note_restored (run, from, step);
    else
        slurmdl_checkpoint_close (from);
    if (o && verdict == RESTORE_FAILED) {
        errno = o->error;
        errorf (err, "%.1023s", o->text);
    }
    int e = errno;
    free (o);
    errno = e;
    return verdict;
}

static enum restore_verdict restore_any (struct slurmdl *run, int64_t *step,
                                         struct slurmdl_error *err)
{
    unsigned k;

    error_clear (err);
    if (run->size == 1 || !regions_shared (&run->regions))
        return restore_alone (run, step, err);
    if (session_join (run, err) < 0)
        return RESTORE_FAILED;
    k = session_count (run->session, SESSION_RESTORE);
    return run->rank == 0 ? restore_as_leader (run, k, step, err)
                          : restore_with_leader (run, k, step, err);
}

int slurmdl_restore (struct slurmdl *run, int64_t *step, struct slurmdl_error *err)
{
    double begin = monotonic ();
    enum restore_verdict verdict = restore_any (run, step, err);
    int e = errno;

    if (verdict == RESTORE_DONE) {
        metrics_resumed (run->metrics, *step);
        metrics_took (run->metrics, "restored", *step, monotonic () - begin);
    }
    errno = e;
    return verdict;
}

int slurmdl_restore_only (struct slurmdl *run, const char *pattern, const char *path, int64_t *step,
                          struct slurmdl_error *err)
{
    struct restore_source s = { path, -1, pattern, false };
    struct slurmdl_checkpoint *from = NULL;
    enum restore_verdict verdict;
    bool bad, touched = false;

    error_clear (err);
    verdict = path ? try_file (run, &s, &bad, &touched, &from, err)
                   : try_newest (run, pattern, false, &from, err);
    if (verdict == RESTORE_NEXT && path && touched)
        append_touched (err);
    if (verdict == RESTORE_DONE)
        *step = from->m.step;
    slurmdl_checkpoint_close (from);
    return verdict == RESTORE_NEXT && path ? -1 : verdict;
}

int slurmdl_state (struct slurmdl *run, const char *name, const void *bytes, size_t n)
{
    char dataset[DATASET_NAME_SIZE];
    bool own;
    void *copy;

    if (state_dataset (name, run->rank, dataset, &own) < 0 || !(copy = malloc (n + 1)))
        return -1;
    if (n)
        memcpy (copy, bytes, n);
    if (regions_put_state (&run->regions, dataset, copy, n, own) == 0)
        return 0;
    free (copy);
    return -1;
}

int slurmdl_restored_origin (const struct slurmdl *run, struct slurmdl_origin *origin)
{
    if (run->from)
        return slurmdl_checkpoint_origin (run->from, origin);
    errno = ENOENT;
    return -1;
}

int slurmdl_read_state (struct slurmdl *run, const char *name, void **bytes, size_t *n)
{
    char dataset[DATASET_NAME_SIZE];
    const struct region *r;
    struct slurmdl_tensor t;
    int64_t i;
    bool own;

    *bytes = NULL;
    *n = 0;
    if (state_dataset (name, run->rank, dataset, &own) < 0)
        return -1;
    if (!run->from) {
        if (!(r = regions_find (&run->regions, dataset))) {
            errno = ENOENT;
            return -1;
        }
        if ((*bytes = malloc (r->bytes + 1)))
            memcpy (*bytes, r->data, *n = r->bytes);
        return *bytes ? 0 : -1;
    }
    i = slurmdl_checkpoint_find_tensor (run->from, dataset);
    if (i < 0 || slurmdl_checkpoint_info (run->from, (size_t)i, &t) < 0
        || !(*bytes = malloc (t.bytes + 1)))
        return -1;
    *n = t.bytes;
    if (slurmdl_checkpoint_read (run->from, dataset, NULL, NULL, *bytes, NULL) == 0)
        return 0;
    free (*bytes);
    *bytes = NULL;
    return -1;
}
