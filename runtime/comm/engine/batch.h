/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: the steps of a batch. */
#pragma once

#include "runtime/comm/engine/engine.h"

typedef int step_f (struct engine *, struct engine_batch *, struct slurmdl_error *);

/* pack() finds b->in and b->out for the collective: one tensor's own memory,
 * or a slot's buffers, into which it puts all of them; run() is the
 * collective; unpack() takes them apart again.  A rank that has joined gives
 * zeros, or nothing.
 */
struct batch_steps {
    step_f *pack, *run, *unpack;
};

extern const struct batch_steps batch_steps_reduce, batch_steps_scatter, batch_steps_gather,
    batch_steps_broadcast;

/* queue.c: of more than one rank. */
int queue_run (struct engine *e, struct engine_batch *b, struct slurmdl_error *err);

/* Copy from and to memory of a task, of the host or of a device. */
int batch_read (void *host, const void *from, size_t n);
int batch_write (void *to, const void *host, size_t n);

/* Host memory that holds what is at 'p'; a copy in 'b' if it must be. */
const void *batch_view (const void *p, size_t n, struct engine_buffer *b);

/* Where the result goes. */
void *batch_target (const struct engine_task *t);

/* How much of it is the rank's part in a reduce-scatter, and where it begins;
 * in elements. */
size_t batch_part (const struct engine *e, const struct tensor *t, long rank);
size_t batch_part_at (const struct engine *e, const struct tensor *t, long rank);

/* All elements of its tensors. */
size_t batch_elements (const struct engine_batch *b);

/* out = factor * in; they may be the same. */
void batch_scale (void *out, const void *in, size_t n, enum slurmdl_type type, double factor);
