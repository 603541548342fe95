/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and tasks of a step, from its options. */
#include "launcher/env/step_layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/strings.h"
#include "runtime/base/array.h"
#include "runtime/base/word.h"

/* ---- hosts ---- */

struct hosts {
    char **name;
    size_t n, capacity;
};

static int add_host (void *arg, const char *host)
{
    struct hosts *h = arg;

    if (array_reserve (&h->name, &h->capacity, h->n, 1, sizeof (*h->name)) < 0)
        return -1;
    return (h->name[h->n++] = strdup (host)) ? 0 : -1;
}

/* By name and then by number, as Slurm lists its nodes. */
static int by_name (const void *a, const void *b)
{
    return strverscmp (*(char *const *)a, *(char *const *)b);
}

static void unite (struct hosts *h)
{
    size_t n = 0;

    if (h->n == 0)
        return;
    qsort (h->name, h->n, sizeof (*h->name), by_name);
    for (size_t i = 0; i < h->n; i++)
        if (n && !strcmp (h->name[n - 1], h->name[i]))
            free (h->name[i]);
        else
            h->name[n++] = h->name[i];
    h->n = n;
}

static void hosts_free (struct hosts *h)
{
    for (size_t i = 0; i < h->n; i++)
        free (h->name[i]);
    free (h->name);
}

static char *join (const struct hosts *h)
{
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream (&out, &size);

    for (size_t i = 0; f && i < h->n; i++)
        fprintf (f, "%s%s", i ? "," : "", h->name[i]);
    if (f)
        fclose (f);
    return out;
}

/* ---- tasks of each node ---- */

/* As Slurm deals them where each node has CPUs enough: in turn, by 'block'. */
static void share_out (const struct env_plan *p, long *tasks, long block)
{
    long left = p->ranks;

    memset (tasks, 0, (size_t)p->nodes * sizeof (*tasks));
    while (left > 0)
        for (long i = 0; i < p->nodes && left > 0; i++) {
            long n = left < block ? left : block;
            tasks[i] += n;
            left -= n;
        }
}

static char *write_tasks (const long *tasks, long nodes)
{
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream (&out, &size);

    for (long i = 0; f && i < nodes;) {
        long same = 1;
        while (i + same < nodes && tasks[i + same] == tasks[i])
            same++;
        fprintf (f, "%s%ld", i ? "," : "", tasks[i]);
        if (same > 1)
            fprintf (f, "(x%ld)", same);
        i += same;
    }
    if (f)
        fclose (f);
    return out;
}

static int find_tasks (struct env_plan *p, struct slurmdl_error *err)
{
    long *tasks = calloc ((size_t)p->nodes, sizeof (*tasks));

    if (!tasks)
        return errorf (err, "out of memory");
    share_out (p, tasks, p->plane > 0 ? p->plane : 1);
    if (p->ranks % p->nodes && !p->arbitrary)
        plan_note (p,
                   "%ld tasks on %ld nodes: as Slurm deals them where each "
                   "node has CPUs enough; --ntasks-per-node=4(x2),3 says it "
                   "otherwise",
                   p->ranks,
                   p->nodes);
    p->tasks = write_tasks (tasks, p->nodes);
    free (tasks);
    return p->tasks ? 0 : errorf (err, "out of memory");
}

/* ---- --nodes, --nodelist, --ntasks, --ntasks-per-node ---- */

/* "4(x2),3": how many nodes and tasks. */
static void count_tasks (const char *spec, long *nodes, long *ranks)
{
    long n;

    *nodes = *ranks = 0;
    while (*nodes <= LAYOUT_NODES
           && (n = layout_tasks_of_node (spec, *nodes)) > 0) {
        *ranks += n;
        ++*nodes;
    }
}

