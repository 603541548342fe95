/* SPDX-License-Identifier: Apache-2.0 */
/* Choose what starts the workers of an experiment: Slurm, or this machine. */
#include "launcher/executor/executor.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "launcher/executor/local.h"
#include "launcher/executor/slurm.h"
#include "launcher/sweep/sweep.h"
#include "launcher/trust/trust.h"
#include "runtime/base/error.h"

int executor_open (struct executor *x,
                   struct sweep *sweep,
                   const struct settings *st,
                   struct slurmdl_error *err)
{
    ssize_t n;

    *x = (struct executor){
        .ops = st->local ? &executor_local : &executor_slurm,
        .sweep = sweep,
        .workers = st->workers ? (long)st->workers : trust_workers (sweep),
        .nsubmits = sweep->nsubmits,
    };
    n = readlink ("/proc/self/exe", x->dl, sizeof (x->dl) - 1);
    if (n < 0)
        return errorf (err, "/proc/self/exe: %s", strerror (errno));
    x->dl[n] = '\0';
    return 0;
}
