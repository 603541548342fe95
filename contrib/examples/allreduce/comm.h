/* SPDX-License-Identifier: Apache-2.0 */
/* What the measurement needs of a communication library. */
#pragma once

#include <stddef.h>

/* Where this process stands, as --dl=torch says (or MPI, if it started us). */
struct place {
    int rank, size, local_rank;
};

struct comm_ops {
    const char *name;
    /* Join the others; fills the place.  0, or -1 after a line on stderr. */
    int (*open) (struct place *p);
    /* Memory for n floats where the library wants it; NULL on failure. */
    void *(*alloc) (size_t n);
    int (*put) (void *buf, const float *host, size_t n);
    int (*get) (float *host, const void *buf, size_t n);
    /* Replace buf by its sum over all ranks, and wait for it. */
    int (*sum) (void *buf, size_t n);
    void (*close) (void);
};

/* The library that this program was built with: nccl.c or mpi.c. */
extern const struct comm_ops comm;

/* Spread 'n' bytes from rank 0 to all ranks; waits at most 60 s.  0, or -1
 * after a line on stderr that names who is missing.
 */
int spread (const struct place *p, void *data, size_t n);
