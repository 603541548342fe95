/* SPDX-License-Identifier: Apache-2.0 */
/* Run the ranks of a test as processes. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exit with a failure, and print the line, unless x is true. */
#define NEED(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf (stderr, "# line %d: %s (%s)\n", __LINE__, #x, strerror (errno));              \
            _exit (1);                                                                             \
        }                                                                                          \
    } while (0)

typedef void (*rank_f) (int rank, int size, void *arg);

static inline void set_number (const char *name, long value)
{
    char text[32];

    snprintf (text, sizeof (text), "%ld", value);
    setenv (name, text, 1);
}

static inline pid_t start_rank (int rank, int size, rank_f f, void *arg)
{
    pid_t pid = fork ();

    if (pid == 0) {
        set_number ("RANK", rank);
        set_number ("WORLD_SIZE", size);
        alarm (60);
        f (rank, size, arg);
        _exit (0);
    }
    return pid;
}

/* Run 'size' ranks except 'absent' (-1: run all). Returns how many failed. */
static inline int ranks (int size, int absent, rank_f f, void *arg)
{
    pid_t pids[16];
    int failed = 0;
    int status;

    for (int r = 0; r < size; r++)
        pids[r] = r == absent ? 0 : start_rank (r, size, f, arg);
    for (int r = 0; r < size; r++)
        if (pids[r] && waitpid (pids[r], &status, 0) == pids[r])
            failed += status != 0;
    return failed;
}
