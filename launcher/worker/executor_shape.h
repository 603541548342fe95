/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes and ranks of a trial that asks for a number of GPUs. */
#pragma once

#include "launcher/config/experiment.h"
#include "runtime/base/error.h"

struct shape {
    long nodes, gpus, ranks; /* GPUs and ranks on each of the nodes */
    char partition[256];     /* "": the user has chosen */
    char start[64];          /* when it would, as sbatch says */
    double seconds;          /* from now, below 0: not known */
    char preempts[256];      /* a partition whose jobs preempt those there, ... */
    char how[64];            /* ... as Slurm calls it; "": none does */
};

/* resources.gpus_per_trial, or slots_per_trial that may be more than a node
 * has, has still to become nodes.
 */
bool shape_is_open (const struct experiment *e);

/* Choose the shape that would start first, of two the one in Slurm's default
 * partition, else with fewer nodes: among those that the user's own settings
 * leave open, by one `scontrol show node` and a few `sbatch --test-only`.
 * Returns 1 if slots_per_trial is no more than a node has: it stays as it is;
 * -1 with 'err', and errno EINVAL if there is none at all.
 */
int shape_choose (const struct experiment *e, struct shape *best, struct slurmdl_error *err);
