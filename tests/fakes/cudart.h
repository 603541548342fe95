/* SPDX-License-Identifier: Apache-2.0 */
/* What tests see of the stand-in for CUDA's runtime. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* a stand-in does not need all that a function is given */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* The device's memory is what cudaMalloc() gave, of the host.  Streams run one
 * thing after the other, and only while somebody asks how far they are; a
 * stream that is not known is a new one.
 */

/* One thing for a stream to do, asked again until it is done; 'arg' is its own
 * to free.  The lock is held. */
typedef bool fakecuda_f (void *arg);
void fakecuda_queue (void *stream, fakecuda_f *f, void *arg);
void fakecuda_lock (void);
void fakecuda_unlock (void);

/* As a kernel of the program's that takes its time: the bytes, which are
 * copied now, are at 'to' when the stream was asked so many times. */
void fakecuda_write (void *stream, void *to, const void *bytes, size_t n, int asked);

/* What was copied so far in this process: bytes to and from the host, and
 * copies on the device, in so many calls. */
struct fakecuda_counts {
    size_t host_bytes;
    int device_copies, device_calls;
};
struct fakecuda_counts fakecuda_counted (void);

/* Whether FAKE_NCCL is this: "alone" (one GPU a machine), "ampere" (a GPU of
 * 2020, which adds no numbers of eight bits: NCCL refuses them), "hang" (ranks
 * do not find each other), "stuck" (kernels do not end), "async" (one fails), "bus" (no address).
 */
bool fakecuda_has (const char *fault);
