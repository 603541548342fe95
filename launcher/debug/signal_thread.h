/* SPDX-License-Identifier: Apache-2.0 */
/* Choose the thread of a process that a signal disturbs least. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether the signal is in a set of the thread's status in proc, such as
 * "SigCgt:" (it has a handler) or "SigBlk:" (it is blocked).
 */
bool signal_is_in (pid_t pid, pid_t tid, const char *set, int number);

/* The main thread; if the signal would break off its system call, a thread
 * that waits for a lock, which goes on after it; 0: there is none, or the main
 * thread waits for a CPU.  'when' (of monotonic()) is when that was looked at.
 */
pid_t signal_thread (pid_t pid, int number, double *when);
