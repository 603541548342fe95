/* SPDX-License-Identifier: Apache-2.0 */
/* Read the small files of proc(5). */
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read a file relative to the folder 'dir' (AT_FDCWD: 'path' is absolute).  The text is truncated
 * to fit and NUL-terminated.  Returns the number of bytes, or -1 with errno and "".
 */
ssize_t proc_read (int dir, const char *path, char *buf, size_t size);

/* The number at the beginning of a file, or NaN. */
double proc_number (int dir, const char *path);

/* The next process in 'proc', which is /proc or a copy of it.  Returns 0 at the end. */
pid_t proc_next (DIR *proc);

/* The stat file of a process or thread.  Times are in clock ticks. */
struct proc_stat {
    char name[16];
    char state; /* R, S, D, T, Z, ... */
    pid_t parent;
    uint64_t minor_faults, major_faults;
    uint64_t user, system;             /* CPU time */
    uint64_t user_ended, system_ended; /* CPU time of children that ended */
    long threads;
    uint64_t start;    /* time from boot to its start */
    uint64_t resident; /* pages */
    int exit_status;   /* wait status, in state Z */
};

/* Returns -1 if the file cannot be read or parsed. */
int proc_stat (int dir, const char *path, struct proc_stat *s);
