/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of named tensors share. */
#ifndef TESTS_RUNTIME_COMM_NAMED_H
#define TESTS_RUNTIME_COMM_NAMED_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/comm/reduce/reduce.h"
#include "tests/runtime/comm/world.h"

/* In a rank: say what is wrong, and end with 1. */
#define CHECK(c, yes)                                                          \
    do {                                                                       \
        if (!(yes))                                                            \
            return complain (c, __LINE__, #yes, err.text);                     \
    } while (0)

static inline int
complain (struct slurmdl_comm *c, int line, const char *what, const char *text)
{
    fprintf (stderr,
             "# rank %ld, line %d: %s (errno %d: %s) %s\n",
             slurmdl_comm_rank (c),
             line,
             what,
             errno,
             strerror (errno),
             text);
    return 1;
}

static inline double seconds_now (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void nap (double seconds)
{
    struct timespec t = { (time_t)seconds, 0 };

    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep (&t, NULL);
}

static inline uint32_t draw (uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Reduce 'n' floats in place by name. */
static inline int64_t sum_floats (struct slurmdl_comm *c,
                                  const char *name,
                                  float *x,
                                  size_t n,
                                  struct slurmdl_error *err)
{
    struct slurmdl_request r = {
        .name = name, .type = SLURMDL_F32, .n = n, .in = x, .out = x
    };

    return slurmdl_submit (c, &r, err);
}

/* Element j of an array of that type becomes 'v'. */
static inline void
put_number (void *to, size_t j, enum slurmdl_type type, double v)
{
    size_t size = slurmdl_type_size (type);
    char *at = (char *)to + j * size;
    float half[2] = { (float)v, 0 };
    double pair[2] = { v, 0 };
    int64_t whole = (int64_t)v;

    if (type == SLURMDL_C64)
        memcpy (at, half, size);
    else if (type == SLURMDL_C128)
        memcpy (at, pair, size);
    else if (type == SLURMDL_F16 || type == SLURMDL_F32 || type == SLURMDL_F64
             || type == SLURMDL_BF16 || type == SLURMDL_F8_E4M3
             || type == SLURMDL_F8_E5M2)
        reduce_convert (at, type, &v, SLURMDL_F64, 1);
    else
        memcpy (at, &whole, size);
}

#endif
