/* SPDX-License-Identifier: Apache-2.0 */
/* Events in Chrome's trace format. */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

/* The array form, which a reader takes without its end, too: "Trace Event
 * Format",
 * docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. A
 * process is a rank, a thread a tensor; times are in microseconds since the
 * start, whose time of day the first event has.  One thread at a time may
 * write.
 */
struct timeline;

/* "%r" in 'path' is the rank; without it only rank 0 writes, and of the others
 * '*t' is NULL.  'cycles': with timeline_cycle().
 */
int timeline_open (struct timeline **t, const char *path, long rank, const char *host, bool cycles,
                   struct slurmdl_error *err);
int timeline_close (struct timeline *t); /* NULL is accepted */

/* Something took from 'start' to 'end' (seconds); 'row' is its line, and gets
 * the name 'title' the first time. */
void timeline_span (struct timeline *t, const char *row, const char *event, double start,
                    double end, size_t bytes);

/* This rank asks for what is new. */
void timeline_cycle (struct timeline *t, double now);

/* What was written so far can be read by others: at most twice a second. */
void timeline_flush (struct timeline *t);
