/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranks make one checkpoint: plans, layouts, checksums, the result. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/commit.h"
#include "runtime/checkpoint/finish.h"
#include "runtime/checkpoint/merge.h"
#include "runtime/checkpoint/staging.h"
#include "runtime/run/session.h"
#include "runtime/storage/inside.h"

/* Slower than any disk: how long others are waited for while they write. */
enum { BYTES_A_SECOND = 20 << 20 };

/* ---- what ranks say to each other ---- */

/* The end of a stage: 'error' is an errno, 0 if all went well. */
struct word {
    int32_t error;
    uint32_t n;
    char text[sizeof (struct slurmdl_error)];
    char path[PATH_MAX];
};

/* of rank 0 to each: the offsets of what it has; back: their checksums */
struct layout {
    struct word word;
    uint64_t all; /* bytes of the checkpoint */
    uint64_t offsets[];
};

struct done {
    struct word word;
    uint32_t crcs[];
};

static void say (struct word *w, int error, const struct slurmdl_error *err)
{
    w->error = error;
    if (err)
        memcpy (w->text, err->text, sizeof (w->text));
}

static int said (const struct word *w, struct slurmdl_error *err)
{
    if (w->error == 0)
        return 0;
    errno = w->error;
    return errorf (err, "%.1023s", w->text);
}

/* ---- rank 0 of several ---- */

static void stage (char *buf, unsigned save, const char *what, long rank)
{
    snprintf (buf, 64, "save%u.%s%ld", save, what, rank);
}

static int collect_plans (struct session *t, unsigned save, const struct save_job *job,
                          struct merge *g, struct slurmdl_error *err)
{
    char name[64];
    size_t n;

    if (!(g->parts[0].plan = make_plan (job, &n)))
        return errorf (err, "out of memory");
    for (long r = 1; r < g->ranks; r++) {
        struct plan *p;
        stage (name, save, "plan", 0);
        if (session_get (t, r, name, 0, (void **)&p, &n, err) < 0)
            return -1;
        g->parts[r].plan = p;
        if (n < sizeof (*p) || n != sizeof (*p) + p->n * sizeof (*p->list)) {
            errno = EBADMSG;
            return errorf (err, "rank %ld is of another version", r);
        }
        if (p->step != job->step) {
            errno = EINVAL;
            return errorf (err, "rank %ld saves step %lld, rank 0 step %lld", r, (long long)p->step,
                           (long long)job->step);
        }
    }
    return 0;
}

static int send_layouts (struct session *t, unsigned save, struct merge *g, const char *tmp,
                         struct slurmdl_error *err)
{
    char name[64];

    for (long r = 1; r < g->ranks; r++)
        if (!(g->parts[r].layout =
                  calloc (1, sizeof (struct layout) + g->parts[r].plan->n * sizeof (uint64_t))))
            return errorf (err, "out of memory");
    for (size_t k = 0; k < g->n; k++)
        if (g->items[k].rank > 0)
            ((struct layout *)g->parts[g->items[k].rank].layout)->offsets[g->items[k].i] =
                g->draft.m.rows[g->items[k].row].offset;
    for (long r = 1; r < g->ranks; r++) {
        struct layout *l = g->parts[r].layout;
        snprintf (l->word.path, sizeof (l->word.path), "%s", tmp);
        l->all = g->draft.length;
        l->word.n = (uint32_t)g->parts[r].plan->n;
        stage (name, save, "layout", r);
        if (session_put (t, name, l, sizeof (*l) + l->word.n * sizeof (uint64_t)) < 0)
            return errorf (err, "cannot notify rank %ld: %s", r, strerror (errno));
    }
    return 0;
}

static int collect_crcs (struct session *t, unsigned save, struct merge *g,
                         struct slurmdl_error *err)
{
    double extra = (double)g->draft.length / BYTES_A_SECOND;
    char name[64];

    stage (name, save, "done", 0);
    for (long r = 1; r < g->ranks; r++) {
        struct done *d;
        size_t n;
        int rv = session_get (t, r, name, extra, (void **)&d, &n, err);
        if (rv == 0 && n >= sizeof (*d))
            rv = said (&d->word, err);
        if (rv == 0 && n != sizeof (*d) + g->parts[r].plan->n * sizeof (uint32_t))
            rv = errorf (err, "rank %ld is of another version", r);
        if (rv == 0)
            merge_set_crc (g, r, d->crcs);
        free (d);
        if (rv < 0)
            return -1;
    }
    return 0;
}

/* A rank has put a plan only when it was done with the save before. */
static void clean_up (struct session *t, unsigned save)
{
    static const char *const stages[] = { "plan", "done", "result" };
    char name[64];

    for (int i = 0; i < 3; i++) {
        stage (name, save, stages[i], 0);
        session_forget (t, name);
    }
}

static void clean_layouts (struct session *t, unsigned save, long ranks)
{
    char name[64];

    for (long r = 1; r < ranks; r++) {
        stage (name, save, "layout", r);
        session_forget (t, name);
    }
}

static int lead_stages (struct slurmdl *run, unsigned save, struct save_job *job, struct merge *g,
                        const char *tmp, const char *path, struct slurmdl_error *err)
{
    struct session *t = run->session;

    if (collect_plans (t, save, job, g, err) < 0)
        return -1;
    if (save > 0) {
        clean_up (t, save - 1);
        clean_layouts (t, save - 1, g->ranks);
    }
    if (merge_lay_out (g, tmp, job->step, err) < 0 || send_layouts (t, save, g, tmp, err) < 0)
        return -1;
    merge_own_offsets (g, job);
    if (write_pieces (tmp, g->draft.fd, job->list, job->n, NULL) < 0 || merge_own_crcs (g, job) < 0)
        return errorf (err, "%s: cannot save: %s", path, strerror (errno));
    if (collect_crcs (t, save, g, err) < 0)
        return -1;
    return finish_file (&g->draft, tmp, path, err);
}

