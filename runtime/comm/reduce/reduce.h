/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on arrays of each type. */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

/* Integers wrap around.  For booleans, the sum is "or" and the product "and".  The minimum or
 * maximum of two numbers is NaN if one of them is, and -0 is below +0.  F16, BF16 and F8 are
 * computed in F32 and rounded to nearest, ties to even; values that are too large become infinity
 * (in F8_E4M3, which has none, NaN). All processors compute the same bits, except for those of a
 * NaN.  Arrays may begin at any address.
 */

/* Whether this operation is defined for this type. */
bool reduce_defined (enum slurmdl_type type, enum slurmdl_op op);

/* out[i] = a[i] op b[i]; 'out' may be 'a' or 'b'.  An average is computed as a sum. */
void reduce_pair (void *out, const void *a, const void *b, size_t n, enum slurmdl_type type,
                  enum slurmdl_op op);

/* out[i] = in[0][i] op ... op in[k - 1][i], in this order; for F16, BF16 and F8, each element is
 * rounded only once.  'out' may be one of the inputs.
 */
void reduce_many (void *out, const void *const *in, size_t k, size_t n, enum slurmdl_type type,
                  enum slurmdl_op op);

/* data[i] *= factor, for floating-point and complex types. */
void reduce_scale (void *data, size_t n, enum slurmdl_type type, double factor);

/* Convert between F16, BF16, F8, F32 and F64, rounding to nearest, ties to even. */
void reduce_convert (void *out, enum slurmdl_type to, const void *in, enum slurmdl_type from,
                     size_t n);
