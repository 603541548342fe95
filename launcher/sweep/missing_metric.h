/* SPDX-License-Identifier: Apache-2.0 */
/* What an attempt logged in place of the metric that is waited for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct trial_attempt;

/* Whether the attempt's metrics can be read now, and lack what is waited for:
 * an error may have hidden it before.
 */
bool metric_is_missing (const struct trial_attempt *a);

/* How many of the lines that the attempt printed metrics.pattern matches. */
void matched_lines (const struct trial_attempt *a, long *matched, long *lines);

/* "; logged: ...; the pattern matched ... lines; the nearest line: ..." */
void missing_metric_text (const struct trial_attempt *a, char *buf, size_t size);