/* Who waits for a layout learns that there will be none. */
static void refuse (struct session *t, unsigned save, long ranks, const struct word *w)
{
    struct layout *l = calloc (1, sizeof (*l));
    char name[64];

    for (long r = 1; l && r < ranks; r++) {
        l->word = *w;
        stage (name, save, "layout", r);
        session_put (t, name, l, sizeof (*l));
    }
    free (l);
}

int commit_lead (struct slurmdl *run, struct save_job *job, char *path, struct slurmdl_error *err)
{
    struct slurmdl_error own = { "" };
    struct merge g = { .ranks = run->size, .draft.fd = -1 };
    unsigned save = session_count (run->session, SESSION_SAVE);
    struct word w = { 0 };
    char tmp[PATH_MAX] = "";
    char name[64];
    int rv;
    int e;

    g.parts = calloc ((size_t)g.ranks, sizeof (*g.parts));
    rv = g.parts ? finish_paths (run->dir, job->step, tmp, path, &own) : -1;
    if (rv == 0)
        rv = lead_stages (run, save, job, &g, tmp, path, &own);
    e = rv < 0 ? errno : 0;
    draft_close (&g.draft);
    merge_free (&g);
    if (rv < 0 && *tmp)
        unlink (tmp);
    say (&w, rv < 0 ? (e ? e : EIO) : 0, &own);
    if (rv < 0)
        refuse (run->session, save, run->size, &w);
    stage (name, save, "result", 0);
    /* who is not told takes it for failed */
    if (session_put (run->session, name, &w, sizeof (w)) < 0 && rv == 0) {
        e = errno;
        rv = errorf (&own, "%s: is complete, but the ranks cannot be notified: %s", path,
                     strerror (e));
    }
    if (rv < 0)
        errorf (err, "%s", own.text);
    errno = e;
    return rv;
}

/* ---- another rank ---- */

static int write_mine (struct save_job *job, const struct layout *l, struct slurmdl_error *err)
{
    int fd = inside_open_any (l->word.path, O_RDWR, 0, NULL);
    int rv = -1;
    int e;

    for (size_t i = 0; i < job->n; i++)
        job->list[i].offset = l->offsets[i];
    if (fd >= 0 && write_pieces (l->word.path, fd, job->list, job->n, NULL) == 0
        && fdatasync (fd) == 0)
        rv = 0;
    e = errno;
    if (fd >= 0)
        close (fd);
    errno = e;
    return rv == 0 ? 0 : errorf (err, "%s: cannot save: %s", l->word.path, strerror (errno));
}

static int put_done (struct session *t, unsigned save, const struct save_job *job, int error,
                     const struct slurmdl_error *err)
{
    size_t size = sizeof (struct done) + job->n * sizeof (uint32_t);
    struct done *d = calloc (1, size);
    char name[64];
    int rv;

    if (!d)
        return -1;
    say (&d->word, error, err);
    for (size_t i = 0; i < job->n; i++)
        d->crcs[i] = job->list[i].crc;
    stage (name, save, "done", 0);
    rv = session_put (t, name, d, size);
    free (d);
    return rv;
}

/* Whatever comes first: the layout, or that the save has failed. */
static int get_layout (struct session *t, unsigned save, long rank, const struct save_job *job,
                       struct layout **l, struct slurmdl_error *err)
{
    char name[64];
    size_t n;

    stage (name, save, "layout", rank);
    if (session_get (t, 0, name, 0, (void **)l, &n, err) < 0)
        return -1;
    if (n >= sizeof (**l) && said (&(*l)->word, err) < 0)
        return -1;
    if (n == sizeof (**l) + job->n * sizeof (uint64_t))
        return 0;
    errno = EBADMSG;
    return errorf (err, "rank 0 is of another version");
}

static int follow_stages (struct slurmdl *run, unsigned save, struct save_job *job, double *extra,
                          struct slurmdl_error *err)
{
    struct session *t = run->session;
    struct layout *l = NULL;
    size_t size;
    struct plan *p = make_plan (job, &size);
    char name[64];
    int rv;

    stage (name, save, "plan", 0);
    rv = p ? session_put (t, name, p, size) : -1;
    free (p);
    if (rv < 0)
        return errorf (err, "cannot notify rank 0: %s", strerror (errno));
    rv = get_layout (t, save, run->rank, job, &l, err);
    if (rv == 0) {
        *extra = (double)l->all / BYTES_A_SECOND;
        rv = write_mine (job, l, err);
    }
    free (l);
    return rv;
}

int commit_follow (struct slurmdl *run, struct save_job *job, struct slurmdl_error *err)
{
    struct slurmdl_error own = { "" };
    unsigned save = session_count (run->session, SESSION_SAVE);
    double extra = 0;
    struct word *w;
    char name[64];
    size_t n;
    int rv = follow_stages (run, save, job, &extra, &own);
    int e = rv < 0 ? errno : 0;

    put_done (run->session, save, job, e, &own);
    if (rv < 0) {
        errno = e;
        return errorf (err, "%s", own.text);
    }
    stage (name, save, "result", 0);
    if (session_get (run->session, 0, name, extra, (void **)&w, &n, err) < 0)
        return -1;
    rv = n == sizeof (*w) ? said (w, err) : -1;
    e = errno;
    free (w);
    errno = e;
    return rv;
}
