/* SPDX-License-Identifier: Apache-2.0 */
/* Show a sweep's progress until it ends. */
#pragma once

#include "launcher/progress/changes.h"
#include "launcher/worker/executor.h"

/* Show progress until the sweep ends, is stopped, or has no workers; into a
 * file or a pipe what is not in 'said'.
 */
int follow (struct sweep *s, struct executor *x, struct changes *said);

/* ^C and SIGTERM stop the workers that follow() will find, from now on. */
void follow_signals (void);

/* The exit status that says how an experiment that does not run ended. */
int follow_status (const struct sweep *s);
