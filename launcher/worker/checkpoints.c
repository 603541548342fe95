/* SPDX-License-Identifier: Apache-2.0 */
/* Find, verify and remove checkpoints. */
#include "launcher/worker/checkpoints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/worker/leftovers.h"
#include "launcher/worker/removal.h"
#include "launcher/worker/trainer_files.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* The file of a checkpoint. */
struct gc_item {
    struct gc_file file;
    bool whole; /* it was read and verified */
    bool held;  /* it is kept, whatever the policy says */
};

struct shelf {
    const struct sweep *sweep;
    struct gc_checkpoint *list;
    struct gc_item *items; /* in the same order */
    size_t n;
    size_t *first; /* trial N has first[N] .. first[N + 1] - 1 */
    struct gc_report leftovers;
};

/* It may be trained on, or another trial begin from it. */
static bool goes_on (const struct sweep *s, const struct sweep_trial *t)
{
    return !gc_is_over (s) && (t->state == TRIAL_OPEN || t->state == TRIAL_PAUSED);
}

/* ---- the lists ---- */

/* Takes the path over. */
static int add_checkpoint (struct shelf *sh, struct gc_checkpoint c, struct gc_file *f)
{
    struct gc_checkpoint *list = array_grow (sh->list, sh->n, sizeof (*list));
    struct gc_item *items;

    if (list)
        sh->list = list;
    if (!list || !(items = array_grow (sh->items, sh->n, sizeof (*items))))
        return -1;
    sh->items = items;
    list[sh->n] = c;
    items[sh->n++] = (struct gc_item){ .file = *f };
    f->path = NULL;
    return 0;
}

/* Takes the path over. */
static int add_file (struct gc_report *r, struct gc_file *f)
{
    struct gc_file *files = array_grow (r->files, r->n, sizeof (*files));

    if (!files)
        return -1;
    r->files = files;
    files[r->n++] = *f;
    f->path = NULL;
    return 0;
}

/* ---- what is there ---- */

static int is_ours (const struct dirent *e)
{
    size_t n = strlen (e->d_name);

    if (e->d_name[0] == '.')
        return inside_is_hidden (e->d_name);
    return n >= 11 && !strcmp (e->d_name + n - 3, ".h5")
           && strspn (e->d_name, "0123456789") == n - 3;
}

static int by_step (const struct dirent **a, const struct dirent **b)
{
    long long x = strtoll ((*a)->d_name, NULL, 10);
    long long y = strtoll ((*b)->d_name, NULL, 10);

    return x < y ? -1 : x > y;
}

/* An open folder with checkpoints. */
struct ckpt_folder {
    const char *path;
    int fd;
    bool links; /* some names in it are symbolic links */
};

