/* SPDX-License-Identifier: Apache-2.0 */
/* Follow an experiment until it ends. */
#pragma once

#include <stdbool.h>

#include "launcher/progress/progress.h"
#include "launcher/sweep/sweep.h"
#include "launcher/worker/worker.h"

/* Show progress until the sweep ends, is stopped, or runs out of workers.  If
 * standard output is not a terminal, print only changes that 'printed' does not have.
 */
int follow (struct sweep *s, struct executor *x, struct changes *printed);

/* From now on, ^C and SIGTERM stop the workers that follow() finds. */
void follow_signals (void);

/* Return the exit status for how an experiment ended that no longer runs. */
int follow_status (const struct sweep *s);

/* Wait until the experiment ends or is paused, and print the outcome.  Returns an
 * exit status: EXIT_NO_WORKERS if the experiment is unfinished but no worker is
 * active.
 */
int wait_while_at_work (struct sweep *s);
