/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-check and the table of ranks: gather the findings of all ranks. */
#pragma once

#include <stdbool.h>

#include <slurm/spank.h>

/* 'level' is a value of --dl-check, or "".  'table': who is where is wanted.
 *
 * In srun: start the collector that the ranks will find.
 */
void gather_start (spank_t sp, const char *level, bool table);

/* In srun, at its end: wait for the last words of the collector. */
void gather_end (void);

/* In a task: take part, and wait for the verdict.  Ends the task if that says
 * so.
 */
void gather_task (spank_t sp, const char *level, bool table);