static int read_per_node (struct env_plan *p, struct slurmdl_error *err)
{
    const char *spec = plan_text (p, ASK_PER_NODE);
    long nodes;
    long ranks;

    if (!strpbrk (spec, ",("))
        return plan_number (
            p, ASK_PER_NODE, false, LAYOUT_RANKS, &p->per_node, err);
    count_tasks (spec, &nodes, &ranks);
    if (nodes < 1 || nodes > LAYOUT_NODES || (p->nodes && p->nodes != nodes)
        || (p->ranks && p->ranks != ranks))
        return plan_refuse (
            p, ASK_PER_NODE, "not of as many nodes and tasks", err);
    p->nodes = nodes;
    p->ranks = ranks;
    p->tasks = strdup (spec);
    return p->tasks ? 0 : errorf (err, "out of memory");
}

static int name_hosts (struct env_plan *p, struct slurmdl_error *err)
{
    char *list = NULL;

    if (p->hosts)
        return 0;
    p->placeholders = true;
    if (asprintf (&list, p->nodes > 1 ? "node[1-%ld]" : "node%ld", p->nodes)
        < 0)
        return errorf (err, "out of memory");
    p->hosts = list;
    if (p->nodes > 1)
        plan_note (p,
                   "which nodes Slurm will give is not known: they are called "
                   "%s here (--nodelist=...)",
                   list);
    return 0;
}

static int read_counts (struct env_plan *p, struct slurmdl_error *err)
{
    if (plan_number (p, ASK_NTASKS, false, LAYOUT_RANKS, &p->ranks, err) < 0
        || read_per_node (p, err) < 0)
        return -1;
    if (!p->nodes && p->per_node && p->ranks)
        p->nodes = (p->ranks + p->per_node - 1) / p->per_node;
    if (!p->nodes) {
        p->nodes = 1;
        if (p->ranks > 1)
            plan_note (p, "--nodes is not given: as if all were on one node");
    }
    if (!p->ranks)
        p->ranks = p->nodes * (p->per_node ? p->per_node : 1);
    if (p->ranks < p->nodes)
        p->nodes = p->ranks; /* as srun, which warns */
    if (p->nodes > LAYOUT_NODES || p->ranks > LAYOUT_RANKS
        || (p->per_node && p->ranks > p->per_node * p->nodes))
        return plan_refuse (p,
                            p->per_node ? ASK_PER_NODE : ASK_NODES,
                            "too few for --ntasks, or too many",
                            err);
    return p->tasks ? 0 : find_tasks (p, err);
}

/* --nodelist by hand is that of the job; a step of the file may want fewer. */
static void choose_hosts (struct env_plan *p, struct hosts *h)
{
    bool by_hand = !strncmp (p->ask->where[ASK_NODELIST], "--", 2);

    if (!by_hand || p->nodes < 1 || (size_t)p->nodes >= h->n
        || !strncmp (p->ask->where[ASK_NODES], "--", 2))
        return;
    plan_note (p, "the step is on some of the nodes: as if on the first");
    while (h->n > (size_t)p->nodes)
        free (h->name[--h->n]);
}

static int
read_hosts (struct env_plan *p, struct hosts *h, struct slurmdl_error *err)
{
    long asked;

    if (plan_number (p, ASK_NODES, false, LAYOUT_NODES, &p->nodes, err) < 0)
        return -1;
    if (!*plan_text (p, ASK_NODELIST))
        return 0;
    if (layout_each_host (plan_text (p, ASK_NODELIST), add_host, h) != 0)
        return plan_refuse (p, ASK_NODELIST, "no list of hosts", err);
    asked = p->nodes;
    if (!p->arbitrary) {
        if (!p->ask->value[ASK_HET]) {
            unite (h);
            choose_hosts (p, h);
        }
        p->nodes = (long)h->n;
        p->hosts = join (h);
        if (!p->hosts)
            return errorf (err, "out of memory");
    }
    if (!p->arbitrary && asked && asked != p->nodes) {
        errno = EINVAL;
        return errorf (err,
                       "%.60s: %ld hosts for --nodes=%ld: name as many",
                       p->ask->where[ASK_NODELIST],
                       p->nodes,
                       asked);
    }
    return 0;
}

/* ---- --distribution ---- */

