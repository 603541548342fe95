/* SPDX-License-Identifier: Apache-2.0 */
/* A named tensor, on which the ranks must agree before they reduce it. */
#pragma once

#include <stdbool.h>

#include "runtime/comm/engine/packet.h"
#include "runtime/slurmdl_comm.h"

struct tensor {
    char *name;
    char *group; /* NULL: none */
    size_t members;
    enum slurmdl_what what;
    enum slurmdl_type type;
    enum slurmdl_op op;
    enum slurmdl_compression compression;
    bool device;                     /* whether its memory is that of a device */
    size_t n;                        /* elements; for SLURMDL_ALLGATHER, of this rank */
    size_t row;                      /* 0 for SLURMDL_ALLGATHER: 'n' and 'counts' are rows */
    int ndims;                       /* 0: no shape */
    uint64_t dims[SLURMDL_DIMS_MAX]; /* for SLURMDL_ALLGATHER, the first is 0 */
    long root;
    double prescale, postscale;
    size_t *counts; /* for SLURMDL_ALLGATHER, once agreed: of each rank */
    unsigned refs;
};

/* A copy without counts; NULL if out of memory. */
struct tensor *tensor_copy (const struct tensor *t);
void tensor_free (struct tensor *t); /* NULL is accepted */

/* Size of an element in bytes; 0 if rows have no elements and are counted instead. */
size_t tensor_item (const struct tensor *t);
/* Number of elements of the result. */
size_t tensor_total (const struct tensor *t, long size);
/* Size of a rank's contribution in bytes. */
size_t tensor_weight (const struct tensor *t);

/* Whether two ranks may reduce these together, regardless of their names. */
bool tensor_agrees (const struct tensor *a, const struct tensor *b);

/* Describe how they differ: "float32 of 1000", "float16 of 1000". */
void tensor_differs (const struct tensor *a, const struct tensor *b, char *ours, char *theirs,
                     size_t size);

/* Whether they can be fused into one buffer. */
bool tensor_fuses (const struct tensor *a, const struct tensor *b);

void tensor_put (struct packet *p, const struct tensor *t);
struct tensor *tensor_take (struct packet *p); /* NULL: invalid, or out of memory */

/* The kind of tensor, for messages: "gradient", ... */
const char *tensor_noun (const struct tensor *t);
