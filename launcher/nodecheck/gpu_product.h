/* SPDX-License-Identifier: Apache-2.0 */
/* Measure products of matrices on a GPU with cuBLAS, loaded where it is there.
 */
#pragma once

#include <stddef.h>

#include "launcher/nodecheck/diagnosis.h"

typedef unsigned long long device_pointer;

enum { PRODUCT_MAX = 8192 }; /* rows and columns */

struct gpu_product {
    device_pointer a, b, c; /* n x n each, of bfloat16 */
    size_t n;
    int (*finish) (void); /* wait for the GPU; not 0: an error of CUDA's */
    double rate;          /* found: TFLOP/s */
    enum severity severity;
    char why[128]; /* that it was not measured */
};

/* Random numbers of bfloat16, of either sign, from 0.5 to 2. */
void gpu_product_fill (unsigned *words, size_t size);

/* On the current context.  On failure -1 with 'severity' and 'why'. */
int gpu_product_measure (struct gpu_product *g);
