/* SPDX-License-Identifier: Apache-2.0 */
/* What attempts have logged: newest values, summaries, tables of all metrics. */
#pragma once

#include "launcher/sweep/attempt.h"

/* ---- newest values ---- */

/* The newest value of a metric in an attempt's folder; -1 if there is none. */
int newest_metric (const char *dir, const char *name, int64_t *step, double *value);

/* How far a trial has come, by the rows of its first metric. */
struct metric_progress {
    int64_t step; /* of the newest row, logged at 'time' ... */
    double value;
    double time;        /* s since the epoch, on the trainer's clock */
    int64_t first_step; /* ... of those of its attempt the first */
    double first_time;
};

/* Of the newest attempt that has logged the metric; -1 if none has. */
int trial_progress (const struct sweep *s, long trial, struct metric_progress *p);

/* Steps a second; NaN: not known. */
double progress_rate (const struct metric_progress *p);

/* Seconds since the newest row, by the clock of this machine. */
double progress_age (const struct metric_progress *p);

/* The newest values of the experiment's metrics in the metrics of the attempt,
 * or, where it logged none, of an earlier attempt that reached 'length'.  Of
 * several metrics those of the last step that has them all.
 *
 * Returns 0, or -1 if there are none.
 */
int attempt_metrics (const struct trial_attempt *a, int64_t *step, double *values);

/* ---- the value of a trial: searcher.summary ---- */

/* Replace the last values of the experiment's metrics by what searcher.summary
 * makes of the rows of the trial, up to this attempt and without those that a
 * later attempt superseded; "last" leaves them.  A value that is not finite
 * counts only if there is no other.
 */
void metric_summarise (const struct trial_attempt *a, double *values);

/* The checkpoint that belongs to the trial's best value: of the step that had
 * it, for a mean and with "last" of the length at which the trial was best.
 * Returns -1 if there is none.
 */
int best_checkpoint (const struct sweep *s, long trial, char *path, size_t size);

/* ---- metrics that are logged, but not optimised ---- */

enum { LOGGED_NAME_SIZE = 64 };

struct logged_metric {
    char name[LOGGED_NAME_SIZE];
    double *values; /* of trial N at N - 1; NaN: none, or not a number ... */
    bool *has;      /* ... which it has logged */
};

struct logged_metrics {
    struct logged_metric *list; /* in the order in which they were met */
    size_t n;
};

/* Read the metrics of some trials (NULL: of trial 1 to n), each in the newest
 * attempt that has any, up to 'most' rows and 1024 names.  logged_free() in any
 * case.
 *
 * Returns 1 if there are more, -1 if out of memory.
 */
int logged_read (struct logged_metrics *l, const struct sweep *s, const long *trials, long n,
                 long most);
/* All of them.  Of more than 10,000 trials it reads nothing if 256 of them,
 * evenly spread, log nothing but what is optimised.
 */
int logged_read_all (struct logged_metrics *l, const struct sweep *s, const long *trials, long n);
void logged_free (struct logged_metrics *l);

/* ---- the metrics that led to the results of all trials, as one table ---- */

enum { ROW_NAME_SIZE = 64 };

struct metric_row {
    int64_t trial;
    int64_t step;
    double time;
    double value;
    uint32_t attempt;
    uint32_t name; /* index in the names */
};

/* The rows of trial N stand together, before those of N + 1, in the order of
 * attempts and, of one attempt, of its files by name and of its rows.
 */
struct rows {
    struct metric_row *list;
    size_t n, capacity;
    char (*names)[ROW_NAME_SIZE];
    size_t nnames;
    int64_t *covered; /* of trial N at N - 1: the attempts that were read */
    long ntrials;
    long damaged;                /* trials of which rows could not be read ... */
    struct slurmdl_error damage; /* ... and why, of the first */
};

/* Read the metrics of all trials, up to the attempt whose result was accepted
 * last.  An attempt that goes on from a checkpoint logs some steps again: of
 * each metric, steps from the first that a later attempt has on are left out.
 * What 'old', which may be NULL, has of a trial is not read again.  A trial
 * whose metrics cannot all be read has those that can, and 'covered' 0.
 *
 * rows_destroy() in any case.  Returns -1 if out of memory.
 */
int rows_read (struct rows *r, const struct sweep *s, const struct rows *old);
void rows_destroy (struct rows *r);
