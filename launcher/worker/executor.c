/* SPDX-License-Identifier: Apache-2.0 */
/* Choose what starts the workers of an experiment: Slurm, or this machine. */
#include "launcher/worker/executor.h"

#include "launcher/sweep/trust.h"
#include "launcher/sys/subprocess.h"
#include "launcher/worker/executor_local.h"
#include "launcher/worker/executor_slurm.h"

void executor_open (struct executor *x, struct sweep *sweep, const struct settings *st)
{
    *x = (struct executor){
        .ops = st->local ? &executor_local : &executor_slurm,
        .sweep = sweep,
        .workers = st->workers ? (long)st->workers : trust_workers (sweep),
        .nsubmits = sweep->nsubmits,
    };
    own_program (x->dl);
}
