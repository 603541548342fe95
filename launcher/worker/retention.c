/* SPDX-License-Identifier: Apache-2.0 */
/* Find, verify and remove the checkpoints that the policy does not keep. */
#include "launcher/worker/worker.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/config/checkpoint_policy.h"
#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/trainer/trainer.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

/* ---- the policy ---- */

typedef int (*order_f) (const struct gc_checkpoint *a, const struct gc_checkpoint *b, bool smaller);

static int by_ckpt_trial (const struct gc_checkpoint *a, const struct gc_checkpoint *b)
{
    return a->trial < b->trial ? -1 : a->trial > b->trial;
}

/* Sort by trial, the latest checkpoint first; of one step, put the one that a restore takes first.
 */
static int latest_first (const struct gc_checkpoint *a, const struct gc_checkpoint *b, bool smaller)
{
    int rv = by_ckpt_trial (a, b);

    (void)smaller;
    if (rv)
        return rv;
    if (a->step != b->step)
        return a->step > b->step ? -1 : 1;
    if (a->accepted != b->accepted)
        return a->accepted ? -1 : 1;
    return a->attempt > b->attempt ? -1 : a->attempt < b->attempt;
}

static int best_first (const struct gc_checkpoint *a, const struct gc_checkpoint *b, bool smaller)
{
    if (a->metric != b->metric)
        return (a->metric < b->metric) == smaller ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return by_ckpt_trial (a, b);
}

static int best_of_trial_first (const struct gc_checkpoint *a, const struct gc_checkpoint *b,
                                bool smaller)
{
    int rv = by_ckpt_trial (a, b);

    return rv ? rv : best_first (a, b, smaller);
}

struct keep_sorting {
    order_f order;
    bool smaller;
};

static int compare_ordered (const void *a, const void *b, void *arg)
{
    const struct keep_sorting *s = arg;

    return s->order (*(struct gc_checkpoint *const *)a, *(struct gc_checkpoint *const *)b,
                     s->smaller);
}

static void sort_checkpoints (struct gc_checkpoint **list, size_t n, order_f order, bool smaller)
{
    struct keep_sorting s = { order, smaller };

    qsort_r (list, n, sizeof (struct gc_checkpoint *), compare_ordered, &s);
}

/* List the ones that a restore may take, one per step of a trial, in the order of latest_first().
 */
static size_t list_restorable (struct gc_checkpoint **out, struct gc_checkpoint *list, size_t n)
{
    size_t all = 0;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        list[i].kept = false;
        if (!list[i].bad)
            out[all++] = &list[i];
    }
    sort_checkpoints (out, all, latest_first, false);
    for (size_t i = 0; i < all; i++)
        if (kept == 0 || by_ckpt_trial (out[kept - 1], out[i])
            || out[kept - 1]->step != out[i]->step)
            out[kept++] = out[i];
    return kept;
}

static size_t drop_unvalidated (struct gc_checkpoint **list, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite (list[i]->metric))
            list[kept++] = list[i];
    return kept;
}

/* Keep the first 'most' of the list, or of each trial in it. */
static void keep_first_of (struct gc_checkpoint **list, size_t n, bool of_trial, int64_t most)
{
    int64_t taken = 0;

    for (size_t i = 0; i < n; i++) {
        if (of_trial && i > 0 && by_ckpt_trial (list[i - 1], list[i]))
            taken = 0;
        if (taken++ < most)
            list[i]->kept = true;
    }
}

void gc_mark (const struct checkpoint_policy *policy, bool smaller, struct gc_checkpoint *list,
              size_t n)
{
    struct gc_checkpoint **order = xcalloc (n + 1, sizeof (*order));
    size_t m;

    m = list_restorable (order, list, n);
    keep_first_of (order, m, true, policy->trial_latest);
    m = drop_unvalidated (order, m);
    sort_checkpoints (order, m, best_of_trial_first, smaller);
    keep_first_of (order, m, true, policy->trial_best);
    sort_checkpoints (order, m, best_first, smaller);
    keep_first_of (order, m, false, policy->experiment_best);
    free (order);
}

