/* SPDX-License-Identifier: Apache-2.0 */
/* Choose nodes and ranks for the GPUs that a trial requests. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/worker/worker.h"
#include "runtime/base/error.h"

/* Nodes, with GPUs and ranks on each. */
struct shape {
    long nodes, gpus, ranks;
    char partition[256]; /* "": the user chose one */
    char start[64];      /* when sbatch expects such a job to start */
    double seconds;      /* until then; negative: unknown */
    char preempts[256];  /* a partition whose jobs preempt those of this one, ... */
    char how[64];        /* ... and Slurm's PreemptMode; "": none does */
};

enum shape_choice {
    SHAPE_FAILED = -1, /* 'err' says why; errno EINVAL: no shape is possible */
    SHAPE_CHOSEN,
    SHAPE_UNCHANGED, /* a node has enough GPUs for slots_per_trial */
};

/* How many shapes sbatch tests at most, and how many of them in one partition. */
enum { SHAPES_MAX = 16, OF_PARTITION = 3, PARTITIONS_MAX = 64 };

/* Seconds by which two start times may differ and still count as the same. */
static const double same_start = 60;

/* scontrol does not show the nodes of another cluster. */
static bool asks_other_cluster (const struct experiment *e)
{
    static const char *const options[] = { "--clusters", "-M", NULL };

    return getenv ("SBATCH_CLUSTERS") || experiment_has_option (e, options);
}

/* Whether resources.gpus_per_trial, or a slots_per_trial that may exceed a node, has yet to be
 * turned into nodes.
 */
static bool shape_is_open (const struct experiment *e)
{
    if (e->resources->gpus > 0)
        return !(e->resources->given.nodes && e->resources->given.node_gpus);
    return e->resources->slots > 1 && e->resources->lanes == 1 && !e->resources->given.nodes
           && !e->resources->given.node_gpus && !experiment_places_itself (e)
           && !asks_other_cluster (e);
}

/* ---- the partition that the user chose ---- */

/* Find "--partition=a", "-pa" or "-p", "a" in sbatch_args. */
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

/* NULL: the user leaves the choice to dl. */
static const char *chosen_partition (const struct experiment *e)
{
    const char *name = partition_in (e->resources->sbatch_args);
    const char *variable = getenv ("SBATCH_PARTITION");

    if (!name)
        name = e->resources->partition ? e->resources->partition : variable;
    return name && *name ? name : NULL;
}

/* ---- the possible shapes ---- */

struct shapes {
    const struct experiment *e;
    struct slurm_nodes nodes;
    const char *chosen;
    char names[PARTITIONS_MAX][256]; /* of partitions */
    int nnames;
    char by_default[256];
    struct shape list[SHAPES_MAX];
    int n;
};

static void add_partition_name (struct shapes *s, const char *name, size_t len)
{
    if (len == 0 || len >= sizeof (s->names[0]) || s->nnames == PARTITIONS_MAX)
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

/* List the partitions that have GPUs, or those that the user chose. */
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

/* Whether the partition has enough nodes for 'wanted' GPUs, 'each' on a node. */
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

/* With slots_per_trial, a trial stays one process if some node has that many GPUs. */
static bool fits_one_node (const struct shapes *s)
{
    if (s->e->resources->gpus > 0)
        return false;
    for (int i = 0; i < s->nnames; i++)
        if (most_gpus (s, s->names[i]) >= s->e->resources->slots)
            return true;
    return false;
}

/* List the shapes, those with the fewest nodes first. */
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

/* ---- start times ---- */

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
    executor_add_resources (&c, &e, 0);
    rv = slurm_test (&c, start, err);
    shape->seconds = rv < 0 ? -1 : start->seconds;
    snprintf (shape->start, sizeof (shape->start), "%s", rv < 0 ? "" : start->time);
    return rv;
}

/* Find the partition in which Slurm puts a job that names none. */
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

/* ---- messages ---- */

/* Return the nearest possible number of GPUs, upwards or downwards, or 0. */
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

