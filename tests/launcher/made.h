/* SPDX-License-Identifier: Apache-2.0 */
/* Experiments and sweeps for tests: read from a file, created, opened, or made up in the test's
 * directory, with attempts on disk.
 */
#pragma once

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/sweep.h"

/* Read an experiment file and print its problems to standard error.  Returns NULL if it failed.
 * Free the experiment with experiment_destroy().
 */
static inline struct experiment *made_experiment (const char *path)
{
    struct experiment *e = NULL;
    struct problems p;

    problems_open (&p);
    e = experiment_read_edited (path, NULL, &p);
    problems_close (&p);
    if (p.count)
        fputs (p.text, stderr);
    free (p.text);
    return e;
}

/* The same for the sweep in a directory.  Close it with sweep_close(). */
static inline struct sweep *made_open (const char *folder)
{
    struct slurmdl_error err = { "" };
    struct problems p;
    struct sweep *s;

    problems_open (&p);
    s = sweep_open (folder, &p, &err);
    problems_close (&p);
    if (!s)
        fprintf (stderr, "%s%s\n", p.text, err.text);
    free (p.text);
    return s;
}

/* Create an experiment below 'root' from the file 'conf'.  Returns 0 and its directory, or -1. */
static inline int made_folder (const char *conf, const char *root, char *folder, size_t size)
{
    struct experiment *e = made_experiment (conf);
    struct slurmdl_error err = { "" };
    char id[SWEEP_ID_SIZE];
    int rv = e ? sweep_create (e, root, folder, size, id, &err) : -1;

    if (rv < 0)
        fprintf (stderr, "%s\n", err.text);
    experiment_destroy (e);
    return rv;
}

/* Make up a sweep without a log or searcher.  Close it with sweep_close(). */
static inline struct sweep *made_sweep (const char *folder, const char *conf, long ntrials)
{
    struct sweep *s = calloc (1, sizeof (*s));
    char path[256];
    FILE *f;

    snprintf (path, sizeof (path), "%s/t.conf", folder);
    f = fopen (path, "w");
    if (!s || !f)
        return NULL;
    fputs (conf, f);
    fclose (f);
    s->exp = made_experiment (path);
    s->dir = strdup (folder);
    s->state = SWEEP_RUNNING;
    s->created = 1000;
    s->ntrials = ntrials;
    s->trials = calloc ((size_t)ntrials + 1, sizeof (*s->trials));
    for (long i = 0; s->trials && i < ntrials; i++)
        s->trials[i] = (struct sweep_trial){
            .state = TRIAL_OPEN, .metric = NAN, .report = NAN, .begin_time = NAN, .end_time = NAN
        };
    return s->exp ? s : NULL;
}

/* If there are several metrics, only the first one gets a value. */
static inline double *made_values (const struct sweep *s, double v)
{
    double *values = s->exp->metric->n > 1 ? malloc (s->exp->metric->n * sizeof (v)) : NULL;

    for (size_t i = 0; values && i < s->exp->metric->n; i++)
        values[i] = i ? NAN : v;
    return values;
}

/* Record a result of attempt 'attempt' of trial 'n'. */
static inline void made_result (struct sweep *s, long n, long attempt, int64_t length, double v)
{
    struct sweep_trial *t = &s->trials[n - 1];

    t->state = TRIAL_PAUSED;
    t->length = length;
    t->metric = v;
    t->over = attempt;
    t->milestones = realloc (t->milestones, (t->nmilestones + 1) * sizeof (*t->milestones));
    t->milestones[t->nmilestones++] =
        (struct milestone){ length, attempt, t->metric, made_values (s, v) };
    s->nresults++;
}

/* Create the directory of an attempt.  The path is valid until the next call. */
static inline const char *made_attempt (const struct sweep *s, long n, long attempt)
{
    static char path[256];
    int at = snprintf (path, sizeof (path), "%s/trials", s->dir);

    mkdir (path, 0777);
    at += snprintf (path + at, sizeof (path) - (size_t)at, "/%04ld", n);
    mkdir (path, 0777);
    snprintf (path + at, sizeof (path) - (size_t)at, "/a.%ld", attempt);
    return mkdir (path, 0777) == 0 || errno == EEXIST ? path : NULL;
}
