/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side: receive the reports of a step's ranks. */
#pragma once

#include "launcher/heal/judge.h"
#include "runtime/slurmdl.h"

struct rank_watch;

/* Listen for 'ranks' ranks of a step, and write the address and key to the notice 'name'
 * (runtime/comm/net/notice.h), which only this user can read.  Returns NULL with 'err'.
 */
struct rank_watch *rank_watch_create (const char *name, size_t ranks, struct slurmdl_error *err);

/* Closes the connections without a message to the ranks. */
void rank_watch_destroy (struct rank_watch *w);

/* Accept connections and read messages, without blocking.  Call it several times a second. */
void rank_watch_serve (struct rank_watch *w);

/* The state of each rank, indexed by rank.  Valid until rank_watch_destroy(). */
const struct heal_seen *rank_watch_seen (const struct rank_watch *w, size_t *n);

/* Slurm's number of the step; -1: not known yet. */
long rank_watch_step (const struct rank_watch *w);

/* Ask all connected ranks to write their stacks to 'folder', as dump 'number'
 * (launcher/debug/dump_folder.h).
 */
void rank_watch_dump (struct rank_watch *w, const char *folder, long number);

/* How many of these ranks are connected but have not answered yet. */
size_t rank_watch_dumping (const struct rank_watch *w);

/* Ask all connected ranks to kill their programs. */
void rank_watch_end (struct rank_watch *w);