/* Whether the experiment ended by itself; one that was stopped or killed may be continued. */
static bool gc_is_over (const struct sweep *s)
{
    return s->state == SWEEP_COMPLETED || s->state == SWEEP_FAILED || s->state == SWEEP_PARTIAL;
}

/* Whether it is over and the policy is 0, 0, 0. */
static bool gc_keeps_nothing (const struct sweep *s)
{
    const struct checkpoint_policy *p = s->exp->checkpoints;

    return gc_is_over (s) && !p->experiment_best && !p->trial_best && !p->trial_latest;
}

/* ---- files that trainers saved themselves ---- */

struct file_listing {
    const struct sweep *sweep;
    char *const *patterns;
    struct trainer_files *list;
    long trial;
    long attempt;
    char dir[PATH_MAX]; /* of the attempt */
};

/* Returns the part of 'path', which is relative to the attempt's folder, that the user knows; NULL:
 * the file is dl's own.
 */
static const char *name_below_attempt (const struct file_listing *l, const char *path)
{
    const char *file = l->sweep->exp->metric->file;
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

/* A pattern that matches a folder matches all files in it. */
static bool matches_patterns (const struct file_listing *l, const char *name)
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

/* "epoch_12.pt" is a later "epoch_3.pt", but "best.pt" and "last.pt" are of different kinds. */
static char *file_kind (const char *name)
{
    char *kind = xstrdup (name), *to = kind;

    for (const char *p = name; *p; p++)
        if (!isdigit ((unsigned char)*p))
            *to++ = *p;
        else if (p == name || !isdigit ((unsigned char)p[-1]))
            *to++ = '#';
    *to = '\0';
    return kind;
}

static int add_trainer_file (const char *path, const struct stat *st, void *arg)
{
    const struct file_listing *l = arg;
    struct trainer_file f = { .trial = l->trial, .attempt = l->attempt, .bytes = st->st_size };
    const char *name = name_below_attempt (l, path);

    if (!S_ISREG (st->st_mode) || st->st_size == 0 || !name || !matches_patterns (l, name))
        return 0;
    XGROW (l->list->files, l->list->n);
    f.kind = file_kind (name);
    f.path = xasprintf ("%s/%s", l->dir, path);
    f.below = f.path + strlen (f.path) - strlen (name);
    l->list->files[l->list->n++] = f;
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

/* Skip an attempt that is not over: it may be writing its files. */
static int list_all (struct file_listing *l)
{
    const struct sweep *s = l->sweep;

    for (l->trial = 1; l->trial <= s->ntrials; l->trial++) {
        long last = sweep_trial (s, l->trial)->over + gc_is_over (s);
        for (l->attempt = 1; l->attempt <= last; l->attempt++) {
            snprintf (l->dir, sizeof (l->dir), "%s/trials/%04ld/a.%ld", s->dir, l->trial,
                      l->attempt);
            if (working_copy_each (l->dir, add_trainer_file, l) < 0)
                return -1;
        }
    }
    if (l->list->n)
        qsort (l->list->files, l->list->n, sizeof (*l->list->files), by_kind);
    return 0;
}

/* ---- which of these stay ---- */

/* The files of one kind, by trial and attempt. */
struct units {
    const struct sweep *sweep;
    struct gc_checkpoint *list; /* one per attempt; 'step' is the attempt's number */
    double *compared;           /* its value at the length where points are compared, or NaN */
    bool *stays;
    size_t n;
};

static size_t first_unit_of (const struct units *u, long trial)
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

/* The newest unit of a trial up to that attempt, or u->n: the attempt's own, or the one it resumed
 * from and did not write again.
 */
static size_t newest_unit_until (const struct units *u, long trial, long attempt)
{
    size_t found = u->n;

    for (size_t i = first_unit_of (u, trial); i < u->n && u->list[i].trial == trial; i++)
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
        size_t k = newest_unit_until (u, trial, m->attempt);
        if (k == u->n)
            continue;
        u->list[k].accepted = true;
        u->list[k].metric = m->metric;
        if (r.compared && m->length == r.length)
            u->compared[k] = point_result (s, trial_point (s, trial), 0).value;
    }
}

/* If a trial has results, ignore the units of attempts without one. */
static void drop_unaccepted (struct units *u, size_t i, size_t end)
{
    bool any = false;

    for (size_t k = i; k < end; k++)
        any = any || u->list[k].accepted;
    for (size_t k = i; k < end; k++)
        u->list[k].bad = any && !u->list[k].accepted;
}

static bool trial_may_be_retried (const struct sweep *s, const struct sweep_trial *t)
{
    return t->state == TRIAL_FAILED /* dl retry */
           || (!gc_is_over (s) && t->state != TRIAL_REJECTED);
}

static bool unit_has_logged (const struct sweep *s, const struct gc_checkpoint *c)
{
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, c->trial, c->attempt);
    return attempt_has_logged (dir);
}

