/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a step: helpers beside the tasks learn of it and end in time. */
#pragma once

#include <slurm/spank.h>

/* With proctrack/cgroup Slurm kills what is left of a step, and waits a second
 * if something was.  A helper of --dl-monitor or --dl-debug has one end of a
 * pair of sockets as its standard input; slurmstepd has the other one.
 */

/* In slurmstepd, before it starts tasks: make the pair. */
void ending_open (spank_t sp);

/* The helpers' end, for a task that starts one; -1: there is none. */
int ending_of_helper (void);

/* In a helper, before it becomes another program: it is one to wait for. */
void ending_join (void);

/* In slurmstepd, where a task has ended.  After the last one of this node the
 * helpers see the end of their input, and have 200 ms to end: a busy node gives
 * them no CPU earlier.
 */
void ending_task (void);
