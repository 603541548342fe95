/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes and ranks of a trial that asks for a number of GPUs. */
#include "launcher/worker/executor_shape.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/subprocess.h"
#include "launcher/worker/executor.h"
#include "runtime/base/error.h"

/* Slurm is asked for at most so many shapes, so many of a partition. */
enum { SHAPES_MAX = 16, OF_PARTITION = 3, NAMES_MAX = 64 };

/* Starts that are no further apart are the same, s. */
static const double same_start = 60;

/* Nodes of another cluster are not seen. */
static bool asks_other_cluster (const struct experiment *e)
{
    static const char *const options[] = { "--clusters", "-M", NULL };

    return getenv ("SBATCH_CLUSTERS") || experiment_has_option (e, options);
}

bool shape_is_open (const struct experiment *e)
{
    if (e->resources->gpus > 0)
        return !(e->resources->given.nodes && e->resources->given.node_gpus);
    return e->resources->slots > 1 && e->resources->lanes == 1 && !e->resources->given.nodes
           && !e->resources->given.node_gpus && !experiment_places_itself (e)
           && !asks_other_cluster (e);
}

/* ---- what the user has chosen ---- */

/* The value of "--partition=a", "-pa" or of "-p", "a" in sbatch_args. */
static const char *partition_in (char **args)
{
    for (char **a = args; a && *a; a++) {
        if (!strncmp (*a, "--partition=", 12))
            return *a + 12;
        if (!strncmp (*a, "-p", 2) && (*a)[2])
            return *a + 2 + ((*a)[2] == '=');
        if ((!strcmp (*a, "-p") || !strcmp (*a, "--partition")) && a[1])
            return a[1];
    }
    return NULL;
}

/* NULL: none; any may be taken. */
static const char *chosen_partition (const struct experiment *e)
{
    const char *name = partition_in (e->resources->sbatch_args);
    const char *variable = getenv ("SBATCH_PARTITION");

    if (!name)
        name = e->resources->partition ? e->resources->partition : variable;
    return name && *name ? name : NULL;
}

/* ---- the shapes that there can be ---- */

struct shapes {
    const struct experiment *e;
    struct slurm_nodes nodes;
    const char *chosen;
    char names[NAMES_MAX][256]; /* of partitions */
    int nnames;
    char by_default[256];
    struct shape list[SHAPES_MAX];
    int n;
};

static void add_partition_name (struct shapes *s, const char *name, size_t len)
{
    if (len == 0 || len >= sizeof (s->names[0]) || s->nnames == NAMES_MAX)
        return;
    for (int i = 0; i < s->nnames; i++)
        if (strlen (s->names[i]) == len && !strncmp (s->names[i], name, len))
            return;
    snprintf (s->names[s->nnames++], sizeof (s->names[0]), "%.*s", (int)len, name);
}

/* "a,b" */
static void add_partition_names (struct shapes *s, const char *p)
{
    for (size_t n; *p && !strchr (" \n", *p); p += n + (p[n] == ',')) {
        n = strcspn (p, ", \n");
        add_partition_name (s, p, n);
    }
}

/* Those that have GPUs; of those that the user has chosen all in one. */
static void find_partitions (struct shapes *s)
{
    if (s->chosen)
        add_partition_names (s, s->chosen);
    for (size_t i = 0; i < s->nodes.n && !s->chosen; i++)
        if (s->nodes.list[i].gpus > 0)
            add_partition_names (s, s->nodes.list[i].partitions);
}

static long ranks_for (const struct experiment *e, long wanted, long gpus)
{
    if (e->resources->given.ranks || e->resources->gpus == 0)
        return (long)e->resources->ranks;
    return wanted > 1 ? gpus : 1;
}

/* So many GPUs, 'each' on a node, in the partition of this index. */
static bool shape_is_possible (const struct shapes *s, long wanted, long each, const char *name)
{
    const struct experiment *e = s->e;
    long nodes = wanted / each;

    if (wanted % each || (e->resources->given.nodes && nodes != e->resources->nodes)
        || (e->resources->given.node_gpus && each != e->resources->node_gpus))
        return false;
    return slurm_nodes_with (&s->nodes, name, each,
                             (long)e->resources->cpus * ranks_for (e, wanted, each))
           >= nodes;
}

static long most_gpus (const struct shapes *s, const char *name)
{
    long most = 0;

    for (size_t i = 0; i < s->nodes.n; i++)
        if (s->nodes.list[i].gpus > most && slurm_node_is_in (&s->nodes.list[i], name))
            most = s->nodes.list[i].gpus;
    return most;
}

/* Of 'slots_per_trial': the trial stays a process on a node that has as many.
 */
static bool fits_one_node (const struct shapes *s)
{
    if (s->e->resources->gpus > 0)
        return false;
    for (int i = 0; i < s->nnames; i++)
        if (most_gpus (s, s->names[i]) >= s->e->resources->slots)
            return true;
    return false;
}

/* Those with the fewest nodes first. */
static void find_shapes (struct shapes *s)
{
    long wanted = (long)experiment_gpus (s->e);

    for (int i = 0; i < s->nnames; i++) {
        int found = 0;
        long each = most_gpus (s, s->names[i]);
        for (each = each < wanted ? each : wanted;
             each > 0 && found < OF_PARTITION && s->n < SHAPES_MAX; each--)
            if (shape_is_possible (s, wanted, each, s->names[i])) {
                struct shape *shape = &s->list[s->n++];
                *shape = (struct shape){
                    .nodes = wanted / each,
                    .gpus = each,
                    .ranks = ranks_for (s->e, wanted, each),
                };
                snprintf (shape->partition, sizeof (shape->partition), "%s", s->names[i]);
                found++;
            }
    }
}

