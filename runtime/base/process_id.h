/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a rank is, and whether it has ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- a process of this machine and pid namespace ---- */

#define PROCESS_UNKNOWN UINT64_MAX

/* When a process began, in ticks since the machine started: tells a pid that
 * is used again.  0 if it has ended and was not waited for, PROCESS_UNKNOWN if
 * its state cannot be read.  'proc' is "/proc" but in tests.
 */
uint64_t process_start (const char *proc, int64_t pid);

/* Whether the process that began at 'start' has ended; false if that cannot be
 * told.
 */
bool process_has_ended (const char *proc, int64_t pid, uint64_t start);

/* A descriptor that poll(2) finds readable when the process has ended; -1:
 * there are none before Linux 5.3.  Here, as the plugin links libc only.
 */
static inline int process_open (pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall (SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

/* Which run of the machine this is: a text of 36 bytes, "" if not known. */
void process_boot_id (char *buf, size_t size);

/* ---- a process of any machine ---- */

struct process_id {
    uint64_t nonce; /* drawn by lot */
    uint64_t pidns, start;
    int64_t pid;
    char boot[40];
};

/* This process. */
void process_id_describe (struct process_id *m);

/* Only of a process that 'self' could see it can be told; else false. */
bool process_id_has_ended (const struct process_id *m, const struct process_id *self);
