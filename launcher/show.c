/* SPDX-License-Identifier: Apache-2.0 */
/* dl show, dl logs: one experiment, one trial, its output. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd.h"

/* ---- dl show ---- */

static int trial_number (const struct sweep *s, const char *text, long *n)
{
    char *end;

    *n = strtol (text, &end, 10);
    if (end != text && !*end && sweep_trial (s, *n))
        return 0;
    complain ("%s: no trial '%s' (there are %ld)", s->dir, text, s->ntrials);
    return EXIT_NOT_FOUND;
}

static int print_row (const struct slurmdl_row *row, void *arg)
{
    (void)arg;
    printf (
        "    %-32s %8lld  %.9g\n", row->name, (long long)row->step, row->value);
    return 0;
}

static void print_attempt (const struct sweep *s, long trial, long attempt)
{
    char dir[PATH_MAX];

    snprintf (
        dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial, attempt);
    if (access (dir, F_OK) < 0)
        return;
    printf ("  attempt %ld: %s\n", attempt, dir);
    slurmdl_metrics_read_dir (dir, print_row, NULL, NULL);
}

static void show_trial (const struct sweep *s, long n)
{
    struct trial *t = sweep_trial (s, n);
    char *text = json_dumps (trial_hparams (s, t), JSON_SORT_KEYS);

    printf ("trial %ld: %s, length %lld, %s %.6g (best %.6g at %lld)\n",
            n,
            trial_state_name (s, t),
            (long long)t->length,
            s->exp->metric,
            t->metric,
            t->best,
            (long long)t->best_length);
    printf ("  hyperparameters: %s\n", text ? text : "");
    printf ("  seed: %u\n",
            (unsigned)searcher_trial_seed (s->exp->search.seed, n));
    if (t->from)
        printf ("  begun with trial %ld's checkpoint of length %lld\n",
                t->from,
                (long long)t->from_length);
    for (size_t i = 1; i < sweep_metrics (s) && t->values; i++)
        printf ("  %s: %.6g\n", sweep_metric (s, i), t->values[i]);
    if (t->why)
        printf ("  last failure: %s\n", t->why);
    for (long k = 1; k <= t->over + 1; k++)
        print_attempt (s, n, k);
    free (text);
}

static void show_header (const struct sweep *s)
{
    const struct trial *best = sweep_trial (s, s->best);

    printf ("%s: %s, searcher %s, %.0f %% done\n",
            s->dir,
            sweep_state_name (s->state),
            s->exp->searcher_name,
            floor (100 * searcher_progress (s->searcher)));
    if (best)
        printf ("best %s %.6g: trial %ld at length %lld\n",
                s->exp->metric,
                best->best,
                s->best,
                (long long)best->best_length);
    if (s->expired)
        printf ("searcher.max_hours (%g) is over: no segment begins any more\n",
                s->exp->max_hours);
    print_excluded (s);
}

int cmd_show (const struct settings *st)
{
    struct sweep *s;
    int rv = open_experiment (st, st->args[0], &s);
    long n;

    if (rv)
        return rv;
    if (st->nargs == 2) {
        if ((rv = trial_number (s, st->args[1], &n)) == 0)
            show_trial (s, n);
    } else {
        if (!st->json)
            show_header (s);
        print_trials (s, (long)st->trials, st->json);
    }
    sweep_close (s);
    return rv;
}

/* ---- dl logs ---- */

static int copy_file (const char *path)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    char buf[65536];
    ssize_t n;

    if (fd < 0) {
        complain ("%s: %s", path, strerror (errno));
        return EXIT_NOT_FOUND;
    }
    while ((n = read (fd, buf, sizeof (buf))) > 0)
        fwrite (buf, 1, (size_t)n, stdout);
    close (fd);
    return n < 0 ? EXIT_IO : EXIT_OK;
}

static long last_attempt (const struct sweep *s, long trial)
{
    long k = sweep_trial (s, trial)->over + 1;
    char dir[PATH_MAX];

    for (; k > 1; k--) {
        snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial, k);
        if (access (dir, F_OK) == 0)
            break;
    }
    return k;
}

int cmd_logs (const struct settings *st)
{
    bool named = st->nargs == 2;
    struct sweep *s;
    char path[PATH_MAX];
    int rv = open_experiment (st, named ? st->args[0] : NULL, &s);
    long n;

    if (rv)
        return rv;
    if ((rv = trial_number (s, st->args[named], &n)) == 0) {
        snprintf (path,
                  sizeof (path),
                  "%s/trials/%04ld/a.%ld/log",
                  s->dir,
                  n,
                  st->attempt ? (long)st->attempt : last_attempt (s, n));
        rv = copy_file (path);
    }
    sweep_close (s);
    return rv;
}