enum { SPARE = 2 }; /* attempts whose files stay for the next one to resume from */

static void keep_newest_units (struct units *u, size_t i, size_t end)
{
    int found = 0;

    while (end > i && found < SPARE) {
        u->stays[--end] = true;
        found += unit_has_logged (u->sweep, &u->list[end]);
    }
}

/* Keep the units that another trial starts from. */
static void keep_sources (struct units *u)
{
    const struct sweep *s = u->sweep;

    for (long n = 1; n <= s->ntrials; n++) {
        const struct sweep_trial *t = sweep_trial (s, n);
        const struct sweep_trial *from = sweep_trial (s, t->from);
        size_t k;
        if (!from || t->nmilestones || gc_is_over (s))
            continue;
        k = newest_unit_until (u, t->from, trial_milestone (from, t->from_length));
        if (k < u->n)
            u->stays[k] = true;
    }
}

static void keep_best_unit (struct units *u)
{
    const struct sweep *s = u->sweep;
    long best = sweep_best (s);
    size_t k = u->n;

    if (best)
        k = newest_unit_until (
            u, best, trial_milestone (sweep_trial (s, best), trial_result (s, best, 0).length));
    if (k < u->n)
        u->stays[k] = true;
}

static void keep_by_policy (struct units *u, struct checkpoint_policy policy)
{
    gc_mark (&policy, u->sweep->exp->search->config.smaller_is_better, u->list, u->n);
    for (size_t i = 0; i < u->n; i++)
        u->stays[i] = u->stays[i] || u->list[i].kept;
}

static void choose_units (struct units *u)
{
    struct checkpoint_policy p = *u->sweep->exp->checkpoints;

    for (size_t i = 0, end; i < u->n; i = end) {
        long trial = u->list[i].trial;
        for (end = i; end < u->n && u->list[end].trial == trial; end++)
            ;
        set_metrics (u, trial);
        drop_unaccepted (u, i, end);
        if (!gc_keeps_nothing (u->sweep)
            && trial_may_be_retried (u->sweep, sweep_trial (u->sweep, trial)))
            keep_newest_units (u, i, end);
    }
    keep_sources (u);
    if (p.experiment_best || p.trial_best)
        keep_best_unit (u);
    keep_by_policy (u, (struct checkpoint_policy){ 0, p.trial_best, p.trial_latest });
    for (size_t i = 0; i < u->n; i++)
        u->list[i].metric = u->compared[i];
    keep_by_policy (u, (struct checkpoint_policy){ p.experiment_best, 0, 0 });
}

/* Mark the files of one kind. */
static void mark_kind (const struct sweep *s, struct trainer_file *f, size_t n)
{
    struct units u = { s, xcalloc (n, sizeof (*u.list)), xcalloc (n, sizeof (*u.compared)),
                       xcalloc (n, sizeof (*u.stays)), 0 };
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && f[i].trial == f[i - 1].trial && f[i].attempt == f[i - 1].attempt)
            continue;
        u.compared[u.n] = NAN;
        u.list[u.n++] = (struct gc_checkpoint){
            .trial = f[i].trial, .attempt = f[i].attempt, .step = f[i].attempt, .metric = NAN
        };
    }
    choose_units (&u);
    for (size_t i = 0, k = 0; i < n; i++) {
        while (u.list[k].trial != f[i].trial || u.list[k].attempt != f[i].attempt)
            k++;
        f[i].kept = u.stays[k];
    }
    free (u.list);
    free (u.compared);
    free (u.stays);
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
        mark_kind (s, &list->files[i], end - i);
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

