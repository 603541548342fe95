/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the environment. */
#pragma once

/* Value of a variable; 'otherwise' if it is unset, empty or not a number. */
const char *environment_text (const char *name, const char *otherwise);
long long environment_number (const char *name, long long otherwise);

/* Rank and number of ranks of this process: RANK and WORLD_SIZE, else those of
 * the Slurm step, else 0 of 1.
 */
void environment_rank (long *rank, long *size);
