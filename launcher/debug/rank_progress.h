/* SPDX-License-Identifier: Apache-2.0 */
/* When each rank last made progress, observed from outside. */
#pragma once

#include "launcher/sys/step_processes.h"

/* Signs of progress in the main program of a rank and in its helpers
 * (launcher/debug/process_class.h):
 *     main thread: a read, a write or a page fault
 *     other threads that used at least a tenth of a core: a page fault
 *
 * CPU time is not a sign, because a rank that waits in NCCL keeps a core busy.  Reads
 * and writes of other threads are none either, because some libraries log a heartbeat.
 * The caller reports a main thread whose Python stack has changed.
 */
struct rank_progress;

/* 'proc' is the mount point of proc. */
struct rank_progress *progress_create (const char *proc);
void progress_destroy (struct rank_progress *p);

/* Observe processes, sorted by rank, at the time 'now' in seconds.  If this process
 * asked ranks for something, such as their stacks, at the time 'asked', the activity of
 * ranks that have made no progress since does not count, because the request may have
 * caused it.  'asked' is 0 if it asked no rank and INFINITY if it asked all.
 */
void progress_look (struct rank_progress *p, const struct rank_process *all, size_t n, double now,
                    double asked);

/* Record that a rank has made progress. */
void progress_mark (struct rank_progress *p, long rank, double now);

/* Return the time of the last sign of progress, or 'now' for a rank that was never
 * seen.
 */
double progress_last (const struct rank_progress *p, long rank, double now);
