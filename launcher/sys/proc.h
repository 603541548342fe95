/* SPDX-License-Identifier: Apache-2.0 */
/* Read the small files of proc(5). */
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read a file below the folder 'dir' (AT_FDCWD: 'path' is absolute), cut to
 * fit and ended by 0.  Returns the number of bytes, or -1 with errno and "".
 */
ssize_t proc_read (int dir, const char *path, char *buf, size_t size);

/* The next process of /proc or a copy of it, which the caller has opened; 0: there is no other. */
pid_t proc_next (DIR *proc);

/* The stat file of a process or of a thread; times are in clock ticks. */
struct proc_stat {
    char name[16];
    char state; /* R, S, D, T, Z, ... */
    pid_t parent;
    uint64_t minor_faults, major_faults;
    uint64_t user, system;             /* CPU time */
    uint64_t user_ended, system_ended; /* of children that ended */
    long threads;
    uint64_t start;    /* since the machine started */
    uint64_t resident; /* pages */
    int exit_status;   /* as of waitpid(), in state Z */
};

/* Returns -1 if it cannot be read or understood. */
int proc_stat (int dir, const char *path, struct proc_stat *s);
