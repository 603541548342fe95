/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: the steps of a batch. */
#pragma once

#include "runtime/comm/engine/engine.h"

typedef int step_f (struct engine *, struct engine_batch *, struct slurmdl_error *);

/* pack() sets b->in and b->out for the collective: the memory of a single tensor, or the buffers of
 * a slot, into which it copies all tensors.  run() is the collective, and unpack() copies the
 * results back.  A rank that has joined contributes zeros, or nothing.
 */
struct batch_steps {
    step_f *pack, *run, *unpack;
};

extern const struct batch_steps batch_steps_reduce, batch_steps_scatter, batch_steps_gather,
    batch_steps_broadcast;

/* queue.c: run a batch on device memory, with more than one rank. */
int queue_run (struct engine *e, struct engine_batch *b, struct slurmdl_error *err);

/* Copy from and to the memory of a task, on the host or a device. */
int batch_read (void *host, const void *from, size_t n);
int batch_write (void *to, const void *host, size_t n);

/* Host memory with the contents of 'p': itself, or a copy in 'b'. */
const void *batch_view (const void *p, size_t n, struct engine_buffer *b);

/* Where the result goes. */
void *batch_target (const struct engine_task *t);

/* The size of a rank's part in a reduce-scatter, and its beginning, in elements. */
size_t batch_part (const struct engine *e, const struct tensor *t, long rank);
size_t batch_part_at (const struct engine *e, const struct tensor *t, long rank);

/* Total number of elements in its tensors. */
size_t batch_elements (const struct engine_batch *b);

/* out = factor * in; both may be the same memory. */
void batch_scale (void *out, const void *in, size_t n, enum slurmdl_type type, double factor);
