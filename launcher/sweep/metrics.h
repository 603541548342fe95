/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics that attempts logged: newest values, summaries, and tables of all rows. */
#pragma once

#include "launcher/sweep/attempt.h"

/* ---- newest values ---- */

/* Read the newest value of a metric from an attempt's folder; -1 if there is none. */
int newest_metric (const char *dir, const char *name, int64_t *step, double *value);

/* How far a trial has got, judged by the rows of its first metric. */
struct metric_progress {
    int64_t step; /* of the newest row */
    double value;
    double time;        /* when it was logged, in s since the epoch by the trainer's clock */
    int64_t first_step; /* the first row of the same attempt */
    double first_time;
};

/* Fill 'p' from the newest attempt that has logged the metric; -1 if none has. */
int trial_progress (const struct sweep *s, long trial, struct metric_progress *p);

/* Steps per second; NaN: not known. */
double progress_rate (const struct metric_progress *p);

/* Seconds since the newest row, by this machine's clock. */
double progress_age (const struct metric_progress *p);

/* Read the newest values of the experiment's metrics that the attempt logged.  If it logged none,
 * use an earlier attempt that reached the length of this one.  With several metrics, read the
 * values at the last step that has all of them.
 *
 * Returns -1 if there are none.
 */
int attempt_metrics (const struct trial_attempt *a, int64_t *step, double *values);

/* ---- the value of a trial: searcher.summary ---- */

/* Replace the last values of the experiment's metrics by the summary that searcher.summary names,
 * computed from the trial's rows up to this attempt, without rows that a later attempt superseded.
 * "last" leaves 'values' unchanged.  Values that are not finite count only if there are no others.
 */
void metric_summarise (const struct trial_attempt *a, double *values);

/* Write the path of the checkpoint that belongs to the trial's best value: the one at the step of
 * that value or, for a mean and "last", at the length where the trial was best.  Returns -1 if
 * there is none.
 */
int best_checkpoint (const struct sweep *s, long trial, char *path, size_t size);

/* ---- metrics that are logged but not optimised ---- */

enum { LOGGED_NAME_SIZE = 64 };

struct logged_metric {
    char name[LOGGED_NAME_SIZE];
    double *values; /* N - 1: of trial N; NaN: none, or it logged a NaN */
    bool *has;      /* N - 1: whether trial N logged the metric */
};

struct logged_metrics {
    struct logged_metric *list; /* in the order in which they were found */
    size_t n;
};

/* Read the metrics of 'n' trials (NULL: trials 1 to n), each from its newest attempt that logged
 * any.  Stop after 'most' rows or 1024 names, and return whether there are more.  Call
 * logged_free() in any case.
 */
bool logged_read (struct logged_metrics *l, const struct sweep *s, const long *trials, long n,
                  long most);
/* The same without a limit on rows.  With more than 10,000 trials, first sample 256 of them, evenly
 * spread, and read nothing if these logged only the optimised metrics.
 */
void logged_read_all (struct logged_metrics *l, const struct sweep *s, const long *trials, long n);
void logged_free (struct logged_metrics *l);

/* ---- all rows that led to the results of the trials, as one table ---- */

enum { ROW_NAME_SIZE = 64 };

struct metric_row {
    int64_t trial;
    int64_t step;
    double time;
    double value;
    uint32_t attempt;
    uint32_t name; /* index into 'names' */
};

/* Rows are ordered by trial, attempt, name of the file, and position in the file. */
struct rows {
    struct metric_row *list;
    size_t n, capacity;
    char (*names)[ROW_NAME_SIZE];
    size_t nnames;
    int64_t *covered; /* N - 1: how many attempts of trial N were read */
    long ntrials;
    long damaged;                /* number of trials with rows that could not be read */
    struct slurmdl_error damage; /* the reason for the first of these */
};

/* Read the metrics of all trials, each up to the attempt whose result was accepted last.  An
 * attempt that resumes from a checkpoint logs some steps again, so for each metric, rows of earlier
 * attempts are dropped from the first step of the later attempt on.  Rows that 'old' (or NULL)
 * already has are not read again.  If some metrics of a trial cannot be read, the table gets the
 * others, and 'covered' of this trial is 0.
 *
 * Call rows_destroy() in any case.  Returns 0.
 */
void rows_read (struct rows *r, const struct sweep *s, const struct rows *old);
void rows_destroy (struct rows *r);
