/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker has pushed in an iteration that has not ended. */
#pragma once

#include "runtime/ps/table.h"

struct ps_sum {
    float *dense;
    unsigned char *has; /* of each block: something is in 'dense' */
    uint64_t *ids;      /* of rows, in the order in which they came */
    float *rows;
    uint64_t n, room;
};
