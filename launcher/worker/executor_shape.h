/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes and ranks of a trial that asks for a number of GPUs. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

struct experiment;

struct shape {
    long nodes, gpus, ranks; /* GPUs and ranks on each of the nodes */
    char partition[256];     /* "": the user has chosen */
    char start[64];          /* when it would, as sbatch says */
    double seconds;          /* from now, below 0: not known */
    char preempts[256];      /* a partition whose jobs preempt those there, ... */
    char how[64];            /* ... as Slurm calls it; "": none does */
};

/* Whether resources.gpus_per_trial, or a slots_per_trial that may exceed a node, has yet to be
 * turned into nodes.
 */
bool shape_is_open (const struct experiment *e);

enum shape_choice {
    SHAPE_FAILED = -1, /* 'err' says why; errno EINVAL: no shape is possible */
    SHAPE_CHOSEN,
    SHAPE_UNCHANGED, /* a node has enough for slots_per_trial */
};

/* Choose the shape that would start first; if two would, the one in Slurm's default partition, else
 * the one with fewer nodes.  Considers what the user's settings leave open, with one `scontrol show
 * node` and a few `sbatch --test-only`.
 */
enum shape_choice shape_choose (const struct experiment *e, struct shape *best,
                                struct slurmdl_error *err);
