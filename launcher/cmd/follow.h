/* SPDX-License-Identifier: Apache-2.0 */
/* Follow an experiment until it ends. */
#pragma once

#include <stdbool.h>

#include "launcher/progress/changes.h"
#include "launcher/sweep/sweep.h"
#include "launcher/worker/executor.h"

/* Show progress until the sweep ends, is stopped, or has no workers; into a
 * file or a pipe what is not in 'said'.
 */
int follow (struct sweep *s, struct executor *x, struct changes *said);

/* ^C and SIGTERM stop the workers that follow() will find, from now on. */
void follow_signals (void);

/* The exit status that says how an experiment that does not run ended. */
int follow_status (const struct sweep *s);

/* Wait until the experiment has ended or was paused, and print how.  Returns an
 * exit status; EXIT_NO_WORKERS if it still runs and no worker is at work.
 */
int wait_while_at_work (struct sweep *s);
