/* SPDX-License-Identifier: Apache-2.0 */
/* A process beside srun: the first task of each node answers it, and it names
 * the nodes that do not; what a process of the step posts, it keeps for others.
 */
#pragma once

#include <stdbool.h>

#include <slurm/spank.h>

/* In srun: start it, if it is wanted, and tell the tasks in SLURM_DL_BOARD where
 * it listens.
 */
void rollcall_start (bool wanted);

/* In srun, when the tasks of a step are about to start. */
void rollcall_launch (void);

/* In srun, at its end: the nodes that never answered are named, and those that
 * have another build of the plugin.
 */
void rollcall_end (void);

/* In the first task of a node, where srun has told something: answer.  'on':
 * some option holds here.
 */
void rollcall_answer (spank_t sp, bool on);
