/* SPDX-License-Identifier: Apache-2.0 */
/* When each rank last made progress, observed from outside. */
#pragma once

#include "launcher/sys/step_processes.h"

/* Signs of progress are, in the programs of the user's and their helpers
 * (launcher/debug/process_class.h):
 *   of the main thread: a read or write, or a fault of a page;
 *   of a thread that used a tenth of a core: a fault of a page.
 * CPU time is none, because a rank that waits in NCCL burns it; neither is a
 * read or write of another thread, because some libraries say from time to
 * time that they are alive.  A main thread whose Python stack has changed is
 * reported by the caller.
 */
struct rank_progress;

/* 'proc' is the root of proc. */
struct rank_progress *progress_create (const char *proc);
void progress_destroy (struct rank_progress *p);

/* Look at these processes, in order of rank, at the time 'now' in seconds.
 * This process itself made those ranks do something that had made no progress
 * since the time 'asked': what they did does not count.  0: it asked none,
 * INFINITY: it asked all.
 */
void progress_look (struct rank_progress *p, const struct rank_process *all, size_t n, double now,
                    double asked);

/* The rank has made progress. */
void progress_mark (struct rank_progress *p, long rank, double now);

/* Time of the last sign; of a rank that was never seen, now. */
double progress_last (const struct rank_progress *p, long rank, double now);
