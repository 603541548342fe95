/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in what trainers print: in a growing file, and in the logs of earlier attempts. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/config/metric_pattern.h"
#include "launcher/sweep/attempt.h"

/* ---- the lines of a growing file ---- */

struct line_reader;

/* Call 'f' for what 'texts' (metrics.pattern), NULL-ended or NULL, find.  NULL: a pattern is not
 * valid.
 */
struct line_reader *lines_create (char **texts, pattern_metric_f f, void *arg);
void lines_destroy (struct line_reader *l);

/* Whether there is any pattern. */
bool lines_wanted (const struct line_reader *l);

/* Read a file from '*at' to its last whole line and advance '*at'.  Returns -1 with errno if it
 * could not be read to its end.
 */
int lines_read (struct line_reader *l, int fd, off_t *at);

/* The file has ended: take what follows its last newline for a line. */
void lines_end (struct line_reader *l);

/* ---- what earlier attempts printed, but their workers did not log ---- */

/* An attempt's output is in its log before a worker reads it.  A worker that is killed or hangs
 * leaves lines there that are not in its metrics, while training may resume from a checkpoint
 * beyond them.  The next attempt logs them as its own before its first value of a later step, so
 * that the curve has neither gaps nor duplicates.
 */
struct printed;

typedef int (*printed_log_f) (const char *name, int64_t step, double value, void *arg);

/* Reads nothing yet.  NULL if this is the first attempt at the segment, or the experiment has no
 * metrics.pattern.
 */
struct printed *printed_create (const struct trial_attempt *a);
void printed_destroy (struct printed *r);

/* The attempt is about to log its first value of 'name', of this step: call 'f' for the values
 * before that step that are missing in all metrics.
 */
void printed_before (struct printed *r, const char *name, int64_t step, printed_log_f f, void *arg);

/* The attempt has succeeded without logging 'metric'.  If the attempts before it logged 'metric' up
 * to the end of the segment, there was nothing left to train: call 'f' for what is missing in all
 * metrics, and for the last values in any case.  Returns whether that is so.
 */
bool printed_finish (struct printed *r, const char *metric, printed_log_f f, void *arg);
