/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of several ranks: a step of the worker's job, started by srun. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/config/experiment.h"
#include "launcher/sys/settings.h"

/* Add the words before the trainer's command to a list, with `dl rank` where
 * 'proxy' is set; `dl within --`.  They return -1 if out of memory.
 */
int step_command (const struct experiment *e, bool proxy, char ***words);
int within_command (char ***words);

/* SIGTERM asks the ranks to stop; SIGKILL, given again and again, ends them.
 * '*ended' is 0 at first.
 */
void step_signal (pid_t srun, int signal, double *ended);

/* End it, and wait for that. */
void step_end (pid_t srun, double *ended);
