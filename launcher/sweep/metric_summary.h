/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a trial, made of all values of a metric: searcher.summary. */
#pragma once

#include "launcher/sweep/attempt.h"

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
