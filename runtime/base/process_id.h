/* SPDX-License-Identifier: Apache-2.0 */
/* Identify the process of a rank, and find out whether it has ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- a process of this machine and pid namespace ---- */

#define PROCESS_UNKNOWN UINT64_MAX

/* Start time of a process in ticks since boot, which distinguishes processes
 * with the same pid. 0 if it has ended and was not waited for, PROCESS_UNKNOWN
 * if its state cannot be read.  'proc' is "/proc" except in tests.
 */
uint64_t process_start (const char *proc, int64_t pid);

/* Whether the process that started at 'start' has ended; false if that cannot be determined. */
bool process_has_ended (const char *proc, int64_t pid, uint64_t start);

/* A descriptor that becomes readable for poll(2) when the process ends; -1
 * before Linux 5.3.  Inline, because the plugin links libc only.
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

/* Boot ID of the machine: 36 bytes of text, "" if unknown. */
void process_boot_id (char *buf, size_t size);

/* ---- a process of any machine ---- */

struct process_id {
    uint64_t nonce; /* drawn at random */
    uint64_t pidns, start;
    int64_t pid;
    char boot[40];
};

/* Describe this process. */
void process_id_describe (struct process_id *m);

/* Whether a process has ended; false if 'self' cannot see it. */
bool process_id_has_ended (const struct process_id *m, const struct process_id *self);
