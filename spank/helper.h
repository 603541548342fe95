/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command dl for a task or beside it. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include <slurm/spank.h>

/* The command is the one installed with the plugin, or that of the argument dl=PATH
 * in plugstack.conf; never one from the user's PATH.  It gets the job's
 * environment, /dev/null as standard input, and this process's standard error for
 * both of its outputs.
 *
 * These functions work in task_init and in srun's own hooks, where this process is
 * the user's.  Anywhere else they return -1 with errno EPERM.  If a hanging file
 * system keeps them from examining the command for a few seconds, they do not run
 * it and fail with ETIMEDOUT.
 */

/* Text for the errno of these functions. */
const char *helper_why (int error);

/* Run "dl" with 'args', which end with NULL, and wait for it; kill it after
 * 'seconds'.  Returns its exit status, 128 + the signal that ended it, or -1 with
 * errno (ENOENT: the command does not exist; ETIMEDOUT: it was killed).
 */
int helper_wait (spank_t sp, const char *const *args, unsigned seconds);

/* Start a detached command that runs beside the task.  It must end by itself after
 * the tasks of the step, because not every site's Slurm kills it.  Its standard
 * input is a socket that reaches end of file then, if Slurm tells us (see below).
 * The command closes descriptor 3 when it is ready to watch the socket.  If the
 * step ends earlier, the command is killed, and 'folder' (NULL: none) is removed if
 * it is empty.
 */
int helper_detach (spank_t sp, const char *const *args, const char *folder);

/* Fork a process that lives beside this one and runs no other program.  It keeps
 * standard error and the two descriptors, whose numbers may change in it.  Returns
 * like fork(2).
 */
pid_t helper_fork (int fds[2]);

/* Become `dl attend WORD`, the parent of a new process.  This call returns in the
 * new process, which takes the place of this one.  Returns 0, or -1 with errno, in
 * which case nothing has changed.
 */
int helper_attend (spank_t sp, const char *word);

/* Start a detached command that lives as long as this process: its standard input,
 * a socket, reaches end of file when this process ends.  Reads the first line that
 * it prints within 'seconds'.  Returns our end of the socket, or -1 with errno.
 */
int helper_ask (spank_t sp, const char *const *args, unsigned seconds, char *line, size_t size);

/* proctrack/cgroup kills what is left of a step, and waits a second if anything
 * was.  Helpers of --dl-monitor and --dl-debug therefore get one end of a socket
 * pair as standard input, and slurmstepd keeps the other.
 */

/* In slurmstepd, before it starts tasks: create the socket pair. */
void ending_open (spank_t sp);

/* In slurmstepd, when a task has ended.  After the last task on this node, the
 * helpers see end of file and have 200 ms to end, because a busy node may not give
 * them a CPU earlier.
 */
void ending_task (void);
