/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow run and resume. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/flow/command.h"
#include "launcher/flow/local.h"
#include "launcher/flow/new_run.h"
#include "launcher/flow/recurrence.h"
#include "launcher/flow/start.h"
#include "launcher/sys/say.h"

static void print_plan (const struct flow *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[f->order[i]];
        printf ("%s:", s->name);
        if (s->items)
            printf (" %zu tasks", json_array_size (s->items));
        else if (s->foreach)
            printf (" a task for each of {%s.%s}", f->steps[s->source].name, s->source_value);
        for (size_t k = 0; k < s->nlinks; k++)
            printf ("%s %s", k ? "," : " after", f->steps[s->links[k].step].name);
        puts (s->on_exit ? " at the end" : "");
    }
    puts ("nothing was started (--dry-run)");
}

int flow_run (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r = { .flow = NULL };
    struct flow_run made;
    double every;
    int rv = flow_check_every (st, &every);

    if (rv)
        return rv;
    if (!(r.flow = flow_file_read (st->args[1], st->args + 2, st)))
        return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_USAGE;
    if (st->dry_run) {
        print_plan (r.flow);
        flow_close (&r);
        return EXIT_OK;
    }
    if (flow_make (&r, st, every, &err) < 0) {
        rv = fail (&err);
        flow_close (&r);
        return rv;
    }
    flow_close (&r);
    /* as its jobs will read it */
    if ((rv = flow_open (&made, st, r.dir, true)) == 0 && (rv = flow_start (&made, st, false)) == 0
        && flow_submit_next (&made, &err) < 0)
        rv = fail (&err);
    flow_close (&made);
    return rv;
}

int flow_resume (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r;
    int rv = flow_open (&r, st, st->args[1], true);
    pid_t pid = rv ? 0 : flow_local_process (&r);

    if (pid) {
        complain ("%s: process %ld of this machine works at it", r.dir, (long)pid);
        rv = EXIT_BUSY;
    }
    if (!rv && flow_mark (&r, false, &err) < 0)
        rv = fail (&err);
    if (!rv)
        rv = flow_start (&r, st, true);
    flow_close (&r);
    return rv;
}
