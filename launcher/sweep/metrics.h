/* SPDX-License-Identifier: Apache-2.0 */
/* What attempts have logged: newest values, summaries, tables of all metrics. */
#pragma once

#include "launcher/sweep/attempt.h"

/* ---- newest values ---- */

/* The newest value of a metric in an attempt's folder; -1 if there is none. */
int newest_metric (const char *dir, const char *name, int64_t *step, double *value);

/* How far a trial has got, by the rows of its first metric. */
struct metric_progress {
    int64_t step; /* of the newest row, logged at 'time' ... */
    double value;
    double time;        /* s since the epoch, on the trainer's clock */
    int64_t first_step; /* ... of those of its attempt the first */
    double first_time;
};

/* Fill 'p' from the newest attempt that has logged the metric; -1 if none has. */
int trial_progress (const struct sweep *s, long trial, struct metric_progress *p);

/* Steps per second; NaN: unknown. */
double progress_rate (const struct metric_progress *p);

/* Seconds since the newest row, by this machine's clock. */
double progress_age (const struct metric_progress *p);

/* The newest values of the experiment's metrics that the attempt logged, or, if it logged none, an
 * earlier attempt that reached 'length'.  Of several metrics, the values at the last step that has
 * all of them.
 *
 * Returns 0, or -1 if there are none.
 */
int attempt_metrics (const struct trial_attempt *a, int64_t *step, double *values);

/* ---- the value of a trial: searcher.summary ---- */

/* Replace the last values of the experiment's metrics by what searcher.summary makes of the trial's
 * rows, up to this attempt and without those that a later attempt superseded; "last" keeps them.  A
 * value that is not finite counts only if there is no other.
 */
void metric_summarise (const struct trial_attempt *a, double *values);

/* The checkpoint that belongs to the trial's best value: at the step of that value, or, for a mean
 * and "last", at the length where the trial was best.  Returns -1 if there is none.
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
    struct logged_metric *list; /* in the order in which they were found */
    size_t n;
};

/* Read the metrics of some trials (NULL: trials 1 to n), each from the newest attempt that has any,
 * up to 'most' rows and 1024 names.  Call logged_free() in any case.
 *
 * Returns 1 if there are more, else 0.
 */
int logged_read (struct logged_metrics *l, const struct sweep *s, const long *trials, long n,
                 long most);
/* The same without a limit on rows.  Of more than 10,000 trials it reads nothing if 256 of them,
 * evenly spread, log nothing but the optimised metrics.
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

/* Rows are in the order of trials, attempts, files by name, and rows in a file. */
struct rows {
    struct metric_row *list;
    size_t n, capacity;
    char (*names)[ROW_NAME_SIZE];
    size_t nnames;
    int64_t *covered; /* of trial N at N - 1: number of attempts read */
    long ntrials;
    long damaged;                /* trials with rows that could not be read ... */
    struct slurmdl_error damage; /* ... and the reason for the first */
};

/* Read the metrics of all trials, up to the attempt whose result was accepted last.  An attempt
 * that resumes from a checkpoint logs some steps again: from the first step of a metric that a
 * later attempt has, rows of earlier attempts are left out.  What 'old', which may be NULL, has of
 * a trial is not read again.  If some metrics of a trial cannot be read, it gets the others, and
 * 'covered' 0.
 *
 * Call rows_destroy() in any case.  Returns 0.
 */
int rows_read (struct rows *r, const struct sweep *s, const struct rows *old);
void rows_destroy (struct rows *r);
