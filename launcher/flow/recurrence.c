/* SPDX-License-Identifier: Apache-2.0 */
/* A flow that recurs: the job that makes the next run. */
#include "launcher/flow/recurrence.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/flow/command.h"
#include "launcher/flow/job_command.h"
#include "launcher/flow/jobs.h"
#include "launcher/flow/new_run.h"
#include "launcher/flow/start.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/say.h"

enum { EVERY_LEAST = 60 };

/* The job that begins the next run has the resources of a small one. */
struct flow_step flow_next_step (const struct flow_run *r)
{
    struct flow_step s = r->flow->steps[r->flow->order[0]];

    s.name = (char *)"next+"; /* no step has such a name */
    s.exp.nodes = s.exp.ranks = s.exp.cpus = 1;
    s.exp.node_gpus = 0;
    s.exp.memory = s.exp.framework = s.exp.check = NULL;
    s.exp.bind = s.exp.nccl = s.exp.monitor = s.exp.debug = NULL;
    s.exp.sbatch_args = NULL;
    return s;
}

int flow_submit_next (const struct flow_run *r, struct slurmdl_error *err)
{
    const struct flow_step s = flow_next_step (r);
    json_int_t every = json_integer_value (json_object_get (r->about, "every"));
    char begin[48];
    const struct flow_request q = { .mode = "next", .begin = begin };

    if (every <= 0 || flow_last (r, &s, -1, "job"))
        return 0;
    snprintf (begin, sizeof (begin), "now+%lld", (long long)every);
    /* of one whose number was lost the job ends at once: it is not the last */
    return flow_submit_once (r, &s, flow_last (r, &s, -1, "intent") + 1, &q, err) < 0 ? -1 : 0;
}

/* "1:00:00" as Slurm writes times, or 90, 30m, 12h, 7d. */
static double every_of (const struct settings *st)
{
    static const struct unit {
        char letter;
        int seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    char *end;
    double n = strtod (st->every, &end);

    for (size_t i = 0; end > st->every && i < sizeof (units) / sizeof (*units); i++)
        if (*end == units[i].letter && !end[1])
            return n * units[i].seconds;
    return strchr (st->every, ':') ? slurm_seconds (st->every) : 0;
}

int flow_check_every (const struct settings *st, double *every)
{
    *every = st->every ? every_of (st) : 0;
    if (st->every && !(*every >= EVERY_LEAST && *every <= 366 * 86400.0)) {
        complain ("--every: '%s' is no time from a minute to a year, as 12h or "
                  "1-00:00:00",
                  st->every);
        return EXIT_USAGE;
    }
    if (st->every && st->local) {
        complain ("--every cannot be used with --local: use cron");
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* Those of 'dl flow run FILE NAME=VALUE...', '*n' of them; NULL: no memory. */
static char **arguments (const struct flow_run *r, const char *file, int *n)
{
    json_t *given = json_object_get (r->about, "given");
    size_t ngiven = json_array_size (given);
    const char **args = calloc (ngiven + 3, sizeof (*args));

    if (!args)
        return NULL;
    args[0] = "run";
    args[1] = file;
    for (size_t i = 0; i < ngiven; i++)
        args[i + 2] = json_string_value (json_array_get (given, i)) ?: "";
    *n = (int)ngiven + 2;
    return (char **)args;
}

/* "made" names the next run, so that this job, begun again, makes no second
 * one.
 */
static int put_made (const struct flow_run *r, const struct flow_run *next,
                     struct slurmdl_error *err)
{
    const struct flow_step s = flow_next_step (r);
    json_t *made = json_pack ("{s:s}", "flow", next->dir);

    return flow_put (r, &s, -1, "made", 0, made, err);
}

static int make_next (const struct flow_run *r, const struct settings *st, struct flow_run *next)
{
    json_int_t every = json_integer_value (json_object_get (r->about, "every"));
    const char *base = json_string_value (json_object_get (r->about, "base"));
    struct settings mine = *st;
    struct slurmdl_error err = { "" };
    char root[PATH_MAX], file[PATH_MAX];
    int rv = EXIT_OK;

    snprintf (root, sizeof (root), "%.*s", (int)(strrchr (r->dir, '/') - r->dir), r->dir);
    snprintf (file, sizeof (file), "%s/%s", r->flow->base.dir, base ?: "");
    if (!(mine.args = arguments (r, file, &mine.nargs)))
        return EXIT_IO;
    mine.dir = root;
    *next = (struct flow_run){ .flow = flow_file_read (file, mine.args + 2, st) };
    if (!next->flow)
        rv = EXIT_USAGE;
    else if (flow_make (next, &mine, (double)every, &err) < 0 || put_made (r, next, &err) < 0)
        rv = fail (&err);
    free (mine.args);
    return rv;
}

int flow_next (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct flow_run r, next = { .flow = NULL }, opened;
    int rv = flow_open_pinned (st, &r);
    struct flow_step s;
    json_t *made;

    if (!rv)
        s = flow_next_step (&r);
    if (rv || flow_is_stopped (&r)
        || flow_last (&r, &s, -1, "intent") > flow_number (st->args[4])) {
        flow_close (&r);
        return rv ? rv : EXIT_STOPPED;
    }
    made = flow_record (&r, &s, -1, "made", 0);
    if (made)
        snprintf (next.dir, sizeof (next.dir), "%s",
                  json_string_value (json_object_get (made, "flow")) ?: "");
    else
        rv = make_next (&r, st, &next);
    flow_close (&next);
    if (!rv && (rv = flow_open (&opened, st, next.dir, true)) == 0) {
        if ((rv = flow_start (&opened, st, true)) == 0 && flow_submit_next (&opened, &err) < 0)
            rv = fail (&err);
        flow_close (&opened);
    }
    json_decref (made);
    flow_close (&r);
    return rv;
}
