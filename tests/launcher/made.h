/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep made by hand in the test's folder, with attempts on the disk. */
#ifndef TESTS_LAUNCHER_MADE_H
#define TESTS_LAUNCHER_MADE_H

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/sweep/sweep.h"

/* It has no log and no searcher; close it with sweep_close(). */
static inline struct sweep *
made_sweep (const char *folder, const char *conf, long ntrials)
{
    struct sweep *s = calloc (1, sizeof (*s));
    struct problems p;
    char path[256];
    FILE *f;

    snprintf (path, sizeof (path), "%s/t.conf", folder);
    f = fopen (path, "w");
    if (!s || !f || problems_open (&p) < 0)
        return NULL;
    fputs (conf, f);
    fclose (f);
    s->exp = experiment_read (path, &p);
    problems_close (&p);
    if (p.count)
        fputs (p.text, stderr);
    free (p.text);
    s->dir = strdup (folder);
    s->state = SWEEP_RUNNING;
    s->created = 1000;
    s->ntrials = ntrials;
    s->trials = calloc ((size_t)ntrials + 1, sizeof (*s->trials));
    for (long i = 0; s->trials && i < ntrials; i++)
        s->trials[i] = (struct sweep_trial){ .state = TRIAL_OPEN,
                                             .metric = NAN,
                                             .best = NAN,
                                             .report = NAN,
                                             .begin_time = NAN,
                                             .end_time = NAN };
    return s->exp ? s : NULL;
}

/* Attempt 'attempt' of trial 'n' has given a result. */
static inline void
made_result (struct sweep *s, long n, long attempt, int64_t length, double v)
{
    struct sweep_trial *t = &s->trials[n - 1];

    t->state = TRIAL_PAUSED;
    t->length = length;
    t->metric = v;
    if (!(t->best <= v)) {
        t->best = v;
        t->best_length = length;
    }
    t->over = attempt;
    t->milestones =
        realloc (t->milestones, (t->nmilestones + 1) * sizeof (*t->milestones));
    t->milestones[t->nmilestones++] =
        (struct milestone){ length, attempt, t->metric };
}

/* The folder of an attempt, which is made; until the next call. */
static inline const char *
made_attempt (const struct sweep *s, long n, long attempt)
{
    static char path[256];
    int at = snprintf (path, sizeof (path), "%s/trials", s->dir);

    mkdir (path, 0777);
    at += snprintf (path + at, sizeof (path) - (size_t)at, "/%04ld", n);
    mkdir (path, 0777);
    snprintf (path + at, sizeof (path) - (size_t)at, "/a.%ld", attempt);
    return mkdir (path, 0777) == 0 || errno == EEXIST ? path : NULL;
}

#endif
