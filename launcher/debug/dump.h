/* SPDX-License-Identifier: Apache-2.0 */
/* Write the stacks of a rank's processes, from outside of them. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "launcher/sys/step_processes.h"

/* The stacks of all threads of a Python that has our sitecustomize.py, by its
 * faulthandler: works while the interpreter is inside of a C function, too.
 * Not asked are processes that are stopped, wait for a disk, or would not
 * understand the signal; and, unless it 'may_disturb', those in which the
 * signal would break off a system call.  The caller frees the text; NULL if
 * there is none within a second.
 */
char *dump_python (pid_t pid, char state, bool may_disturb);

/* Write the 'n' processes of one rank in the format of launcher/debug/stacks.h.
 * A native one is read by gdb or eu-stack if one is in the PATH, each for 30
 * seconds at most, and not after the time 'until' of monotonic seconds; what
 * the kernel says of the threads is there in any case.
 */
void dump_rank (FILE *out, const char *host, const struct rank_process *p, size_t n, double until);
