/* SPDX-License-Identifier: Apache-2.0 */
/* Choose what starts the workers of an experiment: Slurm, or this machine. */
#include "launcher/executor/executor.h"

#include "launcher/executor/local.h"
#include "launcher/executor/slurm.h"
#include "launcher/sys/subprocess.h"
#include "launcher/trust/trust.h"

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
