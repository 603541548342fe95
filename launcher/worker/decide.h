/* SPDX-License-Identifier: Apache-2.0 */
/* Decide what comes next: begin segments, end the sweep. */
#pragma once

#include "launcher/worker/services.h"

/* Begin segments, or end the sweep, as the searcher says. */
enum turn worker_decide (struct worker *w, struct slurmdl_error *err);
/* Put a result, and what this worker does next, as one entry; as
 * worker_publish().
 */
int worker_publish_result (struct worker *w, struct event *result, struct slurmdl_error *err);
/* Instead, once searcher.goal is reached. */
enum turn worker_finish (struct worker *w, struct slurmdl_error *err);
/* Instead, once searcher.max_hours is over. */
enum turn worker_wind_up (struct worker *w, struct slurmdl_error *err);
