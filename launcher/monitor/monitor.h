/* SPDX-License-Identifier: Apache-2.0 */
/* The commands dl monitor, and dl sample, which the plugin starts beside the ranks
 * of a node; and the folder of a monitored step.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

/* Options of dl monitor. */
struct monitor_options {
    bool summary;
    bool json;
};

/* The folder of a step: dl-monitor-JOB.STEP, of a requeued job with -rN, below
 * DL_MONITOR_DIR, else the trial's attempt, else SLURM_SUBMIT_DIR.  srun and
 * its tasks have the same variables.  Returns -1 if the path is too long.
 */
int monitor_folder (char *buf, size_t size, const char *job, const char *step);

/* The commands: an exit status of launcher/sys/say.h. */
int cmd_monitor (const struct command_line *line);
int cmd_sample (const struct command_line *line);
