/* SPDX-License-Identifier: Apache-2.0 */
/* Publish what came of an attempt, and keep what is made of the results. */
#pragma once

#include "launcher/worker/segment.h"

/* Put it; nothing if the attempt was fenced meanwhile. */
int worker_publish_report (struct worker *w, long trial, struct segment_report *r,
                           struct slurmdl_error *err);

/* After the last attempt: write results.h5, remove the checkpoints that
 * the policy does not keep.
 */
void worker_close_sweep (const struct worker *w);

/* Another worker was to do that: if it died, and nobody else is there, write
 * results.h5.
 */
void worker_leave_sweep (const struct worker *w);
