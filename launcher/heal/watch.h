/* SPDX-License-Identifier: Apache-2.0 */
/* The side of the worker: hear what the ranks of a step say. */
#pragma once

#include "launcher/heal/judge.h"
#include "runtime/slurmdl.h"

struct rank_watch;

/* Listen for the ranks of a step, at most so many; 'name' is a notice's
 * (runtime/comm/net/notice.h) that only this user can read.  NULL with 'err'.
 */
struct rank_watch *rank_watch_create (const char *name, size_t ranks, struct slurmdl_error *err);

/* Those that are connected are told nothing. */
void rank_watch_destroy (struct rank_watch *w);

/* Take what has come, without waiting; to be called several times a second. */
void rank_watch_serve (struct rank_watch *w);

/* What is known of each rank. */
const struct heal_seen *rank_watch_seen (const struct rank_watch *w, size_t *n);

/* The step, as Slurm numbers it; -1: no rank has come. */
long rank_watch_step (const struct rank_watch *w);

/* Ask all for their stacks, in 'folder' (launcher/debug/dump_folder.h); how many
 * have not answered and may.
 */
void rank_watch_dump (struct rank_watch *w, const char *folder, long number);
size_t rank_watch_dumping (const struct rank_watch *w);

/* Tell all that can be reached to kill their programs. */
void rank_watch_end (struct rank_watch *w);