/* ---- removing a file ---- */

/* If the file system has no hard links, the name is a symbolic link to a hidden file beside it. */
static int remove_from (int folder, const char *name)
{
    char target[64];
    ssize_t n = readlinkat (folder, name, target, sizeof (target) - 1);

    if (unlinkat (folder, name, 0) < 0 && errno != ENOENT)
        return -1;
    target[n > 0 ? n : 0] = '\0';
    if (!inside_is_hidden (target))
        return 0;
    return unlinkat (folder, target, 0) < 0 && errno != ENOENT ? -1 : 0;
}

/* Remove a file, and the hidden file that it links to.  A missing file is no failure. */
static int removal_file (const char *path)
{
    const char *name;
    int folder = inside_parent (path, &name);
    int rv = folder < 0 ? -1 : remove_from (folder, name);
    int e = errno;

    if (folder >= 0)
        close (folder);
    errno = e;
    return rv;
}

/* Remove the folder of 'path' if it is empty: it takes an inode as well. */
static void removal_folder (const char *path)
{
    char folder[PATH_MAX];

    snprintf (folder, sizeof (folder), "%.*s", (int)(strrchr (path, '/') - path), path);
    inside_unlink (folder, AT_REMOVEDIR);
}

/* ---- files that killed writers left ---- */

struct leftover_search {
    int (*f) (const char *path, int64_t bytes, void *arg);
    void *arg;
    double least; /* seconds after which the writer of a file has renamed it */
};

static const double leftover_age = 60;

/* Without hard links, names are symbolic links to hidden files, which must stay.  'now' is set to
 * the file system's time.
 */
