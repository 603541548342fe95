/* SPDX-License-Identifier: Apache-2.0 */
/* dl show EXPERIMENT TRIAL: all that is known about one trial. */
#pragma once

#include "launcher/sweep/sweep.h"
#include "launcher/sys/command_line.h"

/* A summary of each metric, with --values each value; --json.  Returns an exit
 * status.
 */
int show_trial (const struct sweep *s, long n, const struct command_line *line);
