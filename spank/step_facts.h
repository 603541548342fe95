/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a step: GPUs, partition, account, QOS, choices. */
#pragma once

#include <slurm/spank.h>

#include "runtime/rank/condition.h"

/* In a task: all of it, from Slurm's variables. */
void facts_of_task (spank_t sp, struct step_facts *f);

/* In srun, before the step is there: it has no GPUs where neither the command
 * nor the environment says a word of them.
 */
void facts_of_command (struct step_facts *f);

/* In srun: whether the user has chosen the cores, by an option of srun or by a
 * variable of Slurm's or OpenMP's.
 */
bool facts_user_binds (void);

/* In srun: the value of its option -C or --NAME into 'buf'.  Returns -1 if the
 * command line has none that fits.
 */
int facts_option (char c, const char *name, char *buf, size_t size);

/* In srun: whether the user asked for MPI, or for several programs. */
bool facts_user_starts (void);
