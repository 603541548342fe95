/* SPDX-License-Identifier: Apache-2.0 */
/* Which environment variables Slurm sets for a job, and which for a step. */
#pragma once

#include <stdbool.h>

/* Whether "NAME=VALUE" describes the job or step that this process is in;
 * SLURM_CONF does not.
 */
bool variable_is_of_job (const char *variable);

/* Whether srun would take it for an option of a new step, because it describes
 * the step that the new one is started from.
 */
bool variable_is_of_step (const char *variable);

/* Remove from 'environ' the variables of which 'is' is true. */
void variables_drop (bool (*is) (const char *variable));
