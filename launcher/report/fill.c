/* SPDX-License-Identifier: Apache-2.0 */
/* Gather what a report is of, from the folders of its experiments. */
#include "launcher/report/fill.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/report/attempts.h"
#include "launcher/sweep/queries.h"
#include "runtime/base/error.h"

static const char *end_of_path (const char *path)
{
    const char *slash = strrchr (path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static int fill_trials (struct report *r)
{
    for (size_t k = 0; k < r->nsweeps; k++)
        r->n += r->sweeps[k].s->ntrials;
    r->trials = calloc ((size_t)r->n + 1, sizeof (*r->trials));
    if (!r->trials)
        return -1;
    for (size_t k = 0, i = 0; k < r->nsweeps; k++) {
        r->sweeps[k].first = (long)i;
        for (long n = 1; n <= r->sweeps[k].s->ntrials; n++, i++)
            r->trials[i] = (struct report_trial){
                .sweep = k,
                .of = sweep_trial (r->sweeps[k].s, n),
                .number = n,
                .point = (long)i,
                .files.step = -1,
            };
    }
    return 0;
}

static void fill_points (struct report *r)
{
    for (long i = 0; i < r->n; i++) {
        struct report_trial *t = &r->trials[i];
        const struct sweep *s = r->sweeps[t->sweep].s;
        t->point = i - trial_repeat (s, t->number);
        r->repeats |= s->exp->search.repeats > 1;
    }
}

/* The best of the experiments' best ones. */
static void fill_best (struct report *r)
{
    r->best = -1;
    for (size_t k = 0; k < r->nsweeps; k++) {
        long i = r->sweeps[k].first + sweep_best (r->sweeps[k].s) - 1;
        if (sweep_best (r->sweeps[k].s)
            && (r->best < 0
                || report_better (
                    r, report_value (r, i, 0), report_value (r, r->best, 0))))
            r->best = i;
    }
}

static int by_length (const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int fill_lengths (struct report *r)
{
    size_t n = 0;

    r->lengths = malloc ((r->nresults + 1) * sizeof (*r->lengths));
    if (!r->lengths)
        return -1;
    for (size_t i = 0; i < r->nresults; i++)
        r->lengths[i] = r->results[i].length;
    qsort (r->lengths, r->nresults, sizeof (*r->lengths), by_length);
    for (size_t i = 0; i < r->nresults; i++)
        if (n == 0 || r->lengths[i] != r->lengths[n - 1])
            r->lengths[n++] = r->lengths[i];
    r->nlengths = n;
    return 0;
}

struct slot_entry {
    char *name;
    size_t old;
};

static int by_version (const void *a, const void *b)
{
    return strverscmp (((const struct slot_entry *)a)->name,
                       ((const struct slot_entry *)b)->name);
}

/* "job_2" before "job_10". */
static int sort_slots (struct report *r)
{
    size_t n = r->slots.n;
    struct slot_entry *list = malloc ((n + 1) * sizeof (*list));
    size_t *new = malloc ((n + 1) * sizeof (*new));

    for (size_t i = 0; list && i < n; i++)
        list[i] = (struct slot_entry){ r->slots.list[i], i };
    if (list && new) {
        qsort (list, n, sizeof (*list), by_version);
        for (size_t i = 0; i < n; i++) {
            r->slots.list[i] = list[i].name;
            new[list[i].old] = i;
        }
        for (size_t i = 0; i < r->nattempts; i++)
            r->attempts[i].slot = new[r->attempts[i].slot];
    }
    free (list);
    free (new);
    return list && new ? 0 : -1;
}

static void add_files (struct report_files *f, const char *dir, long attempt)
{
    DIR *d = opendir (dir);
    struct dirent *e;
    struct stat st;
    long long step;
    char end;

    while (d && (e = readdir (d))) {
        if (sscanf (e->d_name, "%lld.h%c", &step, &end) != 2 || end != '5'
            || fstatat (dirfd (d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0
            || !S_ISREG (st.st_mode))
            continue;
        f->n++;
        f->bytes += (double)st.st_size;
        if (step >= f->step) {
            f->step = step;
            f->attempt = attempt;
        }
    }
    if (d)
        closedir (d);
}

void report_fill_files (struct report *r)
{
    char dir[PATH_MAX];

    for (long i = 0; i < r->n; i++) {
        struct report_trial *t = &r->trials[i];
        for (long k = 1; k <= t->of->over + 1; k++) {
            snprintf (dir,
                      sizeof (dir),
                      "%s/trials/%04ld/a.%ld/ckpt",
                      r->sweeps[t->sweep].s->dir,
                      t->number,
                      k);
            add_files (&t->files, dir, k);
        }
    }
}

int report_fill (struct report *r,
                 struct sweep *const *list,
                 size_t n,
                 struct slurmdl_error *err)
{
    if (!(r->sweeps = calloc (n + 1, sizeof (*r->sweeps))))
        return errorf (err, "out of memory");
    r->nsweeps = n;
    for (size_t k = 0; k < n; k++) {
        r->sweeps[k].s = list[k];
        r->sweeps[k].name = end_of_path (list[k]->dir);
    }
    if (fill_trials (r) < 0)
        return errorf (err, "out of memory");
    for (size_t k = 0; k < n; k++)
        if (attempts_read (r, k, err) < 0)
            return -1;
    fill_points (r);
    fill_best (r);
    return sort_slots (r) < 0 || fill_lengths (r) < 0
               ? errorf (err, "out of memory")
               : 0;
}
