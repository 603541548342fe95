/* SPDX-License-Identifier: Apache-2.0 */
/* Which files that trainers saved themselves stay (checkpoint_policy.files). */
#include "launcher/worker/trainer_files.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/code/pattern_list.h"
#include "launcher/code/working_copy.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/trainer/resume_dir.h"
#include "launcher/worker/checkpoints.h"
#include "runtime/base/array.h"
#include "runtime/storage/inside.h"

/* ---- the list ---- */

struct file_listing {
    const struct sweep *sweep;
    char *const *patterns;
    struct trainer_files *list;
    long trial;
    long attempt;
    char dir[PATH_MAX]; /* of the attempt */
};

/* 'path' is one below the attempt's folder.  Returns the part that the user
 * knows, NULL: the file is dl's own.
 */
static const char *name_of (const struct file_listing *l, const char *path)
{
    const char *file = l->sweep->exp->metrics_file;
    const char *base = strrchr (path, '/');
    char first[NAME_MAX + 1];
    size_t n = strcspn (path, "/");

    base = base ? base + 1 : path;
    snprintf (first, sizeof (first), "%.*s", (int)n, path);
    if (inside_is_hidden (base) || (file && !strcmp (path, file)))
        return NULL;
    if (path[n] && !strcmp (first, WORK_NAME))
        return path + n + 1;
    if (!strcmp (first, "ckpt") && fnmatch ("*.h5", base, 0) == 0)
        return NULL;
    return attempt_file_is_ours (first) ? NULL : path;
}

/* A pattern that names a folder has all of its files. */
static bool is_wanted (const struct file_listing *l, const char *name)
{
    char folder[PATH_MAX];

    if (pattern_list_has (l->patterns, name, false))
        return true;
    for (const char *end = strchr (name, '/'); end; end = strchr (end + 1, '/'))
        if (snprintf (folder, sizeof (folder), "%.*s", (int)(end - name), name)
                < (int)sizeof (folder)
            && pattern_list_has (l->patterns, folder, true))
            return true;
    return false;
}

/* "epoch_12.pt" is a later "epoch_3.pt", but "best.pt" is no "last.pt". */
static char *kind_of (const char *name)
{
    char *kind = strdup (name), *to = kind;

    for (const char *p = name; kind && *p; p++)
        if (!isdigit ((unsigned char)*p))
            *to++ = *p;
        else if (p == name || !isdigit ((unsigned char)p[-1]))
            *to++ = '#';
    if (kind)
        *to = '\0';
    return kind;
}

static int add (const char *path, const struct stat *st, void *arg)
{
    const struct file_listing *l = arg;
    struct trainer_file *files,
        f = { .trial = l->trial, .attempt = l->attempt, .bytes = st->st_size };
    const char *name = name_of (l, path);

    if (!S_ISREG (st->st_mode) || st->st_size == 0 || !name || !is_wanted (l, name))
        return 0;
    if (!(files = array_grow (l->list->files, l->list->n, sizeof (*files))))
        return -1;
    l->list->files = files;
    f.kind = kind_of (name);
    if (!f.kind || asprintf (&f.path, "%s/%s", l->dir, path) < 0) {
        free (f.kind);
        return -1;
    }
    f.below = f.path + strlen (f.path) - strlen (name);
    files[l->list->n++] = f;
    return 0;
}

