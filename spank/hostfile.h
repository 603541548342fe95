/* SPDX-License-Identifier: Apache-2.0 */
/* --distribution=arbitrary: which rank is on which node. */
#pragma once

#include <stdbool.h>

/* In srun: tell the tasks the order of the hosts that srun itself uses
 * (SLURM_HOSTFILE, or -w), as no variable of Slurm's does.
 */
void hostfile_tell (bool wanted);