static int fail_without_shape (const struct shapes *s, struct slurmdl_error *err)
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
    return errorf (err, "'resources.%s' = %lld: there are no such nodes (%s)%s",
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
                       "'resources.%s' = %lld: Slurm accepts none of %d shapes, first %ld x %ld in "
                       "partition %s: %s",
                       experiment_gpus_key (s->e), (long long)experiment_gpus (s->e), s->n,
                       s->list[0].nodes, s->list[0].gpus, s->list[0].partition, first.text);
    *best = *found;
    if (s->chosen || !slurm_preempts (&s->nodes, best->partition, best->preempts, best->how))
        *best->how = '\0';
    return 0;
}

/* Choose the shape that would start first; of two, the one in Slurm's default partition, else the
 * one with fewer nodes.  Decides only what the user's settings leave open, with one `scontrol show
 * node` and a few `sbatch --test-only`.
 */
static enum shape_choice shape_choose (const struct experiment *e, struct shape *best,
                                       struct slurmdl_error *err)
{
    struct shapes *s = xcalloc (1, sizeof (*s));
    enum shape_choice rv = SHAPE_FAILED;
    int saved;

    s->e = e;
    s->chosen = chosen_partition (e);
    if (slurm_nodes_ask (&s->nodes, err) == 0) {
        find_partitions (s);
        find_shapes (s);
        if (fits_one_node (s))
            rv = SHAPE_UNCHANGED;
        else
            rv = (s->n ? choose_shape (s, best, err) : fail_without_shape (s, err)) < 0
                     ? SHAPE_FAILED
                     : SHAPE_CHOSEN;
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

/* ---- the settings of an experiment ---- */

/* A job that starts within so many seconds starts now. */
enum { NOW = 60 };

/* Set what the user left open. */
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

/* "; a job would start now", if sbatch was asked. */
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

/* Slurm does not warn of this. */
static void preempt_text (char *buf, size_t size, const struct shape *s)
{
    *buf = '\0';
    if (*s->how)
        snprintf (buf, size,
                  "; jobs of partition %s preempt those of %s (PreemptMode=%s)"
                  ": resources.partition chooses another one",
                  s->preempts, s->partition, s->how);
}

static void print_shape (const struct experiment *e, const struct shape *s)
{
    char when[160];
    char preempted[800];

    start_text (when, sizeof (when), s);
    preempt_text (preempted, sizeof (preempted), s);
    fprintf (stderr, "dl: %lld GPUs: %ld node%s with %ld GPU%s and %ld rank%s each%s%s%s%s\n",
             (long long)experiment_gpus (e), s->nodes, s->nodes == 1 ? "" : "s", s->gpus,
             s->gpus == 1 ? "" : "s", s->ranks, s->ranks == 1 ? "" : "s",
             *s->partition ? ", in partition " : "", s->partition, when, preempted);
}

/* Print several nodes that the user chose. */
static void print_given_shape (const struct experiment *e)
{
    const struct shape s = { .nodes = (long)e->resources->nodes,
                             .gpus = (long)e->resources->node_gpus,
                             .ranks = (long)e->resources->ranks,
                             .seconds = -1 };

    if (e->resources->slots > 0 && e->resources->nodes > 1)
        print_shape (e, &s);
}

/* Without Slurm, all GPUs are those of this machine, and one command gets all of them.  Returns an
 * exit status, or -1 if nothing needs to change.
 */
static int find_shape (const struct experiment *e, const struct start_options *opt,
                       struct shape *shape)
{
    struct slurmdl_error err = { "" };
    enum shape_choice choice;

    *shape = (struct shape){ .nodes = 1, .gpus = (long)e->resources->gpus, .ranks = 1 };
    if (opt->local || (opt->no_workers && e->resources->gpus == 0))
        return e->resources->gpus > 0 ? 0 : -1;
    choice = shape_choose (e, shape, &err);
    if (choice == SHAPE_CHOSEN)
        print_shape (e, shape);
    if (choice != SHAPE_FAILED)
        return choice == SHAPE_CHOSEN ? 0 : -1;
    if (errno != EPROTO)
        return fail (&err);
    complain ("%s; with nodes_per_trial and gpus_per_node Slurm is not asked; --local needs none",
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
            print_given_shape (*e);
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
