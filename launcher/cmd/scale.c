/* SPDX-License-Identifier: Apache-2.0 */
/* dl scale: more or fewer workers while an experiment runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/options.h"
#include "launcher/cmd/queue.h"
#include "launcher/job/elastic_plan.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "launcher/worker/executor.h"
#include "runtime/base/error.h"

enum { TEXT_MAX = 1 << 12 };

static int find_local (struct queue *p, const struct sweep *s, struct slurmdl_error *err)
{
    struct peer_info *list;
    long n = peer_list (s->dir, &list, err);

    for (long i = 0; i < n; i++) {
        struct worker_slot place = { .local = true };
        if (!list[i].gone && list[i].here
            && sscanf (list[i].slot, "local-%ld-%ld", &place.job, &place.task) == 2
            && !sweep_retires (s, list[i].slot) && queue_add (p, place) < 0)
            n = errorf (err, "out of memory");
    }
    free (list);
    return n < 0 ? -1 : 0;
}

/* Those that wait go first, then the highest. */
static int goes_first (const void *a, const void *b)
{
    const struct worker_slot *x = a;
    const struct worker_slot *y = b;

    if (x->pending != y->pending)
        return x->pending ? -1 : 1;
    if (x->job != y->job)
        return x->job > y->job ? -1 : 1;
    return x->task > y->task ? -1 : x->task < y->task;
}

/* What others have put into the log may be any job of this user's. */
static bool may_cancel (const struct sweep *s, const struct worker_slot *p)
{
    char job[32];

    snprintf (job, sizeof (job), "%ld", p->job);
    return p->pending && trust_has_job (s, job);
}

/* A task that has begun meanwhile is left to end by itself. */
static void cancel (const struct sweep *s, const struct queue *p, long n)
{
    struct slurmdl_error err = { "" };
    char **tasks = NULL;
    int bad = 0;

    for (long i = 0; i < n; i++)
        if (may_cancel (s, &p->list[i]))
            bad |= strings_addf (&tasks, "%ld_%ld", p->list[i].job, p->list[i].task);
    if (bad)
        complain ("out of memory");
    else if (slurm_cancel (tasks, "--state=PENDING", &err) < 0)
        complain ("%s", err.text);
    strings_free (tasks);
}

static int more (struct sweep *s, const struct command_line *line, long workers)
{
    struct slurmdl_error err = { "" };
    const struct scale_options *opt = line->options;
    struct executor x;
    int rv = ask_trust (s, opt->trust);

    if (rv)
        return rv;
    executor_open (&x, s, false, workers);
    if ((rv = x.ops->start (&x, &err)) < 0)
        complain ("%s", err.text);
    else
        printf ("%s: %ld more worker%s (job %s)\n", s->dir, x.granted, x.granted == 1 ? "" : "s",
                x.job);
    x.ops->close (&x);
    return rv < 0 ? EXIT_SLURM : EXIT_OK;
}

static int scale (struct sweep *s, const struct command_line *line, struct queue *p, long workers)
{
    struct slurmdl_error err = { "" };
    bool local = p->n > 0;
    long units, fewer;

    if (!local && queue_find (p, s, &err) < 0)
        return fail_on (s, &err);
    units = local ? workers : slurm_tasks (s->exp, workers);
    fewer = p->n > units ? p->n - units : 0;
    if (p->n)
        qsort (p->list, (size_t)p->n, sizeof (*p->list), goes_first);
    if (queue_retire (s, workers, p, fewer, &err) < 0)
        return fail_on (s, &err);
    cancel (s, p, fewer);
    if (!local && units > p->n)
        return more (s, line, (units - p->n) * (long)s->exp->lanes);
    printf ("%s: %ld worker%s\n", s->dir, workers, workers == 1 ? "" : "s");
    return EXIT_OK;
}

/* Whether a run of dl elastic is meant: by its folder, or that under --dir. */
static bool find_elastic (const struct command_line *line, char *dir, size_t size)
{
    if (line->nargs < 2)
        return false;
    snprintf (dir, size, "%s", line->args[1]);
    if (elastic_is_run (dir))
        return true;
    snprintf (dir, size, "%s/%s", line->dir, line->args[1]);
    return elastic_is_run (dir);
}

static int scale_elastic (const char *dir, long nodes)
{
    struct slurmdl_error err = { "" };
    int rv = elastic_scale (dir, nodes, &err);

    if (rv < 0)
        return fail (&err);
    printf ("%s: %ld node%s%s\n", dir, nodes, nodes == 1 ? "" : "s", rv ? ", as before" : "");
    return EXIT_OK;
}

/* A run of dl elastic whose folder has gone. */
static bool was_elastic (const struct command_line *line)
{
    const char *name = line->nargs > 1 ? line->args[1] : "";
    const char *slash = strrchr (name, '/');
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/%s", line->dir, name);
    return !strncmp (slash ? slash + 1 : name, "elastic.", 8) && access (name, F_OK) != 0
           && access (dir, F_OK) != 0;
}

int cmd_scale (const struct command_line *line)
{
    char dir[PATH_MAX];
    struct slurmdl_error err = { "" };
    struct queue places = { 0 };
    struct sweep *s;
    char *end;
    long workers = strtol (line->args[0], &end, 10);
    int rv;

    if (*end || end == line->args[0] || workers < 1 || workers > WORKERS_MAX) {
        complain ("scale: '%s' is not a number of workers from 1 to %d", line->args[0],
                  WORKERS_MAX);
        return EXIT_USAGE;
    }
    if (find_elastic (line, dir, sizeof (dir)))
        return scale_elastic (dir, workers);
    if (was_elastic (line)) {
        complain ("no run of dl elastic %s in %s; it has ended, or use --dir", line->args[1],
                  line->dir);
        return EXIT_NOT_FOUND;
    }
    if ((rv = open_experiment (line, line->args[1], &s)))
        return rv;
    if (s->state != SWEEP_RUNNING) {
        complain ("%s is %s: there is nothing to scale", s->dir, sweep_state_name (s->state));
        rv = EXIT_USAGE;
    } else if (find_local (&places, s, &err) < 0)
        rv = fail_on (s, &err);
    else
        rv = scale (s, line, &places, workers);
    free (places.list);
    sweep_close (s);
    return rv;
}