/* ---- when they would start ---- */

static int test_shape (const struct shapes *s, struct shape *shape, struct slurm_start *start,
                       struct slurmdl_error *err)
{
    struct command c = { 0 };
    struct resources resources = *s->e->resources;
    struct experiment e = *s->e;
    int rv;

    e.resources = &resources;
    resources.nodes = shape->nodes;
    resources.node_gpus = shape->gpus;
    resources.ranks = shape->ranks;
    if (!s->chosen)
        resources.partition = *shape->partition ? shape->partition : NULL;
    slurm_add_resources (&c, &e, 0);
    rv = slurm_test (&c, start, err);
    shape->seconds = rv < 0 ? -1 : start->seconds;
    snprintf (shape->start, sizeof (shape->start), "%s", rv < 0 ? "" : start->time);
    return rv;
}

/* Slurm's default partition: that of a job which names none. */
static void find_default_partition (struct shapes *s)
{
    struct shape any = s->list[0];
    struct slurm_start start;

    *any.partition = '\0';
    if (!s->chosen && s->nnames > 1 && test_shape (s, &any, &start, NULL) == 0)
        snprintf (s->by_default, sizeof (s->by_default), "%s", start.partition);
}

static bool shape_is_better (const struct shapes *s, const struct shape *a, const struct shape *b)
{
    bool mine, other;

    if (!b)
        return true;
    if (fabs (a->seconds - b->seconds) > same_start)
        return a->seconds < b->seconds;
    mine = !strcmp (a->partition, s->by_default);
    other = !strcmp (b->partition, s->by_default);
    return mine != other ? mine : a->nodes < b->nodes;
}

/* ---- what to say ---- */

/* The nearest number of GPUs, upwards or downwards, that is possible; 0: none.
 */
static long nearest_gpus (const struct shapes *s, long step, long most)
{
    long from = (long)experiment_gpus (s->e) + step;

    for (long g = step < 0 && from > most ? most : from; g > 0 && g <= most; g += step)
        for (int i = 0; i < s->nnames; i++)
            for (long each = most_gpus (s, s->names[i]); each > 0; each--)
                if (shape_is_possible (s, g, each, s->names[i]))
                    return g;
    return 0;
}

static size_t add_partitions (const struct shapes *s, char *buf, size_t size)
{
    size_t n = 0;

    for (int i = 0; i < s->nnames && i < 4 && n < size; i++) {
        long most = most_gpus (s, s->names[i]);
        n += (size_t)snprintf (
            buf + n, size - n, "%s%.40s has %ld node%s with GPUs, at most %ld on one",
            i ? ", " : "", s->names[i], slurm_nodes_with (&s->nodes, s->names[i], 1, 0),
            slurm_nodes_with (&s->nodes, s->names[i], 1, 0) == 1 ? "" : "s", most);
    }
    return n < size ? n : size - 1;
}

static int say_impossible (const struct shapes *s, struct slurmdl_error *err)
{
    char text[512] = "no partition has GPUs";
    char near[64] = "";
    long total = 0;
    long less, more;

    for (size_t i = 0; i < s->nodes.n; i++)
        total += s->nodes.list[i].gpus;
    less = nearest_gpus (s, -1, total);
    more = nearest_gpus (s, 1, total);
    add_partitions (s, text, sizeof (text));
    if (less && more)
        snprintf (near, sizeof (near), "; possible: %ld, %ld", less, more);
    else if (less || more)
        snprintf (near, sizeof (near), less ? "; possible: %ld and less" : "; possible: %ld",
                  less + more);
    errno = EINVAL;
    return errorf (err,
                   "'resources.%s' = %lld: there are no such nodes "
                   "(%s)%s",
                   experiment_gpus_key (s->e), (long long)experiment_gpus (s->e), text, near);
}

static int choose_shape (struct shapes *s, struct shape *best, struct slurmdl_error *err)
{
    const struct shape *found = NULL;
    struct slurmdl_error why = { "" }, first = { "" };
    struct slurm_start start;

    find_default_partition (s);
    for (int i = 0; i < s->n; i++) {
        struct shape *shape = &s->list[i];
        if (test_shape (s, shape, &start, &why) == 0 && shape_is_better (s, shape, found))
            found = shape;
        else if (shape->seconds < 0 && !*first.text)
            first = why;
    }
    errno = EPROTO;
    if (!found)
        return errorf (err,
                       "'resources.%s' = %lld: Slurm takes none of "
                       "%d shapes, first %ld x %ld in partition %s: %s",
                       experiment_gpus_key (s->e), (long long)experiment_gpus (s->e), s->n,
                       s->list[0].nodes, s->list[0].gpus, s->list[0].partition, first.text);
    *best = *found;
    if (s->chosen || !slurm_preempts (&s->nodes, best->partition, best->preempts, best->how))
        *best->how = '\0';
    return 0;
}

enum shape_choice shape_choose (const struct experiment *e, struct shape *best,
                                struct slurmdl_error *err)
{
    struct shapes *s = xcalloc (1, sizeof (*s));
    int rv = -1;
    int saved;

    s->e = e;
    s->chosen = chosen_partition (e);
    if (slurm_nodes_ask (&s->nodes, err) == 0) {
        find_partitions (s);
        find_shapes (s);
        if (fits_one_node (s))
            rv = SHAPE_UNCHANGED;
        else
            rv = s->n ? choose_shape (s, best, err) : say_impossible (s, err);
    } else if (e->resources->gpus == 0)
        rv = SHAPE_UNCHANGED; /* sbatch will report the error */
    if (s->chosen)
        *best->partition = '\0';
    saved = errno;
    slurm_nodes_free (&s->nodes);
    free (s);
    errno = saved;
    return rv;
}
