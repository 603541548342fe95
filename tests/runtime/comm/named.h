/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the tests of named tensors. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "tests/runtime/comm/numbers.h"
#include "tests/runtime/comm/world.h"

/* In a rank: if the condition fails, report it and return 1. */
#define CHECK(c, yes)                                                                              \
    do {                                                                                           \
        if (!(yes))                                                                                \
            return complain (c, __LINE__, #yes, err.text);                                         \
    } while (0)

static inline int complain (struct slurmdl_comm *c, int line, const char *what, const char *text)
{
    fprintf (stderr, "# rank %ld, line %d: %s (errno %d: %s) %s\n", slurmdl_comm_rank (c), line,
             what, errno, strerror (errno), text);
    return 1;
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

/* Submit a sum of 'n' floats in place under this name. */
static inline int64_t sum_floats (struct slurmdl_comm *c, const char *name, float *x, size_t n,
                                  struct slurmdl_error *err)
{
    struct slurmdl_request r = { .name = name, .type = SLURMDL_F32, .n = n, .in = x, .out = x };

    return slurmdl_submit (c, &r, err);
}
