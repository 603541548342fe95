/* SPDX-License-Identifier: Apache-2.0 */
/* Pause an experiment whose attempts all fail in the same way. */
#ifndef LAUNCHER_WORKER_SHARED_FAULT_H
#define LAUNCHER_WORKER_SHARED_FAULT_H

#include "launcher/worker/self.h"

/* Whether the failure 'why' of the trial's attempt, which is about to be
 * published, is one of the shared fault: then the trial is not given up.
 */
bool fault_spares_trial (const struct worker *w, long trial, const char *why);

/* Pause the experiment if a fault is shared.  As long as only one machine has
 * shown it and other ones have workers, that machine's workers only wait.
 *
 * Returns 0 if work may begin, 1 if it is paused, 2 if this worker is to wait,
 * -1 on failure.
 */
int fault_stop (struct worker *w, struct slurmdl_error *err);

#endif