static int by_kind (const void *a, const void *b)
{
    const struct trainer_file *x = a, *y = b;
    int rv = strcmp (x->kind, y->kind);

    if (rv)
        return rv;
    if (x->trial != y->trial)
        return x->trial < y->trial ? -1 : 1;
    return (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

/* An attempt that is not over may be at its files. */
static int list_all (struct file_listing *l)
{
    const struct sweep *s = l->sweep;

    for (l->trial = 1; l->trial <= s->ntrials; l->trial++) {
        long last = sweep_trial (s, l->trial)->over + gc_is_over (s);
        for (l->attempt = 1; l->attempt <= last; l->attempt++) {
            snprintf (l->dir, sizeof (l->dir), "%s/trials/%04ld/a.%ld", s->dir, l->trial,
                      l->attempt);
            if (working_copy_each (l->dir, add, l) < 0)
                return -1;
        }
    }
    if (l->list->n)
        qsort (l->list->files, l->list->n, sizeof (*l->list->files), by_kind);
    return 0;
}

/* ---- what stays ---- */

/* The files of one kind, by trial and attempt. */
struct units {
    const struct sweep *sweep;
    struct gc_checkpoint *list; /* one an attempt: the 'step' is its number */
    double *compared;           /* its value where points are compared, NaN */
    bool *stays;
    size_t n;
};

static size_t first_of (const struct units *u, long trial)
{
    size_t low = 0, high = u->n;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (u->list[mid].trial < trial)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The newest of a trial that is not newer than that attempt, or u->n: the
 * attempt's own, or what it went on from and did not write again.
 */
static size_t until (const struct units *u, long trial, long attempt)
{
    size_t found = u->n;

    for (size_t i = first_of (u, trial); i < u->n && u->list[i].trial == trial; i++)
        if (u->list[i].attempt <= attempt)
            found = i;
    return found;
}

static void set_metrics (struct units *u, long trial)
{
    const struct sweep *s = u->sweep;
    const struct sweep_trial *t = sweep_trial (s, trial);
    struct sweep_result r = trial_result (s, trial, 0);

    for (size_t i = 0; i < t->nmilestones; i++) {
        const struct milestone *m = &t->milestones[i];
        size_t k = until (u, trial, m->attempt);
        if (k == u->n)
            continue;
        u->list[k].accepted = true;
        u->list[k].metric = m->metric;
        if (r.compared && m->length == r.length)
            u->compared[k] = point_result (s, trial_point (s, trial), 0).value;
    }
}

/* Of a trial with results what came of other attempts does not count. */
static void drop_unaccepted (struct units *u, size_t i, size_t end)
{
    bool any = false;

    for (size_t k = i; k < end; k++)
        any = any || u->list[k].accepted;
    for (size_t k = i; k < end; k++)
        u->list[k].bad = any && !u->list[k].accepted;
}

static bool may_go_on (const struct sweep *s, const struct sweep_trial *t)
{
    return t->state == TRIAL_FAILED /* dl retry */
           || (!gc_is_over (s) && t->state != TRIAL_REJECTED);
}

static bool has_logged (const struct sweep *s, const struct gc_checkpoint *c)
{
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, c->trial, c->attempt);
    return attempt_has_logged (dir);
}

enum { SPARE = 2 }; /* attempts whose files stay for the next one */

static void need_newest (struct units *u, size_t i, size_t end)
{
    int found = 0;

    while (end > i && found < SPARE) {
        u->stays[--end] = true;
        found += has_logged (u->sweep, &u->list[end]);
    }
}

/* A trial begins with those of another one. */
static void need_of_others (struct units *u)
{
    const struct sweep *s = u->sweep;

    for (long n = 1; n <= s->ntrials; n++) {
        const struct sweep_trial *t = sweep_trial (s, n);
        const struct sweep_trial *from = sweep_trial (s, t->from);
        size_t k;
        if (!from || t->nmilestones || gc_is_over (s))
            continue;
        k = until (u, t->from, trial_milestone (from, t->from_length));
        if (k < u->n)
            u->stays[k] = true;
    }
}

static void need_of_best (struct units *u)
{
    const struct sweep *s = u->sweep;
    long best = sweep_best (s);
    size_t k = u->n;

    if (best)
        k = until (u, best,
                   trial_milestone (sweep_trial (s, best), trial_result (s, best, 0).length));
    if (k < u->n)
        u->stays[k] = true;
}

static int keep_by_policy (struct units *u, struct gc_policy policy)
{
    int rv = gc_mark (&policy, u->sweep->exp->search.smaller_is_better, u->list, u->n);

    for (size_t i = 0; rv == 0 && i < u->n; i++)
        u->stays[i] = u->stays[i] || u->list[i].kept;
    return rv;
}

static int choose (struct units *u)
{
    struct gc_policy p = u->sweep->exp->policy;

    for (size_t i = 0, end; i < u->n; i = end) {
        long trial = u->list[i].trial;
        for (end = i; end < u->n && u->list[end].trial == trial; end++)
            ;
        set_metrics (u, trial);
        drop_unaccepted (u, i, end);
        if (!gc_keeps_nothing (u->sweep) && may_go_on (u->sweep, sweep_trial (u->sweep, trial)))
            need_newest (u, i, end);
    }
    need_of_others (u);
    if (p.experiment_best || p.trial_best)
        need_of_best (u);
    if (keep_by_policy (u, (struct gc_policy){ 0, p.trial_best, p.trial_latest }) < 0)
        return -1;
    for (size_t i = 0; i < u->n; i++)
        u->list[i].metric = u->compared[i];
    return keep_by_policy (u, (struct gc_policy){ p.experiment_best, 0, 0 });
}

/* Files of one kind. */
static int mark_kind (const struct sweep *s, struct trainer_file *f, size_t n)
{
    struct units u = { s, calloc (n, sizeof (*u.list)), calloc (n, sizeof (*u.compared)),
                       calloc (n, sizeof (*u.stays)), 0 };
    int rv = -1;

    if (u.list && u.compared && u.stays) {
        for (size_t i = 0; i < n; i++) {
            if (i > 0 && f[i].trial == f[i - 1].trial && f[i].attempt == f[i - 1].attempt)
                continue;
            u.compared[u.n] = NAN;
            u.list[u.n++] = (struct gc_checkpoint){
                .trial = f[i].trial, .attempt = f[i].attempt, .step = f[i].attempt, .metric = NAN
            };
        }
        rv = choose (&u);
        for (size_t i = 0, k = 0; rv == 0 && i < n; i++) {
            while (u.list[k].trial != f[i].trial || u.list[k].attempt != f[i].attempt)
                k++;
            f[i].kept = u.stays[k];
        }
    }
    free (u.list);
    free (u.compared);
    free (u.stays);
    return rv;
}

int trainer_files_list (const struct sweep *s, char *const *patterns, struct trainer_files *list)
{
    struct file_listing l = { .sweep = s, .patterns = patterns, .list = list };

    *list = (struct trainer_files){ 0 };
    return list_all (&l);
}

int trainer_files_mark (const struct sweep *s, char *const *patterns, struct trainer_files *list)
{
    int rv = trainer_files_list (s, patterns, list);

    for (size_t i = 0, end; rv == 0 && i < list->n; i = end) {
        for (end = i; end < list->n && !strcmp (list->files[end].kind, list->files[i].kind); end++)
            ;
        rv = mark_kind (s, &list->files[i], end - i);
    }
    return rv;
}

void trainer_files_free (struct trainer_files *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free (list->files[i].path);
        free (list->files[i].kind);
    }
    free (list->files);
    *list = (struct trainer_files){ 0 };
}
