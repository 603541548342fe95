/* SPDX-License-Identifier: Apache-2.0 */
/* Why no worker of an array has begun. */
#pragma once

#include "launcher/sweep/sweep.h"

/* The type of the file system of 'dir' ("ext4") if it is this machine's own and
 * no network's, else NULL.
 */
const char *unseen_file_system (const char *dir);

/* Write what the workers of the arrays 'jobs' ("12,13") have printed last, and
 * where: "no such module; see /exp/workers/12_1.log"; the empty string if they
 * have printed nothing.
 */
void last_words_text (const struct sweep *s, const char *jobs, char *buf, size_t size);

/* The same of arrays that Slurm has no more, or why they have left no output;
 * 'state' is what Slurm said of one, or empty.
 */
void unseen_text (const struct sweep *s, const char *jobs, const char *state, char *buf,
                  size_t size);
