/* SPDX-License-Identifier: Apache-2.0 */
/* dl scale, and the array tasks of an experiment that Slurm has. */
#pragma once

#include <stdbool.h>

#include "launcher/sweep/sweep.h"

/* Where workers are, or will be: an array task, or a local process. */
struct worker_slot {
    long job, task; /* local: of its slot "local-JOB-TASK" */
    bool local;
    bool pending;
};

/* free() the list. */
struct queue {
    struct worker_slot *list;
    long n;
};

/* Add the tasks that Slurm has of the experiment's arrays, asked by squeue,
 * but those that are to end.
 */
int queue_find (struct queue *q, const struct sweep *s, struct slurmdl_error *err);

/* Whatever Slurm said, or did not say: of the first 'nsubmits' arrays those
 * tasks are to end, should they begin, that are not in 'seen' and have no
 * worker at work.
 */
int queue_retire_unseen (struct sweep *s, const struct queue *seen, size_t nsubmits,
                         struct slurmdl_error *err);
