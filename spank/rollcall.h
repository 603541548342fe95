/* SPDX-License-Identifier: Apache-2.0 */
/* The first task of each node answers srun, which names the nodes that do not. */
#pragma once

#include <stdbool.h>

#include <slurm/spank.h>

/* In srun: start to listen, in a process beside it.  Returns "call:PORT:TOKEN,"
 * for the tasks; "" if that fails.
 */
const char *rollcall_start (void);

/* In srun, when the tasks of a step are about to start. */
void rollcall_launch (void);

/* In srun, at its end: the nodes that never answered are named, and those that
 * have another build of the plugin.
 */
void rollcall_end (void);

/* In the first task of a node: answer.  'word' has what srun told (NULL: no
 * word of its); 'on': some option holds here.
 */
void rollcall_answer (spank_t sp, const char *word, bool on);
