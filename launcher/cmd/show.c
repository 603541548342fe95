/* SPDX-License-Identifier: Apache-2.0 */
/* dl show: one experiment, one trial. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/overview.h"
#include "launcher/format/trials_table.h"
#include "launcher/session/open.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"

struct printing {
    const struct sweep *sweep;
    long trial;
    long attempt; /* whose heading was printed last */
    long last;
};

/* The headings of all attempts up to this one. */
static void print_headings (struct printing *p, long attempt)
{
    char dir[PATH_MAX];

    while (p->attempt < attempt) {
        snprintf (dir,
                  sizeof (dir),
                  "%s/trials/%04ld/a.%ld",
                  p->sweep->dir,
                  p->trial,
                  ++p->attempt);
        if (access (dir, F_OK) == 0)
            printf ("  attempt %ld: %s\n", p->attempt, dir);
    }
}

static int print_row (const struct slurmdl_row *row, void *arg)
{
    const struct printing *p = arg;

    if (row->superseded || row->attempt > p->last)
        return 0;
    print_headings (arg, row->attempt);
    printf (
        "    %-32s %8lld  %.9g\n", row->name, (long long)row->step, row->value);
    return 0;
}

static void print_attempts (const struct sweep *s, long trial, long last)
{
    struct printing p = { .sweep = s, .trial = trial, .last = last };
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", s->dir, trial);
    if (slurmdl_trial_read (dir, print_row, &p, &err) < 0)
        complain ("%s", err.text);
    print_headings (&p, last);
}

static void show_trial (const struct sweep *s, long n)
{
    struct sweep_trial *t = sweep_trial (s, n);
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
        printf ("  starts from the checkpoint of trial %ld at length %lld\n",
                t->from,
                (long long)t->from_length);
    for (size_t i = 1; i < sweep_metrics (s) && t->values; i++)
        printf ("  %s: %.6g\n", sweep_metric (s, i), t->values[i]);
    if (t->why)
        printf ("  last failure: %s\n", t->why);
    print_attempts (s, n, t->over + 1);
    free (text);
}

int cmd_show (const struct settings *st)
{
    struct sweep *s;
    int rv = open_experiment (st, st->args[0], &s);
    long n;

    if (rv)
        return rv;
    if (st->nargs == 2) {
        if ((rv = parse_trial (s, st->args[1], &n)) == 0)
            show_trial (s, n);
    } else {
        if (!st->json)
            print_overview (s);
        print_trials (s, (long)st->trials, st->json);
    }
    sweep_close (s);
    return rv;
}
