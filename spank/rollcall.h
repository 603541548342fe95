/* SPDX-License-Identifier: Apache-2.0 */
/* The roll call of a step: the first task of each node answers srun, which names
 * the nodes that do not.  Beside srun a process keeps what ranks post for others.
 */
#pragma once

#include <stdbool.h>

#include <slurm/spank.h>

/* In srun, before it builds the environment of the tasks: listen, if 'wanted',
 * and set SLURM_DL_BOARD to the port and a token.
 */
void rollcall_start (bool wanted);

/* In srun, when the tasks of a step are about to start: for more than one task,
 * start the process that answers them.
 */
void rollcall_launch (spank_t sp);

/* In srun, at its end: name the nodes that never answered and those that have
 * another build of the plugin.
 */
void rollcall_end (void);

/* In the first task of a node: answer, if srun listens.  'on': some option holds
 * here.  Unsets SLURM_DL_BOARD for a task that is alone.
 */
void rollcall_answer (spank_t sp, bool on);
