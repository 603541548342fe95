/* SPDX-License-Identifier: Apache-2.0 */
/* Explain why an attempt has no metric: what it logged or printed instead. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct trial_attempt;

/* Whether the attempt's metrics can be read now and still lack a metric of the experiment.  The
 * caller failed to find it, perhaps only because of a read error.
 */
bool metric_is_missing (const struct trial_attempt *a);

/* Count the lines that the attempt printed, and those that metrics.pattern matches. */
void matched_lines (const struct trial_attempt *a, long *matched, long *lines);

/* Write "; logged: ...; the pattern matched ... lines; the nearest line: ...". */
void missing_metric_text (const struct trial_attempt *a, char *buf, size_t size);
