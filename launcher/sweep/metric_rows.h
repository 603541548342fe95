/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics that led to the results of all trials, as one table. */
#pragma once

#include "launcher/sweep/sweep.h"

enum { ROW_NAME_SIZE = 64 };

struct metric_row {
    int64_t trial;
    int64_t step;
    double time;
    double value;
    uint32_t attempt;
    uint32_t name; /* index in the names */
};

/* The rows of trial N stand together, before those of N + 1, in the order of
 * attempts and, of one attempt, of its files by name and of its rows.
 */
struct rows {
    struct metric_row *list;
    size_t n, capacity;
    char (*names)[ROW_NAME_SIZE];
    size_t nnames;
    int64_t *covered; /* of trial N at N - 1: the attempts that were read */
    long ntrials;
    long damaged;                /* trials of which rows could not be read ... */
    struct slurmdl_error damage; /* ... and why, of the first */
};

/* Read the metrics of all trials, up to the attempt whose result was accepted
 * last.  An attempt that goes on from a checkpoint logs some steps again: of
 * each metric, steps from the first that a later attempt has on are left out.
 * What 'old', which may be NULL, has of a trial is not read again.  A trial
 * whose metrics cannot all be read has those that can, and 'covered' 0.
 *
 * rows_destroy() in any case.  Returns -1 if out of memory.
 */
int rows_read (struct rows *r, const struct sweep *s, const struct rows *old);
void rows_destroy (struct rows *r);
