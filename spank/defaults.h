/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of the site: what srun tells the tasks of them. */
#pragma once

#include <stdbool.h>

#include <slurm/spank.h>

/* In srun: tell the tasks that it has prepared the step for defaults alone, and
 * whether one may bind.
 */
void defaults_tell (void);

/* In a task: take the word of it out of its environment and, where nothing is
 * on ('acts' is false), what srun has prepared.  Returns whether a default may
 * bind: not where the user has chosen the cores, or where srun's word is lost.
 */
bool defaults_take (spank_t sp, bool acts);
