/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of an attempt say of it, whoever looks at them. */
#include "launcher/worker/traces.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sweep/queries.h"
#include "launcher/trainer/resume_dir.h"
#include "runtime/metrics/metrics.h"
#include "runtime/storage/inside.h"

static void path_of (char path[PATH_MAX], const struct sweep *s, long trial, long attempt)
{
    snprintf (path, PATH_MAX, "%.3900s/trials/%04ld/a.%ld", s->dir, trial, attempt);
}

/* ---- progress ---- */

static int keep_largest (const struct slurmdl_row *row, void *step)
{
    if (row->step > *(int64_t *)step)
        *(int64_t *)step = row->step;
    return 0;
}

/* Of any metric; INT64_MIN: none. */
static int64_t largest_step (const struct sweep *s, long trial, long attempt)
{
    int64_t step = INT64_MIN;
    char dir[PATH_MAX];

    path_of (dir, s, trial, attempt);
    slurmdl_metrics_read_dir (dir, keep_largest, &step, NULL);
    return step;
}

/* Larger files are compared up to here: what was trained differs early. */
enum { COMPARED = 4 << 20 };

static bool same_content (int a, int b)
{
    char x[16384], y[sizeof (x)];
    off_t at = 0;

    while (at < COMPARED) {
        ssize_t n = pread (a, x, sizeof (x), at);
        ssize_t m = pread (b, y, sizeof (y), at);
        if (n != m || n < 0 || memcmp (x, y, (size_t)n))
            return false;
        if (n == 0)
            break;
        at += n;
    }
    return true;
}

/* Whether 'dir' has a file that 'before' has not, or has otherwise. */
static bool is_new (const char *dir, const char *before, const char *name)
{
    char a[PATH_MAX], b[PATH_MAX];
    struct stat x, y;
    int fa, fb;
    bool new = false;

    if (snprintf (a, sizeof (a), "%s/%s", dir, name) >= (int)sizeof (a)
        || snprintf (b, sizeof (b), "%s/%s", before, name) >= (int)sizeof (b)
        || (fa = inside_open_any (a, O_RDONLY, 0, &x)) < 0)
        return false;
    fb = inside_open_any (b, O_RDONLY, 0, &y);
    if (S_ISREG (x.st_mode) && x.st_size > 0)
        new = fb < 0 || x.st_size != y.st_size || !same_content (fa, fb);
    close (fa);
    if (fb >= 0)
        close (fb);
    return new;
}

static bool has_new_file (const char *dir, const char *before)
{
    char a[PATH_MAX], b[PATH_MAX];
    DIR *d = opendir (dir);
    bool new = false;

    for (struct dirent *e; d && !new && (e = readdir (d));) {
        if (!strcmp (e->d_name, "ckpt")
            && snprintf (a, sizeof (a), "%s/ckpt", dir) < (int)sizeof (a)
            && snprintf (b, sizeof (b), "%s/ckpt", before) < (int)sizeof (b))
            new = has_new_file (a, b);
        else if (strcmp (e->d_name, "log") && strcmp (e->d_name, "hparams.json")
                 && strncmp (e->d_name, "metrics.", 8) && *e->d_name != '.')
            new = is_new (dir, before, e->d_name);
    }
    if (d)
        closedir (d);
    return new;
}

enum attempt_progress attempt_progress (const struct sweep *s, long trial, long attempt)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    struct trial_attempt a = { .sweep = s, .trial = trial, .number = attempt };
    int64_t had = t->length > 0 ? t->length : INT64_MIN;
    char before[PATH_MAX];

    if (attempt <= trial_last (t).attempt + 1)
        return PROGRESS_NONE;
    for (long k = trial_last (t).attempt + 1; k < attempt; k++) {
        int64_t step = largest_step (s, trial, k);
        had = step > had ? step : had;
    }
    if (largest_step (s, trial, attempt) > had)
        return PROGRESS_STEPS;
    path_of (a.dir, s, trial, attempt);
    return attempt_with_files (&a, NULL, before, sizeof (before)) == 0
                   && has_new_file (a.dir, before)
               ? PROGRESS_FILES
               : PROGRESS_NONE;
}

/* ---- time ---- */

/* s since the epoch, on the clock of the file system; NAN: there is no file. */
static double changed (const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    if (snprintf (path, sizeof (path), "%s/%s", dir, name) >= (int)sizeof (path)
        || lstat (path, &st) < 0)
        return NAN;
    return (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9;
}

double attempt_seconds (const struct sweep *s, long trial, long attempt, const char *nonce)
{
    char dir[PATH_MAX], worker[64];
    double began, ended;

    path_of (dir, s, trial, attempt);
    began = changed (dir, "hparams.json");
    ended = fmax (changed (dir, "log"), changed (dir, "metrics.h5"));
    snprintf (worker, sizeof (worker), "workers/%.32s", nonce);
    ended = fmax (ended, changed (s->dir, worker));
    return ended > began ? ended - began : 0;
}