static bool has_hard_links (int folder, struct timespec *now)
{
    char a[64];
    char b[64];
    struct stat st;
    int fd;
    bool has;

    link_tmp_name (a, sizeof (a), "");
    link_tmp_name (b, sizeof (b), "");
    fd = openat (folder, a, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    has = fstat (fd, &st) == 0 && linkat (folder, a, folder, b, 0) == 0;
    close (fd);
    unlinkat (folder, b, 0);
    unlinkat (folder, a, 0);
    *now = st.st_mtim;
    return has;
}

/* A hidden file, or a symbolic link that a machine without hard links may have made to a hidden
 * file.
 */
static int may_be_leftover (const struct dirent *e)
{
    return inside_is_hidden (e->d_name) || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN;
}

/* Skip files that somebody may still be writing. */
static int visit_hidden (const struct leftover_search *s, const char *dir, const char *name,
                         const struct stat *st, const struct timespec *now)
{
    char path[PATH_MAX];

    if (!inside_is_hidden (name) || !S_ISREG (st->st_mode)
        || difftime (now->tv_sec, st->st_mtim.tv_sec) < s->least
        || snprintf (path, sizeof (path), "%s/%s", dir, name) >= (int)sizeof (path))
        return 0;
    return s->f (path, st->st_size, s->arg);
}

static int visit_hidden_in (const struct leftover_search *s, const char *dir, int folder, int n,
                            char **names)
{
    struct stat *st = xcalloc ((size_t)n + 1, sizeof (*st));
    struct timespec now = { 0 };
    bool links = false;
    int rv = 0;

    for (int i = 0; i < n && !links; i++)
        links =
            fstatat (folder, names[i], &st[i], AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK (st[i].st_mode);
    if (!links && has_hard_links (folder, &now))
        for (int i = 0; i < n && rv == 0; i++)
            rv = visit_hidden (s, dir, names[i], &st[i], &now);
    free (st);
    return rv;
}

static int search_folder (const struct leftover_search *s, const char *dir)
{
    struct dirent **list = NULL;
    int folder = inside_open (dir, O_RDONLY | O_DIRECTORY, 0, NULL);
    int n = folder < 0 ? -1 : scandirat (folder, ".", &list, may_be_leftover, NULL);
    char **names = n > 0 ? xcalloc ((size_t)n, sizeof (*names)) : NULL;
    bool hidden = false;
    int rv = n < 0 && errno != ENOENT ? -1 : 0;

    for (int i = 0; i < n; i++) {
        names[i] = list[i]->d_name;
        hidden = hidden || inside_is_hidden (names[i]);
    }
    if (hidden)
        rv = visit_hidden_in (s, dir, folder, n, names);
    for (int i = 0; i < n; i++)
        free (list[i]);
    free (names);
    free (list);
    return inside_close (folder, rv);
}

/* The log's folders of entries. */
static int search_log (const struct leftover_search *s, const char *dir)
{
    char path[PATH_MAX];
    struct dirent *e;
    int fd = inside_open (dir, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *d = fd < 0 ? NULL : fdopendir (fd);
    int rv = search_folder (s, dir);

    while (d && rv == 0 && (e = readdir (d))) {
        if (!*e->d_name || e->d_name[strspn (e->d_name, "0123456789")])
            continue;
        snprintf (path, sizeof (path), "%s/%s", dir, e->d_name);
        rv = search_folder (s, path);
    }
    if (d)
        closedir (d);
    return rv;
}

static bool attempt_has_result (const struct sweep_trial *t, long attempt)
{
    for (size_t i = 0; i < t->nmilestones; i++)
        if (t->milestones[i].attempt == attempt)
            return true;
    return false;
}

static int search_trial (const struct leftover_search *search, const struct sweep *s, long n)
{
    const struct sweep_trial *t = sweep_trial (s, n);
    char path[PATH_MAX];
    bool killed = false;
    int rv = 0;

    for (long k = 1; rv == 0 && k <= t->over; k++) {
        if (attempt_has_result (t, k))
            continue;
        snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld", s->dir, n, k);
        rv = search_folder (search, path);
        killed = true;
    }
    if (!killed)
        return rv;
    snprintf (path, sizeof (path), "%s/trials/%04ld", s->dir, n);
    return rv == 0 ? search_folder (search, path) : rv;
}

/* Call 'f' for each hidden file that a killed writer left in an experiment without workers, other
 * than checkpoints: beside the experiment's own files, in log/ and workers/, and in attempts that
 * ended without a result.  A command that is still writing one of them writes it again
 * (publish_file.h).
 *
 * Returns what 'f' returned if that is not 0, or -1 with errno.
 */
static int leftovers_find (const struct sweep *s,
                           int (*f) (const char *path, int64_t bytes, void *arg), void *arg)
{
    const struct leftover_search search = { f, arg, leftover_age };
    char path[PATH_MAX];
    int rv;

    if ((rv = search_folder (&search, s->dir)) != 0)
        return rv;
    snprintf (path, sizeof (path), "%s/workers", s->dir);
    if ((rv = search_folder (&search, path)) != 0)
        return rv;
    snprintf (path, sizeof (path), "%s/log", s->dir);
    rv = search_log (&search, path);
    for (long n = 1; rv == 0 && n <= s->ntrials; n++)
        rv = search_trial (&search, s, n);
    return rv;
}

static int remove_leftover (const char *path, int64_t bytes, void *arg)
{
    (void)bytes;
    (void)arg;
    inside_unlink (path, 0);
    return 0;
}

void leftovers_clean_attempt (const struct sweep *s, long trial, long attempt)
{
    const struct leftover_search search = { .f = remove_leftover };
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld", s->dir, trial, attempt)
        < (int)sizeof (path))
        search_folder (&search, path);
}

/* ---- the checkpoints that exist ---- */

/* A checkpoint with its file. */
struct gc_item {
    struct gc_file file;
    bool whole; /* read and verified */
    bool held;  /* kept regardless of the policy */
};

struct shelf {
    const struct sweep *sweep;
    struct gc_checkpoint *list;
    struct gc_item *items; /* in the same order */
    size_t n;
    size_t *first; /* trial N has first[N] .. first[N + 1] - 1 */
    struct gc_report leftovers;
};

/* Whether the trial may be trained further, or another trial may start from it. */
static bool trial_may_go_on (const struct sweep *s, const struct sweep_trial *t)
{
    return !gc_is_over (s) && (t->state == TRIAL_OPEN || t->state == TRIAL_PAUSED);
}

/* ---- lists ---- */

/* Takes ownership of the path. */
static void add_checkpoint (struct shelf *sh, struct gc_checkpoint c, struct gc_file f)
{
    XGROW (sh->list, sh->n);
    XGROW (sh->items, sh->n);
    sh->list[sh->n] = c;
    sh->items[sh->n++] = (struct gc_item){ .file = f };
}

/* Takes ownership of the path. */
static void add_to_report (struct gc_report *r, struct gc_file f)
{
    XGROW (r->files, r->n);
    r->files[r->n++] = f;
}

/* ---- scanning ---- */

static int is_ckpt_name (const struct dirent *e)
{
    size_t n = strlen (e->d_name);

    if (e->d_name[0] == '.')
        return inside_is_hidden (e->d_name);
    return n >= 11 && !strcmp (e->d_name + n - 3, ".h5")
           && strspn (e->d_name, "0123456789") == n - 3;
}

static int by_ckpt_step (const struct dirent **a, const struct dirent **b)
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

static int64_t ckpt_bytes (struct ckpt_folder *folder, const char *name)
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

static void shelve_name (struct shelf *sh, struct ckpt_folder *folder, const char *name,
                         struct gc_checkpoint c)
{
    struct gc_file f = { .path = xasprintf ("%s/%s", folder->path, name), .outcome = GC_LEFTOVER };

    f.bytes = ckpt_bytes (folder, name);
    c.step = strtoll (name, NULL, 10);
    if (*name == '.')
        add_to_report (&sh->leftovers, f);
    else
        add_checkpoint (sh, c, f);
}

/* Keep the hidden files found since 'before': the attempt may still be writing them, or names in
 * the folder are symbolic links to them.
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
    int n = -1;

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/ckpt", sh->sweep->dir, trial, attempt);
    folder.fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (folder.fd >= 0)
        n = scandirat (folder.fd, ".", &names, is_ckpt_name, by_ckpt_step);
    if (n < 0)
        return errno == ENOENT ? 0 : -1;
    for (int i = 0; i < n; i++) {
        shelve_name (sh, &folder, names[i]->d_name, c);
        free (names[i]);
    }
    free (names);
    close (folder.fd);
    if (folder.links || (!gc_is_over (sh->sweep) && attempt > t->over))
        keep_leftovers (sh, before);
    return 0;
}

/* Oldest attempt first: this is the order of removal. */
static int scan_checkpoints (struct shelf *sh, struct slurmdl_error *err)
{
    const struct sweep *s = sh->sweep;

    sh->first = xcalloc ((size_t)s->ntrials + 2, sizeof (*sh->first));
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

static int add_leftover (const char *path, int64_t bytes, void *arg)
{
    struct shelf *sh = arg;
    add_to_report (&sh->leftovers, (struct gc_file){ xstrdup (path), bytes, GC_LEFTOVER });
    return 0;
}

/* Skip this until the sweep has ended, because its workers may still be writing them. */
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
    long attempt; /* whose metrics are being read */
};

/* The metric of the attempt that saved the checkpoint wins, else that of the last attempt. */
static int keep_validation (const struct slurmdl_row *row, void *arg)
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

static void hold_trial (struct shelf *sh, long trial)
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
        if (slurmdl_metrics_read_dir (dir, keep_validation, &v, NULL) < 0)
            hold_trial (sh, trial);
    }
}

