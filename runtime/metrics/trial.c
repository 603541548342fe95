/* SPDX-License-Identifier: Apache-2.0 */
/* Read all attempts of a trial, and mark the rows that a later attempt superseded. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/metrics/table.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"

/* The first step of a metric in an attempt. */
struct limit {
    char name[NAME_SIZE];
    int64_t step; /* rows of earlier attempts from here on are superseded */
};

struct attempt {
    long number;
    int64_t resumed; /* first step it resumed from; INT64_MAX: it started from scratch */
    struct limit *limits;
    size_t n;
};

struct trial {
    const char *dir;
    struct attempt *attempts;
    size_t n;
    struct attempt *now; /* being read */
    int64_t *steps;      /* limit for each name in the current file */
    slurmdl_row_f f;
    void *arg;
    double epoch;
    struct slurmdl_error damage; /* about the first damaged file */
};

/* ---- steps at which attempts resumed ---- */

static int lowest_resume (const char *path, void *arg, struct slurmdl_error *err)
{
    struct table t;
    int64_t *step = arg;
    int rv = table_open (&t, path, err);

    for (size_t i = 0; i < t.nresumes; i++)
        if (t.resumes[i].step < *step)
            *step = t.resumes[i].step;
    table_close (&t);
    return rv < 0 && errno != EBADMSG ? -1 : 0;
}

int slurmdl_resumed_at (const char *dir, int64_t *step)
{
    int64_t lowest = INT64_MAX;

    if (each_metrics_file (dir, lowest_resume, &lowest, NULL) < 0)
        return -1;
    if (lowest == INT64_MAX)
        return 0;
    *step = lowest;
    return 1;
}

static int compare_attempts (const void *a, const void *b)
{
    const struct attempt *x = a;
    const struct attempt *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

static long attempt_number (const char *name)
{
    char *end;
    long n = strncmp (name, "a.", 2) ? 0 : strtol (name + 2, &end, 10);

    return n > 0 && !*end ? n : 0;
}

static int list_attempts (struct trial *t)
{
    int fd = inside_open_any (t->dir, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *d = fd < 0 ? NULL : fdopendir (fd);
    struct dirent *e;
    int rv = d || errno == ENOENT ? 0 : -1;

    while (d && rv == 0 && (e = readdir (d))) {
        struct attempt *list;
        long n = attempt_number (e->d_name);
        if (n == 0)
            continue;
        list = realloc (t->attempts, (t->n + 1) * sizeof (*list));
        if (list) {
            t->attempts = list;
            list[t->n++] = (struct attempt){ .number = n, .resumed = INT64_MAX };
        } else
            rv = -1;
    }
    if (d)
        closedir (d);
    if (t->n > 0)
        qsort (t->attempts, t->n, sizeof (*t->attempts), compare_attempts);
    return rv;
}

static const char *attempt_folder (const struct trial *t, char *buf, size_t size)
{
    snprintf (buf, size, "%s/a.%ld", t->dir, t->now->number);
    return buf;
}

/* ---- first pass: the first step of each metric in each attempt ---- */

static struct limit *find_limit (const struct attempt *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp (a->limits[i].name, name))
            return &a->limits[i];
    return NULL;
}

static int lower_limit (struct attempt *a, const char *name, int64_t step)
{
    struct limit *l = find_limit (a, name);

    if (!l) {
        if (!(l = realloc (a->limits, (a->n + 1) * sizeof (*l))))
            return -1;
        a->limits = l;
        l += a->n++;
        memcpy (l->name, name, NAME_SIZE);
        l->step = step;
    }
    l->step = step < l->step ? step : l->step;
    return 0;
}

static int lower_steps (const struct table *t, const struct row *rows, size_t n, uint64_t first,
                        void *arg)
{
    struct trial *trial = arg;

    (void)t;
    (void)first;
    for (size_t i = 0; i < n; i++)
        if (rows[i].step < trial->steps[rows[i].name])
            trial->steps[rows[i].name] = rows[i].step;
    return 0;
}

static int64_t *make_steps (uint64_t n, int64_t value)
{
    int64_t *steps = malloc ((n + 1) * sizeof (*steps));

    for (uint64_t i = 0; steps && i < n; i++)
        steps[i] = value;
    return steps;
}

static int note_file (const char *path, void *arg, struct slurmdl_error *err)
{
    struct trial *trial = arg;
    struct table t;
    int rv = table_open (&t, path, NULL);

    (void)err; /* the second pass reports errors */
    if (rv < 0 && errno == EBADMSG) {
        table_close (&t);
        return 0;
    }
    for (size_t i = 0; i < t.nresumes; i++)
        if (t.resumes[i].step < trial->now->resumed)
            trial->now->resumed = t.resumes[i].step;
    trial->steps = rv == 0 ? make_steps (t.nnames, INT64_MAX) : NULL;
    if (rv == 0)
        rv = trial->steps ? table_read_rows (&t, lower_steps, trial, NULL) : -1;
    if (rv < 0 && trial->steps && errno == EBADMSG)
        rv = 0;
    for (uint64_t i = 0; rv == 0 && i < t.nnames; i++)
        if (trial->steps[i] < INT64_MAX)
            rv = lower_limit (trial->now, t.names[i], trial->steps[i]);
    free (trial->steps);
    table_close (&t);
    return rv;
}

/* The lowest step from which a later attempt superseded the metric. */
static int64_t limit_of (const struct trial *t, const char *name)
{
    const struct attempt *end = t->attempts + t->n;
    int64_t least = INT64_MAX;

    for (const struct attempt *a = t->now + 1; a < end; a++) {
        const struct limit *l = find_limit (a, name);
        if (l && l->step < least)
            least = l->step;
        if (a->resumed < INT64_MAX && a->resumed + 1 < least)
            least = a->resumed + 1;
    }
    return least;
}

static int pass_trial_rows (const struct table *t, const struct row *rows, size_t n, uint64_t first,
                            void *arg)
{
    struct trial *g = arg;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < n; i++) {
        const struct row *r = &rows[i];
        const char *name = t->names[r->name];
        if (!strcmp (name, "epoch"))
            g->epoch = r->value;
        struct slurmdl_row row = { r->step, r->time, r->value, name, g->epoch, g->now->number, 0 };
        row.superseded = r->step >= g->steps[r->name] || table_superseded (t, first + i, r);
        rv = g->f (&row, g->arg);
    }
    return rv;
}

