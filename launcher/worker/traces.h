/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of an attempt say of it, whoever looks at them. */
#pragma once

#include "launcher/sweep/sweep.h"

enum attempt_progress {
    PROGRESS_NONE,
    PROGRESS_FILES, /* it left files that differ from those it had found */
    PROGRESS_STEPS, /* it logged a step beyond what the trial had */
};

/* How far an attempt came beyond those before it at its segment.  The first one
 * has none before it, and no progress.
 */
enum attempt_progress attempt_progress (const struct sweep *s, long trial, long attempt);

/* For how long an attempt worked whose worker 'nonce' is gone, s: from its
 * first file to the last sign of life of either, by the times of the files,
 * which are of one clock.  0: it did not begin.
 */
double attempt_seconds (const struct sweep *s, long trial, long attempt, const char *nonce);
