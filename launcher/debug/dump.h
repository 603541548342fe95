/* SPDX-License-Identifier: Apache-2.0 */
/* Write the stacks of a rank's processes, from outside the processes. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "launcher/sys/step_processes.h"

/* Signal a Python process that runs our sitecustomize.py to dump the stacks of all its
 * threads through faulthandler.  This works even while the interpreter is in a C
 * function.  Skips processes that are stopped, wait for a disk or do not handle the
 * signal and, unless 'may_disturb', those whose system call the signal would interrupt.
 * The caller frees the text.  Returns NULL if none arrives within a second.
 */
char *dump_python (pid_t pid, char state, bool may_disturb);

/* Write the stacks of the 'n' processes of one rank in the format of
 * launcher/debug/stacks.h.  Reads native stacks with gdb or eu-stack if one of them is
 * in PATH, for at most 30 seconds each and only until the monotonic time 'until'.
 * Always includes what the kernel reports about the threads.
 */
void dump_rank (FILE *out, const char *host, const struct rank_process *p, size_t n, double until);
