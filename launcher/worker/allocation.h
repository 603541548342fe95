/* SPDX-License-Identifier: Apache-2.0 */
/* The allocation that a worker is in. */
#pragma once

#include "launcher/config/experiment.h"
#include "launcher/sys/settings.h"

/* Fill in 'place', whose slot is written to 'slot'; and make the worker see
 * only its own GPUs, if it has others of its step beside it.
 */
struct worker_place;
void place_find (struct worker_place *place, const struct experiment *e, const struct settings *st,
                 char *slot, size_t size);

enum job_state {
    JOB_RUNS,    /* or this is none */
    JOB_ENDED,   /* this process was left over, as when slurmstepd was killed */
    JOB_UNKNOWN, /* Slurm does not answer */
};

/* Ask Slurm how the job of this worker is. */
enum job_state allocation_state (void);
