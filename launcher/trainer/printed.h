/* SPDX-License-Identifier: Apache-2.0 */
/* Find metrics in the output of trainers: in a growing file, and in the logs of earlier attempts.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/config/metric_pattern.h"
#include "launcher/sweep/attempt.h"

/* ---- the lines of a growing file ---- */

struct line_reader;

/* Create a reader that calls 'f' for each metric found by 'texts' (metrics.pattern), a
 * NULL-terminated list or NULL.
 */
struct line_reader *lines_create (char **texts, pattern_metric_f f, void *arg);
void lines_destroy (struct line_reader *l);

/* Whether there is any pattern. */
bool lines_wanted (const struct line_reader *l);

/* Read a file from offset '*at' to its last complete line, and advance '*at'.  Returns -1 with
 * errno if the file could not be read to its end.
 */
int lines_read (struct line_reader *l, int fd, off_t *at);

/* The file is complete: treat the text after its last newline as a line. */
void lines_end (struct line_reader *l);

/* ---- metrics that earlier attempts printed but their workers did not log ---- */

/* An attempt's output is in its log before a worker reads it.  A worker that is killed or hangs
 * leaves lines there that are not in its metrics, while training may resume from a checkpoint
 * beyond them.  The next attempt logs them as its own before its first value of a later step, so
 * that the curve has neither gaps nor duplicates.
 */
struct printed;

typedef int (*printed_log_f) (const char *name, int64_t step, double value, void *arg);

/* Returns NULL if this is the first attempt at the segment, or the experiment has no
 * metrics.pattern.  Reads nothing yet.
 */
struct printed *printed_create (const struct trial_attempt *a);
void printed_destroy (struct printed *r);

/* Call this when the attempt is about to log its first value of 'name', at 'step'.  Calls 'f' for
 * the missing values of all metrics before that step.
 */
void printed_before (struct printed *r, const char *name, int64_t step, printed_log_f f, void *arg);

/* Call this when the attempt has succeeded without logging 'metric'.  If earlier attempts logged
 * 'metric' up to the end of the segment, there was nothing left to train: call 'f' for the missing
 * values of all metrics, and for the last values in any case.  Returns whether that was so.
 */
bool printed_finish (struct printed *r, const char *metric, printed_log_f f, void *arg);
