/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the benchmarks: clocks and a median. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds on a clock. */
static inline double seconds_of (clockid_t clock)
{
    struct timespec t;

    clock_gettime (clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds on the monotonic clock. */
static inline double now (void)
{
    return seconds_of (CLOCK_MONOTONIC);
}

/* For qsort() of doubles. */
static inline int ascending (const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The median of 'v'; sorts it. */
static inline double median (double *v, size_t n)
{
    qsort (v, n, sizeof (*v), ascending);
    return v[n / 2];
}
