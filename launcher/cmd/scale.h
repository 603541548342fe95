/* SPDX-License-Identifier: Apache-2.0 */
/* dl scale, and the array tasks that an experiment has in Slurm's queue. */
#pragma once

#include <stdbool.h>

#include "launcher/sweep/sweep.h"

/* Where a worker runs or will run: an array task or a local process. */
struct worker_slot {
    long job, task; /* for a local process, from its slot "local-JOB-TASK" */
    bool local;
    bool pending;
};

/* The caller frees the list. */
struct queue {
    struct worker_slot *list;
    long n;
};

/* Run squeue and add the tasks of the experiment's arrays, except those told to end.
 * Returns -1 with 'err' on failure.
 */
int queue_find (struct queue *q, const struct sweep *s, struct slurmdl_error *err);

/* Tell tasks of the first 'nsubmits' arrays to end as soon as they start, if they are
 * not in 'seen' and have no active worker.  This covers tasks that squeue failed to
 * list.
 */
int queue_retire_unseen (struct sweep *s, const struct queue *seen, size_t nsubmits,
                         struct slurmdl_error *err);
