/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command dl for a task, or beside it. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include <slurm/spank.h>

/* The command is the one that was installed with the plugin, or that of the
 * argument dl=PATH of plugstack.conf; never one that the user's PATH finds.
 * It gets the job's environment, /dev/null as its standard input, and this
 * process's standard error as its output too.
 *
 * For task_init and for srun's own hooks, where this process is the user's:
 * in any other both refuse, and return -1 with errno EPERM.  A command that
 * cannot be looked at within a few seconds, as on a file system that hangs, is
 * not run: ETIMEDOUT.
 */

/* What the errno of these functions means. */
const char *helper_why (int error);

/* 'args' follow "dl" and end with NULL.  Waits for its end; after 'seconds'
 * it is killed.  Returns its exit status, 128 + the signal that ended it, or
 * -1 with errno (ENOENT: there is no such command; ETIMEDOUT: it was killed).
 */
int helper_wait (spank_t sp, const char *const *args, unsigned seconds);

/* Start one that lives beside the task and is nobody's child.  It must end by
 * itself when the step's tasks have: not every site's Slurm kills it.  Its
 * standard input is a socket that ends then, where Slurm says so (below).
 * It closes descriptor 3 when it looks at that; if the step ends before, it is
 * killed, and 'folder' (NULL: none), if it is empty, removed.
 */
int helper_detach (spank_t sp, const char *const *args, const char *folder);

/* Fork a process beside this one that runs no other program: it has the two
 * descriptors, whose numbers may change in it, standard error and no more.
 * Returns as fork(2).
 */
pid_t helper_fork (int fds[2]);

/* Become `dl attend WORD` over a new process, in which this returns, and which
 * goes on in this one's place: 0, or -1 with errno, and then there is none.
 */
int helper_attend (spank_t sp, const char *word);

/* Start one that lives as long as this process, and is nobody's child: its
 * standard input, a socket, ends when this process does.  Takes the first line
 * that it prints, for which it has 'seconds'.  Returns the other end of that
 * socket, or -1 with errno.
 */
int helper_ask (spank_t sp, const char *const *args, unsigned seconds, char *line, size_t size);

/* With proctrack/cgroup Slurm kills what is left of a step, and waits a second
 * if something was.  A helper of --dl-monitor or --dl-debug has one end of a
 * pair of sockets as its standard input; slurmstepd has the other one.
 */

/* In slurmstepd, before it starts tasks: make the pair. */
void ending_open (spank_t sp);

/* In slurmstepd, when a task has ended.  After the last one of this node the
 * helpers see the end of their input, and have 200 ms to end: a busy node gives
 * them no CPU earlier.
 */
void ending_task (void);
