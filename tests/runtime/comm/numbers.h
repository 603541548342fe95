/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in arrays of any type. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "runtime/comm/reduce/reduce.h"

/* Set element j of an array of this type to 'v', or v + imaginary * i. */
static inline void put_complex (void *to, size_t j, enum slurmdl_type type, double v,
                                double imaginary)
{
    size_t size = slurmdl_type_size (type);
    char *at = (char *)to + j * size;
    float half[2] = { (float)v, (float)imaginary };
    double pair[2] = { v, imaginary };
    int64_t whole = (int64_t)v;

    if (type == SLURMDL_C64)
        memcpy (at, half, size);
    else if (type == SLURMDL_C128)
        memcpy (at, pair, size);
    else if (type == SLURMDL_F16 || type == SLURMDL_F32 || type == SLURMDL_F64
             || type == SLURMDL_BF16 || type == SLURMDL_F8_E4M3 || type == SLURMDL_F8_E5M2)
        reduce_convert (at, type, &v, SLURMDL_F64, 1);
    else /* assumes two's complement and a little-endian host */
        memcpy (at, &whole, size);
}

static inline void put_number (void *to, size_t j, enum slurmdl_type type, double v)
{
    put_complex (to, j, type, v, 0);
}
