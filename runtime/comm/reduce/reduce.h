/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on arrays of each type. */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

/* Integers wrap around.  Of truth values the sum is "or", the product "and".
 * The smaller of two numbers, or the greater, is NaN where one of them is, and
 * -0 is below +0.  F16, BF16 and F8 are computed with in F32 and rounded to the
 * nearest, ties to even; what is too large becomes infinity (F8_E4M3, which
 * has none: NaN).  All processors give the same bits; but those of a NaN mean
 * nothing.  Arrays may begin at any address.
 */

/* Whether this operation is defined for this type. */
bool reduce_defined (enum slurmdl_type type, enum slurmdl_op op);

/* out[i] = a[i] op b[i]; 'out' may be 'a' or 'b'.  An average is a sum here. */
void reduce_pair (void *out, const void *a, const void *b, size_t n, enum slurmdl_type type,
                  enum slurmdl_op op);

/* out[i] = in[0][i] op ... op in[k - 1][i], in this order, each element once
 * rounded for F16, BF16 and F8.  'out' may be one of them.
 */
void reduce_many (void *out, const void *const *in, size_t k, size_t n, enum slurmdl_type type,
                  enum slurmdl_op op);

/* data[i] *= factor; floating-point and complex types. */
void reduce_scale (void *data, size_t n, enum slurmdl_type type, double factor);

/* Between F16, BF16, F8, F32 and F64, rounded to nearest even. */
void reduce_convert (void *out, enum slurmdl_type to, const void *in, enum slurmdl_type from,
                     size_t n);
