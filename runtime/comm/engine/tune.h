/* SPDX-License-Identifier: Apache-2.0 */
/* Search for the best size of a batch and the best cycle. */
#ifndef RUNTIME_COMM_ENGINE_TUNE_H
#define RUNTIME_COMM_ENGINE_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A coordinate search on powers of two: from where it is, each of the two is
 * doubled while that is better by 2 % or more, then halved, in turns, until
 * neither helps.  A setting is measured three times, for at least 0.2 s and 10
 * batches each, after a first time that does not count, and has the best of
 * their bytes a second.  What it does follows from what it measures alone.
 */
struct tune;

/* 'log': a CSV file, or NULL. */
struct tune *tune_create (size_t fusion, double cycle, const char *log);
void tune_destroy (struct tune *t); /* NULL is accepted */

/* So many bytes and batches have been completed until 'now' in all.  True:
 * there is something new to try, or to stay with. */
bool tune_step (struct tune *t,
                double now,
                double bytes,
                unsigned long batches,
                size_t *fusion,
                double *cycle);

bool tune_has_settled (const struct tune *t);

#endif
