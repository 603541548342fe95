/* SPDX-License-Identifier: Apache-2.0 */
/* dl monitor; dl sample, which the plugin starts next to the ranks of each node;
 * and the directory of a monitored step.
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

/* Store the path of a step's directory, dl-monitor-JOB.STEP.  A requeued job adds
 * -rN.  The parent is DL_MONITOR_DIR if set, else the directory of the trial's
 * attempt, else SLURM_SUBMIT_DIR.  srun and its tasks get the same result because
 * they see the same variables.  Returns -1 if the path is too long.
 */
int monitor_folder (char *buf, size_t size, const char *job, const char *step);

/* Each command returns an exit status from launcher/sys/say.h. */
int cmd_monitor (const struct command_line *line);
int cmd_sample (const struct command_line *line);
