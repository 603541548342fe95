/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of the experiment that the nodes do not see. */
#pragma once

#include "launcher/sweep/sweep.h"

/* The type of the file system of 'dir' ("ext4") if it is this machine's own and
 * no network's, else NULL.
 */
const char *unseen_file_system (const char *dir);

/* Write why the arrays 'jobs' ("12,13"), which Slurm has no more, have left no
 * output, the empty string if one has; 'state' is what Slurm said of one, or
 * empty.
 */
void unseen_text (const struct sweep *s,
                  const char *jobs,
                  const char *state,
                  char *buf,
                  size_t size);
