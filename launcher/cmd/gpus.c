/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a trial become nodes and ranks. */
#include "launcher/cmd/gpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "launcher/worker/executor_shape.h"

enum { NOW = 60 }; /* s */

/* What the user has not said. */
static void add_shape (char ***sets, const struct experiment *e, const struct shape *shape)
{
    if (!e->resources->given.nodes)
        strings_addf (sets, "resources.nodes_per_trial=%ld", shape->nodes);
    if (!e->resources->given.node_gpus)
        strings_addf (sets, "resources.gpus_per_node=%ld", shape->gpus);
    if (!e->resources->given.ranks)
        strings_addf (sets, "resources.ranks_per_node=%ld", shape->ranks);
    if (*shape->partition)
        strings_addf (sets, "resources.partition=\"%s\"", shape->partition);
}

/* "; a job would start now", if Slurm was asked. */
static void start_text (char *buf, size_t size, const struct shape *s)
{
    char wait[32];

    *buf = '\0';
    if (s->seconds >= 0 && s->seconds <= NOW)
        snprintf (buf, size, "; a job would start now");
    else if (s->seconds >= 0) {
        duration_text (wait, sizeof (wait), s->seconds);
        snprintf (buf, size, "; a job would start at %s (in %s)", s->start, wait);
    }
}

/* Slurm itself tells nobody. */
static void preempt_text (char *buf, size_t size, const struct shape *s)
{
    *buf = '\0';
    if (*s->how)
        snprintf (buf, size,
                  "; jobs of partition %s preempt those of %s (PreemptMode=%s)"
                  ": resources.partition chooses another one",
                  s->preempts, s->partition, s->how);
}

static void say_shape (const struct experiment *e, const struct shape *s)
{
    char when[160];
    char preempted[800];

    start_text (when, sizeof (when), s);
    preempt_text (preempted, sizeof (preempted), s);
    fprintf (stderr,
             "dl: %lld GPUs: %ld node%s with %ld GPU%s and %ld rank%s each%s%s"
             "%s%s\n",
             (long long)experiment_gpus (e), s->nodes, s->nodes == 1 ? "" : "s", s->gpus,
             s->gpus == 1 ? "" : "s", s->ranks, s->ranks == 1 ? "" : "s",
             *s->partition ? ", in partition " : "", s->partition, when, preempted);
}

/* Several nodes that the user has chosen. */
static void say_given (const struct experiment *e)
{
    const struct shape s = { .nodes = (long)e->resources->nodes,
                             .gpus = (long)e->resources->node_gpus,
                             .ranks = (long)e->resources->ranks,
                             .seconds = -1 };

    if (e->resources->slots > 0 && e->resources->nodes > 1)
        say_shape (e, &s);
}

/* Without Slurm all are on this machine, and the command has all of them.
 * Returns an exit status, -1 if nothing is to be changed.
 */
static int find_shape (const struct experiment *e, const struct start_options *opt,
                       struct shape *shape)
{
    struct slurmdl_error err = { "" };
    int rv;

    *shape = (struct shape){ .nodes = 1, .gpus = (long)e->resources->gpus, .ranks = 1 };
    if (opt->local || (opt->no_workers && e->resources->gpus == 0))
        return e->resources->gpus > 0 ? 0 : -1;
    if ((rv = shape_choose (e, shape, &err)) == 0)
        say_shape (e, shape);
    if (rv >= 0)
        return -rv;
    if (errno != EPROTO)
        return fail (&err);
    complain ("%s; with nodes_per_trial and gpus_per_node Slurm is not asked; "
              "--local needs none",
              err.text);
    return opt->dry_run ? -1 : EXIT_SLURM;
}

int gpus_to_nodes (struct experiment **e, const char *path, const struct edit *edit,
                   const struct start_options *opt)
{
    struct edit more = *edit;
    struct shape shape;
    char **sets = NULL;
    int rv;

    if (!shape_is_open (*e)) {
        if (!opt->local)
            say_given (*e);
        return EXIT_OK;
    }
    if ((rv = find_shape (*e, opt, &shape)) == -1)
        return EXIT_OK;
    if (rv) {
        experiment_destroy (*e);
        return rv;
    }
    strings_add_all (&sets, edit->sets);
    add_shape (&sets, *e, &shape);
    experiment_destroy (*e);
    more.sets = sets;
    rv = read_experiment (path, &more, e);
    strings_free (sets);
    return rv;
}
