/* SPDX-License-Identifier: Apache-2.0 */
/* dl wait and dl watch: follow an experiment whose workers somebody else has started. */
#pragma once

#include <stdbool.h>

#include "launcher/sweep/sweep.h"

/* Wait until the experiment has ended or was paused, and print how.  Returns an
 * exit status; EXIT_NO_WORKERS if it still runs and no worker is at work.
 */
int wait_while_at_work (struct sweep *s);
