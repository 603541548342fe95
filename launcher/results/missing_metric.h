/* SPDX-License-Identifier: Apache-2.0 */
/* What an attempt logged in place of the metric that is waited for. */
#ifndef LAUNCHER_RESULTS_MISSING_METRIC_H
#define LAUNCHER_RESULTS_MISSING_METRIC_H

#include <stddef.h>

struct trial_attempt;

/* How many of the lines that the attempt printed metrics.pattern matches. */
void matched_lines (const struct trial_attempt *a, long *matched, long *lines);

/* "; logged: ...; the pattern matched ... lines; the nearest line: ..." */
void missing_metric_text (const struct trial_attempt *a,
                          char *buf,
                          size_t size);

#endif
