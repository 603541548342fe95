/* SPDX-License-Identifier: Apache-2.0 */
/* Events in Chrome's trace format. */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

/* The array form, which readers accept without its end ("Trace Event Format",
 * docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).  A process is a rank, a
 * thread a tensor.  Times are in microseconds since the start, whose time of day is in the first
 * event. Only one thread at a time may write.
 */
struct timeline;

/* "%r" in 'path' becomes the rank; without it only rank 0 writes, and '*t' is NULL on the others.
 * 'cycles': record timeline_cycle().
 */
int timeline_open (struct timeline **t, const char *path, long rank, const char *host, bool cycles,
                   struct slurmdl_error *err);
int timeline_close (struct timeline *t); /* NULL is accepted */

/* Record an event that lasted from 'start' to 'end' (seconds) in the line 'row'. */
void timeline_span (struct timeline *t, const char *row, const char *event, double start,
                    double end, size_t bytes);

/* Record that this rank asks for new tensors. */
void timeline_cycle (struct timeline *t, double now);

/* Let others read what was written so far, at most twice a second. */
void timeline_flush (struct timeline *t);
