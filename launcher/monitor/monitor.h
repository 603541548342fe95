/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of a monitored step are. */
#ifndef LAUNCHER_MONITOR_MONITOR_H
#define LAUNCHER_MONITOR_MONITOR_H

#include <stddef.h>

#include "launcher/sys/settings.h"

/* Rows of a node's file (32 bytes each), before its samples are joined. */
enum { MONITOR_ROWS = 512 << 10 };

/* The folder of a step: dl-monitor-JOB.STEP, of a requeued job with -rN, below
 * DL_MONITOR_DIR, else the trial's attempt, else SLURM_SUBMIT_DIR.  srun and
 * its tasks have the same variables.  Returns -1 if the path is too long.
 */
int monitor_folder (char *buf, size_t size, const char *job, const char *step);

/* The commands: an exit status of launcher/sys/say.h. */
int cmd_monitor (const struct settings *st);
int cmd_sample (const struct settings *st);

#endif
