/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of each rank use: CPU, memory, files. */
#pragma once

#include <sys/types.h>

#include "launcher/monitor/series.h"
#include "launcher/sys/step_processes.h"

struct load;

/* 'proc' is the root of proc; 'cores' how many each rank was given, 0: as many
 * as its root process may run on.  Returns NULL with errno.
 */
struct load *load_create (const char *proc, double cores);
void load_destroy (struct load *l);

/* Put "rank/R/..." of all ranks that the last look found.  'time' is in
 * seconds, of a clock that nobody sets.
 */
void load_sample (struct load *l, const struct ranks *ranks, double time, struct series *s);