static int64_t bytes_of (struct ckpt_folder *folder, const char *name)
{
    struct stat st = { 0 };
    int fd;

    if (fstatat (folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK (st.st_mode)) {
        folder->links = true;
        st.st_size = 0;
        if ((fd = inside_open_at (folder->fd, name, O_RDONLY, 0, &st)) >= 0)
            close (fd);
    }
    return st.st_size;
}

static int add_name (struct shelf *sh, struct ckpt_folder *folder, const char *name,
                     struct gc_checkpoint c)
{
    struct gc_file f = { .outcome = GC_LEFTOVER };
    int rv;

    if (asprintf (&f.path, "%s/%s", folder->path, name) < 0)
        return -1;
    f.bytes = bytes_of (folder, name);
    c.step = strtoll (name, NULL, 10);
    if (*name == '.')
        rv = add_file (&sh->leftovers, &f);
    else
        rv = add_checkpoint (sh, c, &f);
    free (f.path);
    return rv;
}

/* A hidden file is a save that was cut short, unless the attempt may still
 * be at it, or names in the folder are symbolic links to such files.
 */
static void keep_leftovers (struct shelf *sh, size_t before)
{
    while (sh->leftovers.n > before)
        free (sh->leftovers.files[--sh->leftovers.n].path);
}

static int scan_attempt (struct shelf *sh, long trial, long attempt)
{
    const struct sweep_trial *t = sweep_trial (sh->sweep, trial);
    struct gc_checkpoint c = {
        .trial = trial,
        .attempt = attempt,
        .metric = NAN,
        .accepted = trial_last (t).attempt == attempt,
    };
    size_t before = sh->leftovers.n;
    char path[PATH_MAX - 64];
    struct ckpt_folder folder = { .path = path };
    struct dirent **names;
    int rv = 0;
    int n = -1;

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/ckpt", sh->sweep->dir, trial, attempt);
    folder.fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (folder.fd >= 0)
        n = scandirat (folder.fd, ".", &names, is_ours, by_step);
    if (n < 0)
        return errno == ENOENT ? 0 : -1;
    for (int i = 0; i < n; i++) {
        if (rv == 0)
            rv = add_name (sh, &folder, names[i]->d_name, c);
        free (names[i]);
    }
    free (names);
    close (folder.fd);
    if (folder.links || (!gc_is_over (sh->sweep) && attempt > t->over))
        keep_leftovers (sh, before);
    return rv;
}

/* The oldest attempt first: in this order they are removed. */
static int scan (struct shelf *sh, struct slurmdl_error *err)
{
    const struct sweep *s = sh->sweep;

    if (!(sh->first = calloc ((size_t)s->ntrials + 2, sizeof (*sh->first))))
        return errorf (err, "out of memory");
    for (long n = 1; n <= s->ntrials; n++) {
        long last = sweep_trial (s, n)->over + 1;
        sh->first[n] = sh->n;
        for (long k = 1; k <= last; k++)
            if (scan_attempt (sh, n, k) < 0)
                return errorf (err, "%s/trials/%04ld: cannot list checkpoints: %s", s->dir, n,
                               inside_error (errno));
    }
    sh->first[s->ntrials + 1] = sh->n;
    return 0;
}

/* ---- what killed writers left elsewhere ---- */

static int add_leftover (const char *path, int64_t bytes, void *arg)
{
    struct shelf *sh = arg;
    struct gc_file f = { .path = strdup (path), .bytes = bytes, .outcome = GC_LEFTOVER };
    int rv = f.path ? add_file (&sh->leftovers, &f) : -1;

    free (f.path);
    return rv;
}

/* Where the sweep has not ended its workers may be at them. */
static int scan_leftovers (struct shelf *sh, struct slurmdl_error *err)
{
    if (!sweep_has_ended (sh->sweep) || leftovers_find (sh->sweep, add_leftover, sh) == 0)
        return 0;
    return errorf (err, "%s: cannot list what killed writers left: %s", sh->sweep->dir,
                   inside_error (errno));
}

/* ---- validations ---- */

struct validation {
    struct shelf *shelf;
    long trial;
    long attempt; /* whose metrics are read */
};

/* The attempt that saved it knows best; of the others the last. */
static int keep_value (const struct slurmdl_row *row, void *arg)
{
    const struct validation *v = arg;
    struct shelf *sh = v->shelf;

    if (strcmp (row->name, sweep_metric (sh->sweep, 0)))
        return 0;
    for (size_t i = sh->first[v->trial]; i < sh->first[v->trial + 1]; i++) {
        struct gc_checkpoint *c = &sh->list[i];
        if (c->step == row->step && (v->attempt <= c->attempt || !isfinite (c->metric)))
            c->metric = row->value;
    }
    return 0;
}

static void hold (struct shelf *sh, long trial)
{
    for (size_t i = sh->first[trial]; i < sh->first[trial + 1]; i++)
        sh->items[i].held = true;
}

static void read_validations (struct shelf *sh, long trial)
{
    struct validation v = { sh, trial, 1 };
    char dir[PATH_MAX];

    for (; v.attempt <= sweep_trial (sh->sweep, trial)->over + 1; v.attempt++) {
        snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", sh->sweep->dir, trial, v.attempt);
        if (slurmdl_metrics_read_dir (dir, keep_value, &v, NULL) < 0)
            hold (sh, trial);
    }
}

static void read_all_validations (struct shelf *sh)
{
    const struct gc_policy *p = &sh->sweep->exp->policy;

    if (!p->experiment_best && !p->trial_best)
        return;
    for (long n = 1; n <= sh->sweep->ntrials; n++)
        if (sh->first[n] < sh->first[n + 1])
            read_validations (sh, n);
}

/* ---- what stays ---- */

/* The one that slurmdl_restore() takes. */
static bool restored_before (const struct gc_checkpoint *a, const struct gc_checkpoint *b,
                             long prefer)
{
    if (a->step != b->step)
        return a->step > b->step;
    if ((a->attempt == prefer) != (b->attempt == prefer))
        return a->attempt == prefer;
    return a->attempt > b->attempt;
}

static void need (struct shelf *sh, long trial, int64_t max_step, long prefer)
{
    struct gc_checkpoint *best = NULL;

    for (size_t i = sh->first[trial]; i < sh->first[trial + 1]; i++) {
        struct gc_checkpoint *c = &sh->list[i];
        if (c->step <= max_step && !c->bad && (!best || restored_before (c, best, prefer)))
            best = c;
    }
    if (best)
        best->kept = true;
}

/* Of the best trial what it had where trials are compared: the policy knows
 * only what was logged at each step.
 */
static void need_of_best (struct shelf *sh)
{
    const struct sweep *s = sh->sweep;
    const struct gc_policy *p = &s->exp->policy;
    long best = p->experiment_best || p->trial_best ? sweep_best (s) : 0;
    int64_t length = best ? trial_result (s, best, 0).length : 0;

    if (best)
        need (sh, best, length, trial_milestone (sweep_trial (s, best), length));
}

static void need_all (struct shelf *sh)
{
    const struct sweep *s = sh->sweep;

    need_of_best (sh);
    for (long n = 1; n <= s->ntrials; n++) {
        const struct sweep_trial *t = sweep_trial (s, n);
        const struct sweep_trial *from = sweep_trial (s, t->from);
        long last = trial_last (t).attempt;
        if (!goes_on (s, t))
            continue;
        need (sh, n, INT64_MAX, last);
        need (sh, n, t->length, last);
        if (t->state == TRIAL_OPEN)
            need (sh, n, t->target, last);
        if (from && t->nmilestones == 0)
            need (sh, t->from, t->from_length, trial_milestone (from, t->from_length));
    }
}

/* Returns whether all that is kept is whole. */
static bool verify_kept (struct shelf *sh)
{
    bool all = true;
    int64_t step;

    for (size_t i = 0; i < sh->n; i++) {
        struct gc_checkpoint *c = &sh->list[i];
        if (!c->kept || sh->items[i].whole)
            continue;
        sh->items[i].whole =
            slurmdl_checkpoint_verify (sh->items[i].file.path, &step, NULL) == 0 && step == c->step;
        c->bad = !sh->items[i].whole;
        all = all && !c->bad;
    }
    return all;
}

static int choose (struct shelf *sh, struct slurmdl_error *err)
{
    const struct experiment *e = sh->sweep->exp;

    do {
        if (gc_mark (&e->policy, e->search.smaller_is_better, sh->list, sh->n) < 0)
            return errorf (err, "out of memory");
        need_all (sh);
    } while (!verify_kept (sh));
    return 0;
}

/* A file that does not verify is no use, but that may be the fault of the
 * network or the disk just now: it goes only if another one was read.
 */
static enum gc_outcome outcome_of (const struct shelf *sh, size_t i)
{
    long trial = sh->list[i].trial;

    if (sh->list[i].kept || sh->items[i].held)
        return GC_KEPT;
    if (!sh->list[i].bad)
        return GC_DELETED;
    for (size_t j = sh->first[trial]; j < sh->first[trial + 1]; j++)
        if (sh->list[j].kept)
            return GC_DELETED;
    return GC_DAMAGED;
}

/* ---- the removal ---- */

/* Where it fails, what follows stays. */
static int remove_all (struct gc_report *r, bool folders, struct slurmdl_error *err)
{
    int rv = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct gc_file *f = &r->files[i];
        if (f->outcome != GC_DELETED && f->outcome != GC_LEFTOVER)
            continue;
        if (rv == 0 && removal_file (f->path) < 0)
            rv = errorf (err, "%s: cannot remove: %s", f->path, inside_error (errno));
        if (rv < 0)
            f->outcome = GC_KEPT;
        else if (folders && (f->outcome == GC_DELETED || strstr (f->path, "/ckpt/")))
            removal_folder (f->path);
    }
    return rv;
}

