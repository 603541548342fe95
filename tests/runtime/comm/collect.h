/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives compared with the serial result: what a rank does (world_f). */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

/* All sizes up to 64 MiB, all worlds: DL_TEST_SOAK=1. */
bool collect_is_long (void);

/* Say what is wrong; returns 1. */
int collect_complain (struct slurmdl_comm *w, const char *what, size_t n);

/* All types and operations; all collectives of all sizes (below a size_t), or
 * of one.
 */
int collect_types (struct slurmdl_comm *w, void *arg);
int collect_sizes (struct slurmdl_comm *w, void *arg);
int collect_size (struct slurmdl_comm *w, size_t n);
/* Random numbers: near the sum in double precision, equal on all ranks. */
int collect_rounding (struct slurmdl_comm *w, void *arg);
/* Even ranks, odd ranks backwards, and each part split again. */
int collect_parts (struct slurmdl_comm *w, void *arg);
/* Threads with a channel each, and the main one at the same time. */
int collect_threads (struct slurmdl_comm *w, void *arg);
