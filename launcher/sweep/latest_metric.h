/* SPDX-License-Identifier: Apache-2.0 */
/* The newest values of metrics that an attempt has logged. */
#pragma once

#include "launcher/sweep/attempt.h"

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
