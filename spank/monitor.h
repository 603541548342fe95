/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-monitor: the monitor of a node, and its summary. */
#pragma once

#include <slurm/spank.h>

/* Start the monitor of this node, if this is its first task. */
void monitor_task (spank_t sp);

/* In srun: say which step is to be summarized, and do it at the end. */
void monitor_begin (spank_t sp);
void monitor_end (spank_t sp);