static void read_all_validations (struct shelf *sh)
{
    const struct checkpoint_policy *p = sh->sweep->exp->checkpoints;

    if (!p->experiment_best && !p->trial_best)
        return;
    for (long n = 1; n <= sh->sweep->ntrials; n++)
        if (sh->first[n] < sh->first[n + 1])
            read_validations (sh, n);
}

/* ---- which stay ---- */

/* The order in which slurmdl_restore() chooses. */
static bool restored_before (const struct gc_checkpoint *a, const struct gc_checkpoint *b,
                             long prefer)
{
    if (a->step != b->step)
        return a->step > b->step;
    if ((a->attempt == prefer) != (b->attempt == prefer))
        return a->attempt == prefer;
    return a->attempt > b->attempt;
}

static void keep_restorable (struct shelf *sh, long trial, int64_t max_step, long prefer)
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

/* Keep the checkpoint of the best trial at the length where trials are compared; the policy ranks
 * by what was logged at each step only.
 */
static void keep_best_trial (struct shelf *sh)
{
    const struct sweep *s = sh->sweep;
    const struct checkpoint_policy *p = s->exp->checkpoints;
    long best = p->experiment_best || p->trial_best ? sweep_best (s) : 0;
    int64_t length = best ? trial_result (s, best, 0).length : 0;

    if (best)
        keep_restorable (sh, best, length, trial_milestone (sweep_trial (s, best), length));
}

