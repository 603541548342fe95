/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow stop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "launcher/flow/command.h"
#include "launcher/flow/jobs.h"
#include "launcher/flow/local.h"
#include "launcher/flow/recurrence.h"
#include "launcher/flow/sweep_step.h"
#include "launcher/sys/say.h"

/* Whether a step was ever submitted to Slurm. */
static bool has_jobs (const struct flow_run *r)
{
    const struct flow_step next = flow_next_step (r);

    for (size_t i = 0; i < r->flow->n; i++)
        if (flow_last (r, &r->flow->steps[i], -1, "job"))
            return true;
    return flow_last (r, &next, -1, "job") > 0;
}

int flow_stop (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_queue q = { 0 };
    struct flow_run r;
    int rv = flow_open (&r, st, st->args[1], true);
    pid_t pid;

    if (rv) {
        flow_close (&r);
        return rv;
    }
    if (flow_mark (&r, true, &err) < 0)
        rv = fail (&err);
    if (!rv && has_jobs (&r)
        && (flow_queue_read (&r, &q, &err) < 0 || flow_cancel (&q, &err) < 0)) {
        complain ("%s", err.text);
        rv = EXIT_SLURM;
    }
    flow_kill_sweeps (&r);
    if ((pid = flow_local_process (&r)))
        kill (pid, SIGTERM);
    if (!rv && !q.n && !pid)
        printf ("%s: nothing of it was at work\n", r.dir);
    else if (!rv)
        printf ("%s: stopped, %zu job%s cancelled\n", r.dir, q.n, q.n == 1 ? "" : "s");
    free (q.list);
    flow_close (&r);
    return rv;
}
