/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the hooks in plugin.c call, by file, in the order of a step.
 * In srun all of them run as the user.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <slurm/spank.h>

#include "runtime/rank/condition.h"

/* ---- options.c: the options of srun, sbatch and salloc ---- */

/* Register the options that the site allows. */
int options_register (spank_t sp);

/* Read the site's policy before the user's options are known.  Only root sees
 * errors in it.
 */
void options_begin (int ac, char **av);

/* In slurmd: log errors in the site's policy, also to syslog. */
void options_log (int ac, char **av);

/* In srun: report options of the job that the site has switched off. */
void options_lost (void);

/* Determine the values that apply, from the facts of the step: the user's values,
 * or else the site's.  If 'loud', a task reports what the policy takes away, and
 * srun reports errors in the site's policy to a user who gave any option.
 */
void options_decide (const struct step_facts *facts, bool loud, int ac, char **av);

/* ---- step_environment.c: what srun clears and sets before a step ---- */

/* In srun, sbatch or salloc: unset what the plugin set in an outer step. */
void inherited_clear (void);

/* In sbatch and salloc, before they read their options: drop the options of the
 * job whose script calls them.
 */
void inherited_options_clear (void);

enum { SECRET_TEXT = 33 };

/* Write 128 random bits as hexadecimal digits.  Returns -1 with errno on failure. */
int secret_random (char text[SECRET_TEXT]);

/* Before srun sends the environment: if 'wanted', create DL_SECRET, one for all
 * components of a heterogeneous job.  Otherwise unset the secret of an outer step.
 */
void plugin_secret (bool wanted);

/* Pass on the order of hosts that srun itself uses (SLURM_HOSTFILE, or -w with
 * --distribution=arbitrary), for which Slurm has no variable.
 */
void hostfile_tell (bool wanted);

/* ---- rollcall.c: the first task of each node answers srun ---- */

/* In srun, before it builds the environment of the tasks: if 'wanted', listen,
 * and set SLURM_DL_BOARD to the port and a token.
 */
void rollcall_start (bool wanted);

/* In srun, when the tasks of a step are about to start: if there is more than
 * one task, start the process that serves them.
 */
void rollcall_launch (spank_t sp);

/* In srun, at its end: name the nodes that never answered and those with
 * another build of the plugin.
 */
void rollcall_end (void);

/* In the first task of a node: answer srun if it listens.  'on': some option
 * applies here.  For a single task, also unset SLURM_DL_BOARD.
 */
void rollcall_answer (spank_t sp, bool on);

/* ---- task.c: --dl, the environment of a task ---- */

/* Whether the user exported a rank or a number of ranks, and so sets up ranks
 * without the plugin.
 */
bool task_has_ranks (spank_t sp);

/* A TensorFlow step with parameter servers ends with one task.  The others serve
 * until then.
 */
enum task_part { TASK_BY_ITSELF, TASK_LEADS, TASK_SERVES };

enum task_part task_environment (spank_t sp, const char *framework, const char *roles);

/* ---- bind.c, nccl.c, debug.c, monitor.c: one option each ---- */

/* Bind one task to GPUs, cores and memory. */
void bind_task (spank_t sp);

/* Set the network variables of one task, and report errors in those that the user exported. */
void nccl_task (spank_t sp);

/* Set the variables that help to explain a hang, and start the watcher of this
 * node.  Call it after nccl_task().
 */
void debug_task (spank_t sp);

/* Start the monitor of this node, if this is its first task. */
void monitor_task (spank_t sp);

/* In srun: remember which step to summarize, and do it at the end. */
void monitor_begin (spank_t sp);
void monitor_end (spank_t sp);

/* ---- check_collector.c: --dl-check and the table of ranks ---- */

/* In srun: start the collector for the ranks.  'level' is a value of --dl-check, or
 * "".  'table': the user wants the table.
 */
void gather_start (spank_t sp, const char *level, bool table);

/* In srun, at its end: wait for the last output of the collector. */
void gather_end (void);

/* In a task: take part in the check, and wait for the verdict, which may end the task. */
void gather_task (spank_t sp, const char *level, bool table);