static int give_file (const char *path, void *arg, struct slurmdl_error *err)
{
    struct trial *trial = arg;
    struct slurmdl_error why = { "" };
    struct table t;
    int rv = table_open (&t, path, &why);

    trial->epoch = NAN;
    trial->steps = rv == 0 ? make_steps (t.nnames, INT64_MAX) : NULL;
    for (uint64_t i = 0; trial->steps && i < t.nnames; i++)
        trial->steps[i] = limit_of (trial, t.names[i]);
    if (rv == 0)
        rv = trial->steps ? table_read_rows (&t, pass_trial_rows, trial, &why)
                          : errorf (&why, "out of memory");
    free (trial->steps);
    table_close (&t);
    if (rv >= 0)
        return rv;
    if (errno != EBADMSG)
        return errorf (err, "%s", why.text);
    errorf (&trial->damage, "%s", why.text);
    return 0;
}

int slurmdl_trial_read (const char *dir, slurmdl_row_f f, void *arg, struct slurmdl_error *err)
{
    struct trial t = { .dir = dir, .f = f, .arg = arg };
    char path[PATH_MAX];
    int rv = list_attempts (&t);

    error_clear (err);
    if (rv < 0)
        errorf (err, "%s: cannot list the attempts: %s", dir, inside_error (errno));
    /* the first attempt supersedes nothing */
    for (size_t i = 1; rv == 0 && i < t.n; i++) {
        t.now = &t.attempts[i];
        rv = each_metrics_file (attempt_folder (&t, path, sizeof (path)), note_file, &t, err);
    }
    for (size_t i = 0; rv == 0 && i < t.n; i++) {
        t.now = &t.attempts[i];
        rv = each_metrics_file (attempt_folder (&t, path, sizeof (path)), give_file, &t, err);
    }
    for (size_t i = 0; i < t.n; i++)
        free (t.attempts[i].limits);
    free (t.attempts);
    if (rv != 0 || !*t.damage.text)
        return rv;
    errno = EBADMSG;
    return errorf (err, "%s", t.damage.text);
}
