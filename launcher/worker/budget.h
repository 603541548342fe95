/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a worker has, and what fits into it. */
#pragma once

#include "launcher/trainer/trainer.h"
#include "launcher/worker/services.h"

/* Whether the trial's segment to 'length' (the trial may be the next one)
 * fits into the time that is left, or, if the trainers save checkpoints, a
 * part of it that is worth the while.  Always, in an allocation that is fresh:
 * there is no better one to be had.
 */
bool budget_fits (const struct worker *w, long trial, int64_t length);

/* Whether an attempt that used up a fresh allocation came to nothing: it saved
 * no checkpoint and was no further than those before it.
 */
bool budget_in_vain (const struct worker *w, const struct trial_attempt *a);
