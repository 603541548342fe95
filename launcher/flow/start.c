/* SPDX-License-Identifier: Apache-2.0 */
/* Start what is left of a run, as jobs or on this machine. */
#include "launcher/flow/start.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/flow/attempt.h"
#include "launcher/flow/local.h"
#include "launcher/flow/submit.h"
#include "launcher/sys/say.h"

enum { WORKERS_LOCAL = 4 };

static long workers_of (const struct settings *st)
{
    long cores = sysconf (_SC_NPROCESSORS_ONLN);

    if (st->workers)
        return (long)st->workers;
    return cores > WORKERS_LOCAL ? WORKERS_LOCAL : cores > 1 ? cores : 2;
}

int flow_start (const struct flow_run *r, const struct settings *st, bool again)
{
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];
    long n;

    /* before many tasks would each make the copy of the code */
    if (attempt_directory (r, dir, &err) < 0)
        return fail (&err);
    if (st->local)
        return flow_local (r, workers_of (st));
    if ((n = flow_submit (r, again, &err)) < 0) {
        complain ("%s; 'dl flow resume %s' submits what is missing", err.text,
                  strrchr (r->dir, '/') + 1);
        return EXIT_SLURM;
    }
    printf ("%s: %ld job%s submitted\n", r->dir, n, n == 1 ? "" : "s");
    return EXIT_OK;
}