int plan_distribution (struct env_plan *p, struct slurmdl_error *err)
{
    static const char *const words[] = {
        "block", "cyclic", "plane", "arbitrary", NULL
    };
    const char *value = plan_text (p, ASK_DISTRIBUTION);
    char why[80] = "no such distribution; ";
    size_t n = strlen (why);
    char word[64];

    snprintf (word, sizeof (word), "%.*s", (int)strcspn (value, ":=,"), value);
    if (!*word || !strcmp (word, "*")) {
        *p->distribution = '\0';
        return 0;
    }
    if (!strings_contain (words, word)) {
        word_hint (why + n, sizeof (why) - n, word, words);
        return plan_refuse (p, ASK_DISTRIBUTION, why, err);
    }
    snprintf (p->distribution, sizeof (p->distribution), "%s", word);
    p->arbitrary = !strcmp (word, "arbitrary");
    if (!strcmp (word, "plane")) {
        p->plane = value[5] == '=' ? atol (value + 6) : 0;
        if (p->plane < 1)
            return plan_refuse (p, ASK_DISTRIBUTION, "plane=SIZE", err);
    }
    return 0;
}

/* ---- arbitrary: the list of hosts has one for each rank, in order ---- */

static long index_of (const struct hosts *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (!strcmp (h->name[i], name))
            return (long)i;
    return -1;
}

static int deal (struct env_plan *p, const char *distribution)
{
    const struct layout_facts f = { .hosts = p->hosts,
                                    .tasks = p->tasks,
                                    .distribution = distribution,
                                    .plane = p->plane,
                                    .ranks = p->ranks };

    return layout_deal (&p->layout, &f);
}

static int place (struct env_plan *p, const struct hosts *order)
{
    struct hosts nodes = { NULL };
    struct rank_layout *l = &p->layout;
    long tasks[LAYOUT_NODES] = { 0 };
    long node;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < order->n; i++)
        rv = add_host (&nodes, order->name[i]);
    unite (&nodes);
    p->nodes = nodes.n > LAYOUT_NODES ? 0 : (long)nodes.n;
    for (size_t r = 0; p->nodes && r < order->n; r++)
        tasks[index_of (&nodes, order->name[r])]++;
    p->hosts = join (&nodes);
    p->tasks = write_tasks (tasks, p->nodes);
    if (rv < 0 || !p->nodes || !p->hosts || !p->tasks || deal (p, NULL) < 0)
        rv = -1;
    memset (tasks, 0, sizeof (tasks));
    for (size_t r = 0; rv == 0 && r < order->n; r++) {
        node = index_of (&nodes, order->name[r]);
        l->node_of[r] = (uint16_t)node;
        l->local_of[r] = (uint16_t)tasks[node]++;
    }
    hosts_free (&nodes);
    return rv;
}

/* The layout that Slurm makes of it; no variable of a task says it. */
static int deal_arbitrary (struct env_plan *p,
                           const struct hosts *order,
                           struct slurmdl_error *err)
{
    errno = EINVAL;
    if (order->n == 0 || (p->ranks && p->ranks != (long)order->n))
        return errorf (err,
                       "--distribution=arbitrary: --nodelist has one host for "
                       "each of the tasks, in their order");
    p->ranks = (long)order->n;
    return place (p, order) < 0
               ? errorf (err, "--nodelist: too many hosts: %zu", order->n)
               : 0;
}

int plan_layout (struct env_plan *p, struct slurmdl_error *err)
{
    struct hosts h = { NULL };
    int rv = read_hosts (p, &h, err);

    if (rv == 0 && p->arbitrary) {
        rv = plan_number (p, ASK_NTASKS, false, LAYOUT_RANKS, &p->ranks, err);
        rv = rv < 0 ? rv : deal_arbitrary (p, &h, err);
    } else if (rv == 0) {
        rv = read_counts (p, err) < 0 || name_hosts (p, err) < 0 ? -1 : 0;
        if (rv == 0 && deal (p, p->distribution) < 0)
            rv = errorf (err,
                         "%ld tasks on the nodes %.60s as %.40s: %s",
                         p->ranks,
                         p->hosts,
                         p->tasks,
                         errno == E2BIG ? "too many" : "it does not fit");
    }
    hosts_free (&h);
    return rv;
}
