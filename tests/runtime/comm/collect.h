/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives compared with a serial computation, to run with world_run(). */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

/* DL_TEST_SOAK=1 runs all sizes up to 64 MiB, and all worlds. */
bool collect_is_long (void);

/* Report what is wrong; returns 1. */
int collect_complain (struct slurmdl_comm *w, const char *what, size_t n);

/* All types and operations; all collectives with all sizes below the size_t in
 * 'arg', or with one size.
 */
int collect_types (struct slurmdl_comm *w, void *arg);
int collect_sizes (struct slurmdl_comm *w, void *arg);
int collect_size (struct slurmdl_comm *w, size_t n);
/* Random numbers: results are near the sum in double precision, and equal on all ranks. */
int collect_rounding (struct slurmdl_comm *w, void *arg);
/* Split into even ranks and odd ranks in reverse order, and split each part again. */
int collect_parts (struct slurmdl_comm *w, void *arg);
/* Threads with a channel each, and the world's own at the same time. */
int collect_threads (struct slurmdl_comm *w, void *arg);
