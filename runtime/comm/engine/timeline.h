/* SPDX-License-Identifier: Apache-2.0 */
/* Events in Chrome's trace format. */
#pragma once

#include "runtime/slurmdl_comm.h"

/* The array form, which a reader takes without its end, too: "Trace Event
 * Format",
 * docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. A
 * process is a rank, a thread a tensor; times are in microseconds of the
 * monotonic clock.  One thread at a time may write.
 */
struct timeline;

/* "%r" in 'path' is the rank. */
struct timeline *timeline_open (const char *path,
                                long rank,
                                const char *host,
                                struct slurmdl_error *err);
int timeline_close (struct timeline *t); /* NULL is accepted */

/* Something took from 'start' to 'end' (seconds); 'row' is its line, and gets
 * the name 'title' the first time. */
void timeline_span (struct timeline *t,
                    const char *row,
                    const char *event,
                    double start,
                    double end,
                    size_t bytes);

/* What was written so far can be read by others: at most twice a second. */
void timeline_flush (struct timeline *t);
