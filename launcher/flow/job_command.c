/* SPDX-License-Identifier: Apache-2.0 */
/* What a job of a flow runs: a task, or the submission of the rest. */
#include "launcher/flow/job_command.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/flow/command.h"
#include "launcher/flow/step.h"
#include "launcher/flow/submit.h"
#include "launcher/sys/say.h"

/* The flow is the one that this job was submitted for, or nothing is run. */
int flow_open_pinned (const struct settings *st, struct flow_run *r)
{
    int rv = flow_open (r, st, st->args[1], true);

    if (rv)
        return rv;
    if (strcmp (r->pin, st->args[2])) {
        complain ("%s: flow.json has changed since this job was submitted", r->dir);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

long flow_number (const char *text)
{
    char *end;
    long n = strtol (text, &end, 10);

    return end > text && !*end && n >= 0 ? n : -1;
}

int flow_step (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r;
    struct flow_step *s = NULL;
    int rv = flow_open_pinned (st, &r);
    int again = 0;

    if (!rv && !(s = flow_step_find (r.flow, st->args[3]))) {
        complain ("%s has no step '%s'", r.dir, st->args[3]);
        rv = EXIT_NOT_FOUND;
    }
    if (!rv && s->on_exit && !getenv ("DL_FLOW_LOCAL")
        && (again = flow_exit_again (&r, s, flow_number (st->args[4]), &err)) < 0)
        rv = fail (&err);
    if (!rv && !again)
        rv = flow_task_run (&r, s, flow_number (st->args[5]), flow_number (st->args[4]));
    flow_close (&r);
    return rv;
}

int flow_rest (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r;
    int rv = flow_open_pinned (st, &r);

    if (!rv && !flow_is_stopped (&r) && flow_submit (&r, true, &err) < 0)
        rv = fail (&err);
    flow_close (&r);
    return rv;
}
