/* SPDX-License-Identifier: Apache-2.0 */
/* Track which ranks of this node are alive and which one ended first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sys/step_processes.h"

enum { ROOTS_MAX = 1024 };

struct root {
    long rank;
    pid_t pid;
    int fd;     /* a pidfd, or -1 */
    int status; /* as from waitpid(2); -1 if unknown */
};

/* Times are those of monotonic(). */
struct roots {
    struct ranks *ranks;
    struct root list[ROOTS_MAX];
    size_t n;
    struct root ended; /* the rank that ended first */
    double ended_at;   /* when it ended; 0 if none has */
    double last_end;   /* when the most recent rank ended */
    int step_end;      /* becomes readable when Slurm reports the step's end; or -1 */
    bool step_ended;   /* Slurm has reported the step's end */
};

/* Find the ranks that exist now. */
void roots_find (struct roots *r);

/* Wait until a rank or the step ends, but at most 'seconds'. */
void roots_wait (struct roots *r, double seconds);

/* "rank 3 has ended with status 1 (ValueError: x)": what is known of the first
 * that did; 'dir' is the folder of launcher/debug/debug.h.  Returns buf.
 */
char *roots_end (const struct roots *r, const char *dir, char *buf, size_t size);
