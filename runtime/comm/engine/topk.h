/* SPDX-License-Identifier: Apache-2.0 */
/* The largest values of an array, with error feedback. */
#ifndef RUNTIME_COMM_ENGINE_TOPK_H
#define RUNTIME_COMM_ENGINE_TOPK_H

#include "runtime/slurmdl_comm.h"

/* Stich, Cordonnier and Jaggi 2018, arXiv:1809.07599 ("Mem-SGD"): what is not
 * sent is kept, and added to what is to be sent the next time.
 *
 * 'type' is SLURMDL_F32 or SLURMDL_F64.
 */

/* How many of 'n' are kept: 'keep' of them, rounded up. */
size_t top_k_count (size_t n, double keep);

/* Bytes that they take, a multiple of 8: indices, then values. */
size_t top_k_bytes (size_t k, enum slurmdl_type type);

/* residual += scale * in; its 'k' largest magnitudes (NaN counts as larger
 * than all; of equal ones the first) go to 'out' and are 0 in the residual.
 * In O(n), whatever the values are.
 */
void top_k_choose (void *residual,
                   const void *in,
                   double scale,
                   size_t n,
                   size_t k,
                   enum slurmdl_type type,
                   void *out);

/* Nothing: what a rank gives that has no data. */
void top_k_blank (size_t k, enum slurmdl_type type, void *out);

/* out[index] += value for each that was chosen. */
void top_k_add (
    void *out, const void *chosen, size_t n, size_t k, enum slurmdl_type type);

#endif
