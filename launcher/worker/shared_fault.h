/* SPDX-License-Identifier: Apache-2.0 */
/* Pause an experiment whose attempts all fail in the same way. */
#pragma once

#include "launcher/worker/services.h"

/* Whether the failure 'why' of the trial's attempt, which is about to be
 * published, is one of the shared fault: then the trial is not given up.
 */
bool fault_spares_trial (const struct worker *w, long trial, const char *why);

/* Whether that failure shows that the fault is shared by all workers. */
bool fault_pauses (struct worker *w, const char *why);

/* Whether the experiment is paused for it already: then an attempt that was at
 * work has not failed, but was parked.
 */
bool fault_is_known (const struct worker *w, const char *why);

/* Let the first three workers begin alone until an attempt of the experiment
 * has logged a metric, for 3 s at most; the others look every 'pause' s.
 * Returns 0, -1 on failure.
 */
int fault_let_others_begin (struct worker *w, double pause, struct slurmdl_error *err);

/* Pause the experiment if a fault is shared.  As long as only one machine has
 * shown it and other ones have workers, that machine's workers only wait.
 *
 * Returns TURN_IDLE if work may begin, TURN_DONE if it is paused, TURN_WAIT or
 * TURN_FAILED.
 */
enum turn fault_stop (struct worker *w, struct slurmdl_error *err);