static void keep_needed (struct shelf *sh)
{
    const struct sweep *s = sh->sweep;

    keep_best_trial (sh);
    for (long n = 1; n <= s->ntrials; n++) {
        const struct sweep_trial *t = sweep_trial (s, n);
        const struct sweep_trial *from = sweep_trial (s, t->from);
        long last = trial_last (t).attempt;
        if (!trial_may_go_on (s, t))
            continue;
        keep_restorable (sh, n, INT64_MAX, last);
        keep_restorable (sh, n, t->length, last);
        if (t->state == TRIAL_OPEN)
            keep_restorable (sh, n, t->target, last);
        if (from && t->nmilestones == 0)
            keep_restorable (sh, t->from, t->from_length, trial_milestone (from, t->from_length));
    }
}

/* Verify the checkpoints to keep.  Returns whether all are intact. */
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

static void choose_kept (struct shelf *sh)
{
    const struct experiment *e = sh->sweep->exp;

    do {
        gc_mark (e->checkpoints, e->search->config.smaller_is_better, sh->list, sh->n);
        keep_needed (sh);
    } while (!verify_kept (sh));
}

/* A file that does not verify is useless, but the network or the disk may just be failing: remove
 * it only if another one could be read.
 */
static enum gc_outcome outcome_of_item (const struct shelf *sh, size_t i)
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

/* ---- removal ---- */

/* Stop at the first failure and keep the rest. */
static int remove_reported (struct gc_report *r, bool folders, struct slurmdl_error *err)
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

/* Move the files to the report. */
static void report_shelf (struct shelf *sh, struct gc_report *r)
{
    for (size_t i = 0; i < sh->n; i++) {
        struct gc_file *f = &sh->items[i].file;
        f->outcome = outcome_of_item (sh, i);
        add_to_report (r, *f);
        f->path = NULL;
    }
    for (size_t i = 0; i < sh->leftovers.n; i++) {
        add_to_report (r, sh->leftovers.files[i]);
        sh->leftovers.files[i].path = NULL;
    }
}

/* Add the files that trainers saved themselves. */
static int report_trainer_files (const struct sweep *s, struct gc_report *r)
{
    struct trainer_files list;
    int rv = trainer_files_mark (s, s->exp->checkpoints->files, &list);

    for (size_t i = 0; rv == 0 && i < list.n; i++) {
        struct trainer_file *t = &list.files[i];
        add_to_report (r, (struct gc_file){ t->path, t->bytes, t->kept ? GC_KEPT : GC_DELETED });
        t->path = NULL;
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
    if (scan_checkpoints (&sh, err) < 0 || scan_leftovers (&sh, err) < 0)
        goto out;
    if (!gc_keeps_nothing (s)) {
        read_all_validations (&sh);
        choose_kept (&sh);
    }
    report_shelf (&sh, report);
    if (s->exp->checkpoints->files && report_trainer_files (s, report) < 0)
        errorf (err, "%s/trials: cannot list what trials saved: %s", s->dir, inside_error (errno));
    else
        rv = dry ? 0 : remove_reported (report, gc_is_over (s), err);
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
