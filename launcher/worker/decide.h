/* SPDX-License-Identifier: Apache-2.0 */
/* Decide what comes next: begin segments, end the sweep. */
#pragma once

#include "launcher/worker/self.h"

/* Both return 1 if they put something into the log (or another worker was
 * faster, and it was read), 0 if there is nothing to do now, -1 on failure.
 */
int worker_decide (struct worker *w, struct slurmdl_error *err);
/* Put a result, and what this worker does next, as one entry; as
 * worker_publish().
 */
int worker_publish_result (struct worker *w, struct event *result, struct slurmdl_error *err);
/* Instead, once searcher.goal is reached. */
int worker_finish (struct worker *w, struct slurmdl_error *err);
/* Instead, once searcher.max_hours is over. */
int worker_wind_up (struct worker *w, struct slurmdl_error *err);
