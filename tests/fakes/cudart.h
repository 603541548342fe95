/* SPDX-License-Identifier: Apache-2.0 */
/* Interface of the fake CUDA runtime for tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* fakes ignore some parameters */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Device memory is host memory that cudaMalloc() returned.  A stream runs its work in order, and
 * only while the program polls a stream.  A new stream handle creates a stream.
 */

/* Work for a stream.  Called with the lock held until it returns true.  It frees 'arg'. */
typedef bool fakecuda_f (void *arg);
void fakecuda_queue (void *stream, fakecuda_f *f, void *arg);
void fakecuda_lock (void);
void fakecuda_unlock (void);

/* Act as a slow kernel of the program.  Copies the bytes now, and writes them to 'to' after the
 * stream was polled 'asked' times.
 */
void fakecuda_write (void *stream, void *to, const void *bytes, size_t n, int asked);

/* Copies so far in this process: bytes to and from the host, copies on the device, and the calls
 * that made those.
 */
struct fakecuda_counts {
    size_t host_bytes;
    int device_copies, device_calls;
};
struct fakecuda_counts fakecuda_counted (void);

/* Whether FAKE_NCCL is 'fault': "alone" (one GPU per host), "ampere" (an older GPU, on which NCCL
 * cannot reduce 8-bit floats), "hang" (ranks do not find each other), "stuck" (kernels do not end),
 * "async" (a kernel fails), "bus" (the GPU has no bus address).
 */
bool fakecuda_has (const char *fault);
