/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks have to agree on before they reduce a named tensor. */
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
    bool device;                     /* where it comes from, and goes to */
    size_t n;                        /* elements; of SLURMDL_ALLGATHER this rank's */
    size_t row;                      /* 0, of SLURMDL_ALLGATHER: 'n' and 'counts' are rows */
    int ndims;                       /* 0: it has no shape */
    uint64_t dims[SLURMDL_DIMS_MAX]; /* of SLURMDL_ALLGATHER the first is 0 */
    long root;
    double prescale, postscale;
    size_t *counts; /* of SLURMDL_ALLGATHER, where agreed: of each rank */
    unsigned refs;
};

/* A copy without counts; NULL: no memory. */
struct tensor *tensor_copy (const struct tensor *t);
void tensor_free (struct tensor *t); /* NULL is accepted */

/* Bytes of an element; 0 where rows have none and are counted instead. */
size_t tensor_item (const struct tensor *t);
/* Of the result's elements. */
size_t tensor_total (const struct tensor *t, long size);
/* Of what a rank gives. */
size_t tensor_weight (const struct tensor *t);

/* Whether two ranks may reduce them together, names aside. */
bool tensor_agrees (const struct tensor *a, const struct tensor *b);

/* How they differ: "float32 of 1000", "float16 of 1000". */
void tensor_differs (const struct tensor *a, const struct tensor *b, char *ours, char *theirs,
                     size_t size);

/* Whether they can travel in one buffer. */
bool tensor_fuses (const struct tensor *a, const struct tensor *b);

void tensor_put (struct packet *p, const struct tensor *t);
struct tensor *tensor_take (struct packet *p); /* NULL: bad, or no memory */

/* What kind of thing it is, for messages: "gradient", ... */
const char *tensor_noun (const struct tensor *t);
