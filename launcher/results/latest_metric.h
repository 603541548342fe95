/* SPDX-License-Identifier: Apache-2.0 */
/* The newest values of metrics that an attempt has logged. */
#ifndef LAUNCHER_RESULTS_LATEST_METRIC_H
#define LAUNCHER_RESULTS_LATEST_METRIC_H

#include "launcher/sweep/attempt.h"

/* The newest value of a metric in an attempt's folder; -1 if there is none. */
int newest_metric (const char *dir,
                   const char *name,
                   int64_t *step,
                   double *value);

/* The newest values of the experiment's metrics in the metrics of the attempt,
 * or, where it logged none, of an earlier attempt that reached 'length'.  Of
 * several metrics those of the last step that has them all.
 *
 * Returns 0, or -1 if there are none.
 */
int attempt_metrics (const struct trial_attempt *a,
                     int64_t *step,
                     double *values);

#endif
