/* SPDX-License-Identifier: Apache-2.0 */
/* What the attempts before this one printed, but their workers did not take in.
 */
#pragma once

#include "launcher/sweep/attempt.h"

/* The output of an attempt is in its log before any worker reads it.  A worker
 * that is killed, or hangs, leaves lines there that are not in its metrics,
 * while the training may go on from a checkpoint behind them.  The next attempt
 * logs them as its own, before its first value of a later step, so that the
 * curve has neither holes nor doubles.
 */
struct printed;

typedef int (*printed_log_f) (const char *name, int64_t step, double value, void *arg);

/* Nothing is read yet.  NULL if no attempt at this segment came before, or the
 * experiment has no metrics.pattern.
 */
struct printed *printed_create (const struct trial_attempt *a);
void printed_destroy (struct printed *r);

/* The attempt is about to log its first value of 'name', of this step: call 'f'
 * for the values before that step that no metrics have.
 */
void printed_before (struct printed *r, const char *name, int64_t step, printed_log_f f, void *arg);

/* The attempt has ended well, and has not logged 'metric'.  If the attempts
 * before it have logged that up to the end of the segment, there was nothing
 * left to train: call 'f' for what no metrics have, and for the last values in
 * any case.  Returns whether that is so.
 */
bool printed_finish (struct printed *r, const char *metric, printed_log_f f, void *arg);
