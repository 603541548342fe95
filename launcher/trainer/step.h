/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of several ranks: a step of the worker's job, and the command of each rank in it. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/sys/command_line.h"

struct trial_attempt;

/* Append the words that precede the trainer's command.  step_command() appends srun on all nodes of
 * the job or on those of the attempt, followed by `dl rank` if 'proxy' is set; within_command()
 * appends `dl within --`.
 */
void step_command (const struct trial_attempt *a, bool proxy, char ***words);
void within_command (char ***words);

/* Signal the ranks: SIGTERM asks them to stop; SIGKILL, sent repeatedly, ends them.  Initialise
 * '*ended' with 0.
 */
void step_signal (pid_t srun, int signal, double *ended);

/* End the step, and wait until it has ended. */
void step_end (pid_t srun, double *ended);

/* Folder of an attempt in which each rank of a job with roles records its end as "STATUS NODE", in
 * a file named after its number.
 */
#define ENDS_NAME "ends"

/* Seconds that a preempted task waits to be killed.  If it exited with status 0, Slurm would take
 * the job for complete and not requeue it.
 */
enum { PREEMPT_WAIT = 300 };

/* dl rank: the command that srun starts for each rank. */
int cmd_rank (const struct command_line *line);
