/* SPDX-License-Identifier: Apache-2.0 */
/* What a server saves. */
#pragma once

#include "runtime/ps/server.h"
#include "runtime/ps/snapshot.h"

/* A file is a checkpoint; its state PS_ABOUT is a struct ps_about and
 * about.ntables times a struct ps_about_table.  The arrays of a table NAME are
 * tensors ps/NAME/FIELD: values, slot1, slot2, times, and ids of a sparse one.
 */
#define PS_ABOUT "ps-about"

struct ps_about {
    uint32_t version, ntables;
    int64_t servers, server, clock;
};

struct ps_about_table {
    struct ps_spec spec;
    uint64_t rows;    /* of a sparse one, or blocks */
    uint64_t missing; /* 1: the initial values had not come; no arrays */
};

enum { PS_ARRAYS = PS_SLOTS + 3, PS_FIELD = 16 };

struct ps_array {
    char field[PS_FIELD];
    enum slurmdl_type type;
    void *data;
    uint64_t rows, width; /* width 0: one dimension */
    size_t size;          /* of an element */
};

/* The arrays of a table; returns how many. */
int pssave_arrays (const struct ps_copy *c, struct ps_array *a);
void pssave_describe (const struct ps_spec *spec,
                      const struct ps_array *a,
                      struct slurmdl_tensor *t);