/* Hand the files over to the report. */
static int report_on (struct shelf *sh, struct gc_report *r)
{
    for (size_t i = 0; i < sh->n; i++) {
        struct gc_file *f = &sh->items[i].file;
        f->outcome = outcome_of (sh, i);
        if (add_file (r, f) < 0)
            return -1;
    }
    for (size_t i = 0; i < sh->leftovers.n; i++) {
        struct gc_file *f = &sh->leftovers.files[i];
        if (add_file (r, f) < 0)
            return -1;
    }
    return 0;
}

/* What trainers saved themselves. */
static int report_on_files (const struct sweep *s, struct gc_report *r)
{
    struct trainer_files list;
    int rv = trainer_files_mark (s, s->exp->checkpoint_files, &list);

    for (size_t i = 0; rv == 0 && i < list.n; i++) {
        struct trainer_file *t = &list.files[i];
        struct gc_file f = { t->path, t->bytes, t->kept ? GC_KEPT : GC_DELETED };
        rv = add_file (r, &f);
        t->path = f.path;
    }
    trainer_files_free (&list);
    return rv;
}

static void shelf_free (struct shelf *sh)
{
    for (size_t i = 0; i < sh->n; i++)
        free (sh->items[i].file.path);
    gc_report_free (&sh->leftovers);
    free (sh->list);
    free (sh->items);
    free (sh->first);
}

int gc_run (const struct sweep *s, bool dry, struct gc_report *report, struct slurmdl_error *err)
{
    struct shelf sh = { .sweep = s };
    int rv = -1;
    int e;

    *report = (struct gc_report){ 0 };
    if (scan (&sh, err) < 0 || scan_leftovers (&sh, err) < 0)
        goto out;
    if (!gc_keeps_nothing (s)) {
        read_all_validations (&sh);
        if (choose (&sh, err) < 0)
            goto out;
    }
    if (report_on (&sh, report) < 0)
        errorf (err, "out of memory");
    else if (s->exp->checkpoint_files && report_on_files (s, report) < 0)
        errorf (err, "%s/trials: cannot list what trials saved: %s", s->dir, inside_error (errno));
    else
        rv = dry ? 0 : remove_all (report, gc_is_over (s), err);
out:
    e = errno;
    shelf_free (&sh);
    errno = e;
    return rv;
}

void gc_report_free (struct gc_report *report)
{
    for (size_t i = 0; i < report->n; i++)
        free (report->files[i].path);
    free (report->files);
    *report = (struct gc_report){ 0 };
}
