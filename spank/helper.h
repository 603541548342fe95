/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command dl for a task, or beside it. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include <slurm/spank.h>

/* The command is the one installed with the plugin, or that of the argument
 * dl=PATH of plugstack.conf; never one found in the user's PATH. It gets the
 * job's environment, /dev/null as standard input, and this process's standard
 * error for both of its outputs.
 *
 * These functions work in task_init and in srun's own hooks, where this process
 * is the user's; in any other they return -1 with errno EPERM. A command that
 * cannot be examined within a few seconds, because a file system hangs, is not
 * run: ETIMEDOUT.
 */

/* Text for the errno of these functions. */
const char *helper_why (int error);

/* Run "dl" with 'args', which end with NULL, and wait for its end; kill it
 * after 'seconds'.  Returns its exit status, 128 + the signal that ended it, or
 * -1 with errno (ENOENT: the command does not exist; ETIMEDOUT: it was killed).
 */
int helper_wait (spank_t sp, const char *const *args, unsigned seconds);

/* Start a command that runs beside the task, as nobody's child.  It must end by
 * itself after the tasks of the step: not every site's Slurm kills it.  Its
 * standard input is a socket that then reaches end of file, if Slurm tells us
 * (see below).  It closes descriptor 3 when it is ready to watch that; if the
 * step ends earlier, it is killed, and 'folder' (NULL: none) is removed if it
 * is empty.
 */
int helper_detach (spank_t sp, const char *const *args, const char *folder);

/* Fork a process beside this one that runs no other program.  It keeps the two
 * descriptors, whose numbers may change in it, and standard error.  Returns as
 * fork(2).
 */
pid_t helper_fork (int fds[2]);

/* Become `dl attend WORD`, the parent of a new process in which this call
 * returns and which takes the place of this one.  Returns 0, or -1 with errno,
 * and then nothing has changed.
 */
int helper_attend (spank_t sp, const char *word);

/* Start a command that lives as long as this process, as nobody's child: its
 * standard input, a socket, reaches end of file when this process ends.  Reads
 * the first line that it prints within 'seconds'.  Returns the other end of
 * that socket, or -1 with errno.
 */
int helper_ask (spank_t sp, const char *const *args, unsigned seconds, char *line, size_t size);

/* proctrack/cgroup kills what is left of a step, and waits a second if there
 * was anything.  Helpers of --dl-monitor and --dl-debug therefore have one end
 * of a socket pair as standard input; slurmstepd has the other.
 */

/* In slurmstepd, before it starts tasks: create the socket pair. */
void ending_open (spank_t sp);

/* In slurmstepd, when a task has ended.  After the last task of this node the
 * helpers see end of file and have 200 ms to end: a busy node gives them no CPU
 * earlier.
 */
void ending_task (void);
