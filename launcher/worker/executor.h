/* SPDX-License-Identifier: Apache-2.0 */
/* What starts the workers of an experiment: Slurm, or this machine. */
#pragma once

#include <limits.h>

#include "launcher/sweep/sweep.h"
#include "launcher/sys/settings.h"

struct executor;
struct executor_ops {
    const char *name;
    /* Start 'workers' workers, besides those that it has started before.
     * Fewer are no failure: 'granted' says how many there are, 'note' why.
     */
    int (*start) (struct executor *x, struct slurmdl_error *err);
    /* 1: there are workers or may be, 0: none is left.  Fills x->note. */
    int (*tick) (struct executor *x);
    /* The user leaves: end what must not go on without dl. */
    void (*leave) (struct executor *x);
    void (*close) (struct executor *x);
};
struct executor {
    const struct executor_ops *ops;
    struct sweep *sweep;
    char dl[PATH_MAX]; /* this program */
    long workers;
    long granted;
    char note[PATH_MAX + 512]; /* for the user, e.g. why nothing runs yet */
    bool excluded;             /* workers ended because their machine is */
    bool refused;              /* Slurm has no job */
    bool never;                /* nor will it: the experiment asks for what there is not */
    /* slurm */
    char job[1024];  /* "12,13" */
    size_t nsubmits; /* of the sweep's that are in it */
    double asked;    /* last squeue */
    /* local */
    struct local_worker *pool;
    long npool;
    long wanted; /* by `dl scale`, as far as it was obeyed */
    struct devices *devices;
};

/* Fill 'x' for the workers of an experiment; x->ops->close() releases it. */
void executor_open (struct executor *x, struct sweep *sweep, const struct settings *st);
