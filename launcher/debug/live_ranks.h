/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of this node that live, and the first of them that ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sys/step_processes.h"

enum { ROOTS_MAX = 1024 };

struct root {
    long rank;
    pid_t pid;
    int fd;     /* a pidfd, or -1 */
    int status; /* of waitpid(2), as far as it was seen; -1: it was not */
};

/* Times are those of monotonic(). */
struct roots {
    struct ranks *ranks;
    struct root list[ROOTS_MAX];
    size_t n;
    struct root ended; /* the first that did */
    double ended_at;   /* 0: none has */
    double last_end;   /* when the last one did that has */
    int step_end;      /* -1, or readable when Slurm says that all have */
    bool step_ended;   /* it has said so */
};

/* Look which there are. */
void roots_find (struct roots *r);

/* Wait until one or the step has ended, or for so many seconds. */
void roots_wait (struct roots *r, double seconds);

/* "rank 3 has ended with status 1 (ValueError: x)": what is known of the first
 * that did; 'dir' is the folder of launcher/debug/folder.h.  Returns buf.
 */
char *roots_end (const struct roots *r, const char *dir, char *buf, size_t size);
