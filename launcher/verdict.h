/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed attempt means: try again, and where, and how often. */
#ifndef LAUNCHER_VERDICT_H
#define LAUNCHER_VERDICT_H

#include <stdbool.h>

struct attempt;

struct verdict {
    bool free;     /* does not count towards max_restarts */
    bool last;     /* another try makes no sense */
    bool exclude;  /* no attempt of this experiment is to begin here again */
    int error;     /* ENOSPC, EDQUOT: the disk was full; else 0 */
    char why[160]; /* for people */
};

/* Judge the attempt whose trainer ended with 'status' (of waitpid()) and
 * without a result.
 */
void verdict_of (const struct attempt *a, int status, struct verdict *v);

#endif
