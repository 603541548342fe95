/* SPDX-License-Identifier: Apache-2.0 */
/* The step that options of `dl env` describe, and what the plugin would give
 * its ranks.
 */
#include "launcher/node/env_plan.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_word.h"
#include "runtime/host/sysfs.h"
#include "runtime/network/nccl.h"
#include "runtime/rank/binding.h"

/* ---- an environment in memory ---- */

static struct env_entry *find_entry (const struct env_entries *e, const char *name)
{
    for (size_t i = 0; i < e->n; i++)
        if (!strcmp (e->list[i].name, name))
            return &e->list[i];
    return NULL;
}

const struct env_entry *entries_find (const struct env_entries *e, const char *name)
{
    return find_entry (e, name);
}

static struct env_entry *add_entry (struct env_entries *e, const char *name)
{
    struct env_entry *at = find_entry (e, name);

    if (at)
        return at;
    XGROW (e->list, e->n);
    at = &e->list[e->n++];
    *at = (struct env_entry){ .name = xstrdup (name) };
    return at;
}

void entries_put (struct env_entries *e, const char *name, const char *value)
{
    struct env_entry *at = add_entry (e, name);

    free (at->value);
    at->value = xstrdup (value);
    at->user = false;
}

static void entries_prune (struct env_entries *e)
{
    size_t n = 0;

    for (size_t i = 0; i < e->n; i++)
        if (e->list[i].given || e->list[i].kept)
            e->list[n++] = e->list[i];
        else {
            free (e->list[i].name);
            free (e->list[i].value);
        }
    e->n = n;
}

void entries_free (struct env_entries *e)
{
    for (size_t i = 0; i < e->n; i++) {
        free (e->list[i].name);
        free (e->list[i].value);
    }
    free (e->list);
    *e = (struct env_entries){ NULL };
}

static enum variable_state get_entry (void *arg, const char *name, char *buf, int size)
{
    struct env_entry *at = find_entry (arg, name);

    if (!at || !at->value)
        return VARIABLE_UNSET;
    at->kept = at->user && !at->given && strncmp (name, "DL_", 3);
    return snprintf (buf, (size_t)size, "%s", at->value) < size ? VARIABLE_COPIED
                                                                : VARIABLE_TOO_LONG;
}

static void set_entry (void *arg, const char *name, const char *value)
{
    struct env_entry *at = add_entry (arg, name);

    free (at->value);
    at->value = xstrdup (value);
    at->given = true;
    at->kept = false;
}

static void unset_entry (void *arg, const char *name)
{
    struct env_entry *at = find_entry (arg, name);

    if (!at)
        return;
    free (at->value);
    at->value = NULL;
    at->given = true;
}

struct variables entries_variables (struct env_entries *e)
{
    return (struct variables){ get_entry, set_entry, unset_entry, e };
}

/* ---- the step ---- */

/* ---- options ---- */

static const char *const option_names[ENV_OPTIONS] = {
    [ENV_NODES] = "--nodes",
    [ENV_NODELIST] = "--nodelist",
    [ENV_NTASKS] = "--ntasks",
    [ENV_PER_NODE] = "--ntasks-per-node",
    [ENV_DISTRIBUTION] = "--distribution",
    [ENV_CPUS] = "--cpus-per-task",
    [ENV_GPUS_PER_NODE] = "--gpus-per-node",
    [ENV_GPUS_PER_TASK] = "--gpus-per-task",
    [ENV_MPI] = "--mpi",
    [ENV_DL] = "--dl",
    [ENV_ROLES] = "--dl-roles",
    [ENV_BIND] = "--dl-bind",
    [ENV_NCCL] = "--dl-nccl",
    [ENV_JOB] = "--job",
    [ENV_RESV_PORTS] = "--resv-ports",
    [ENV_TOPOLOGY] = "--topology",
    [ENV_CPU_LIST] = "--cpu-list",
    [ENV_NCCL_DIR] = "--nccl-dir",
    [ENV_ONE_MACHINE] = "--one-machine",
};

/* The command's table of options has taken no others. */
static void read_plan_words (struct env_plan *p, char *const *words)
{
    for (; words && *words; words++) {
        size_t n = strcspn (*words, "=");
        for (int i = 0; i < ENV_OPTIONS; i++)
            if (strlen (option_names[i]) == n && !strncmp (*words, option_names[i], n))
                p->value[i] = *words + n + ((*words)[n] == '=');
    }
}

/* The value of an option, "" if it is not given. */
static const char *plan_text (const struct env_plan *p, enum env_option option)
{
    return p->value[option] ? p->value[option] : "";
}

void plan_note (struct env_plan *p, const char *fmt, ...)
{
    char line[PLAN_NOTE];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (line, sizeof (line), fmt, ap);
    va_end (ap);
    for (int i = 0; i < p->notes; i++)
        if (!strcmp (p->note[i], line))
            return;
    if (p->notes < PLAN_NOTES)
        memcpy (p->note[p->notes++], line, sizeof (line));
}

/* -1 with errno EINVAL. */
static int refuse_value (const struct env_plan *p, enum env_option option, const char *why,
                         struct slurmdl_error *err)
{
    errno = EINVAL;
    return errorf (err, "%s: '%.40s': %s", option_names[option], plan_text (p, option), why);
}

/* A number from 1 on in *n, 0 if it is not given; of "2-4" the first; if it may
 * be 'typed', of "a100:2" the last.
 */
static int read_option_number (struct env_plan *p, enum env_option key, bool typed, long max,
                               long *n, struct slurmdl_error *err)
{
    const char *value = plan_text (p, key);
    const char *colon = typed ? strrchr (value, ':') : NULL;
    char bounds[64];
    char *end;

    *n = 0;
    if (!*value)
        return 0;
    if (colon)
        value = colon + 1;
    *n = strtol (value, &end, 10);
    if (end != value && *end == '-' && key == ENV_NODES) {
        plan_note (p, "--nodes=%s: as if Slurm gave %ld", value, *n);
        return 0;
    }
    if (end == value || *end || *n < 1 || *n > max) {
        snprintf (bounds, sizeof (bounds), "must be a number from 1 to %ld", max);
        return refuse_value (p, key, bounds, err);
    }
    return 0;
}

/* ---- hosts ---- */

struct hosts {
    char **name;
    size_t n;
};

static int add_plan_host (void *arg, const char *host)
{
    struct hosts *h = arg;

    XGROW (h->name, h->n);
    h->name[h->n++] = xstrdup (host);
    return 0;
}

/* By name and then by number, as Slurm lists its nodes. */
static int by_host_name (const void *a, const void *b)
{
    return strverscmp (*(char *const *)a, *(char *const *)b);
}

static void unite (struct hosts *h)
{
    size_t n = 0;

    if (h->n == 0)
        return;
    qsort (h->name, h->n, sizeof (*h->name), by_host_name);
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

static char *join_hosts (const struct hosts *h)
{
    char *out;
    size_t size;
    FILE *f = xopen_memstream (&out, &size);

    for (size_t i = 0; i < h->n; i++)
        fprintf (f, "%s%s", i ? "," : "", h->name[i]);
    xclose_memstream (f);
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
    char *out;
    size_t size;
    FILE *f = xopen_memstream (&out, &size);

    for (long i = 0; i < nodes;) {
        long same = 1;
        while (i + same < nodes && tasks[i + same] == tasks[i])
            same++;
        fprintf (f, "%s%ld", i ? "," : "", tasks[i]);
        if (same > 1)
            fprintf (f, "(x%ld)", same);
        i += same;
    }
    xclose_memstream (f);
    return out;
}

static void share_tasks (struct env_plan *p)
{
    long *tasks = xcalloc ((size_t)p->nodes, sizeof (*tasks));

    share_out (p, tasks, p->plane > 0 ? p->plane : 1);
    if (p->ranks % p->nodes && !p->arbitrary)
        plan_note (p,
                   "%ld tasks on %ld nodes: as Slurm deals them where each "
                   "node has CPUs enough; --ntasks-per-node=4(x2),3 says it "
                   "otherwise",
                   p->ranks, p->nodes);
    p->tasks = write_tasks (tasks, p->nodes);
    free (tasks);
}

/* ---- --nodes, --nodelist, --ntasks, --ntasks-per-node ---- */

/* "4(x2),3": how many nodes and tasks. */
static void count_listed_tasks (const char *spec, long *nodes, long *ranks)
{
    long n;

    *nodes = *ranks = 0;
    while (*nodes <= LAYOUT_NODES && (n = layout_tasks_of_node (spec, *nodes)) > 0) {
        *ranks += n;
        ++*nodes;
    }
}

static int read_per_node (struct env_plan *p, struct slurmdl_error *err)
{
    const char *spec = plan_text (p, ENV_PER_NODE);
    long nodes;
    long ranks;

    if (!strpbrk (spec, ",("))
        return read_option_number (p, ENV_PER_NODE, false, LAYOUT_RANKS, &p->per_node, err);
    count_listed_tasks (spec, &nodes, &ranks);
    if (nodes < 1 || nodes > LAYOUT_NODES || (p->nodes && p->nodes != nodes)
        || (p->ranks && p->ranks != ranks))
        return refuse_value (p, ENV_PER_NODE, "not of as many nodes and tasks", err);
    p->nodes = nodes;
    p->ranks = ranks;
    p->tasks = xstrdup (spec);
    return 0;
}

static void name_hosts (struct env_plan *p)
{
    if (p->hosts)
        return;
    p->hosts = xasprintf (p->nodes > 1 ? "node[1-%ld]" : "node%ld", p->nodes);
    if (p->nodes > 1)
        plan_note (p,
                   "which nodes Slurm will give is not known: they are called "
                   "%s here (--nodelist=...)",
                   p->hosts);
}

static int read_counts (struct env_plan *p, struct slurmdl_error *err)
{
    if (read_option_number (p, ENV_NTASKS, false, LAYOUT_RANKS, &p->ranks, err) < 0
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
        return refuse_value (p, p->per_node ? ENV_PER_NODE : ENV_NODES,
                             "too few for --ntasks, or too many", err);
    if (!p->tasks)
        share_tasks (p);
    return 0;
}

static int read_hosts (struct env_plan *p, struct hosts *h, struct slurmdl_error *err)
{
    long asked;

    if (read_option_number (p, ENV_NODES, false, LAYOUT_NODES, &p->nodes, err) < 0)
        return -1;
    if (!*plan_text (p, ENV_NODELIST))
        return 0;
    if (layout_each_host (plan_text (p, ENV_NODELIST), add_plan_host, h) != 0)
        return refuse_value (p, ENV_NODELIST, "no list of hosts", err);
    asked = p->nodes;
    if (!p->arbitrary) {
        unite (h);
        p->nodes = (long)h->n;
        p->hosts = join_hosts (h);
    }
    if (!p->arbitrary && asked && asked != p->nodes) {
        errno = EINVAL;
        return errorf (err, "--nodelist: %ld hosts for --nodes=%ld: name as many", p->nodes, asked);
    }
    return 0;
}

/* ---- --distribution ---- */

static int read_distribution (struct env_plan *p, struct slurmdl_error *err)
{
    static const char *const words[] = { "block", "cyclic", "plane", "arbitrary", NULL };
    const char *value = plan_text (p, ENV_DISTRIBUTION);
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
        return refuse_value (p, ENV_DISTRIBUTION, why, err);
    }
    snprintf (p->distribution, sizeof (p->distribution), "%s", word);
    p->arbitrary = !strcmp (word, "arbitrary");
    if (!strcmp (word, "plane")) {
        p->plane = value[5] == '=' ? atol (value + 6) : 0;
        if (p->plane < 1)
            return refuse_value (p, ENV_DISTRIBUTION, "plane=SIZE", err);
    }
    return 0;
}

/* ---- arbitrary: the list of hosts has one for each rank, in order ---- */

static long index_of_host (const struct hosts *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (!strcmp (h->name[i], name))
            return (long)i;
    return -1;
}

static int deal_tasks (struct env_plan *p, const char *distribution)
{
    const struct layout_facts f = { .hosts = p->hosts,
                                    .tasks = p->tasks,
                                    .distribution = distribution,
                                    .plane = p->plane,
                                    .ranks = p->ranks };

    return layout_deal (&p->layout, &f);
}

static int place_task_counts (struct env_plan *p, const struct hosts *order)
{
    struct hosts nodes = { NULL };
    struct rank_layout *l = &p->layout;
    long tasks[LAYOUT_NODES] = { 0 };
    long node;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < order->n; i++)
        rv = add_plan_host (&nodes, order->name[i]);
    unite (&nodes);
    p->nodes = nodes.n > LAYOUT_NODES ? 0 : (long)nodes.n;
    for (size_t r = 0; p->nodes && r < order->n; r++)
        tasks[index_of_host (&nodes, order->name[r])]++;
    p->hosts = join_hosts (&nodes);
    p->tasks = write_tasks (tasks, p->nodes);
    if (rv < 0 || !p->nodes || !p->hosts || !p->tasks || deal_tasks (p, NULL) < 0)
        rv = -1;
    memset (tasks, 0, sizeof (tasks));
    for (size_t r = 0; rv == 0 && r < order->n; r++) {
        node = index_of_host (&nodes, order->name[r]);
        l->node_of[r] = (uint16_t)node;
        l->local_of[r] = (uint16_t)tasks[node]++;
    }
    hosts_free (&nodes);
    return rv;
}

/* The layout that Slurm makes of it; no variable of a task says it. */
static int deal_listed_tasks (struct env_plan *p, const struct hosts *order,
                              struct slurmdl_error *err)
{
    errno = EINVAL;
    if (order->n == 0 || (p->ranks && p->ranks != (long)order->n))
        return errorf (err, "--distribution=arbitrary: --nodelist has one host for "
                            "each of the tasks, in their order");
    p->ranks = (long)order->n;
    return place_task_counts (p, order) < 0
               ? errorf (err, "--nodelist: too many hosts: %zu", order->n)
               : 0;
}

static int read_layout (struct env_plan *p, struct slurmdl_error *err)
{
    struct hosts h = { NULL };
    int rv = read_hosts (p, &h, err);

    if (rv == 0 && p->arbitrary) {
        rv = read_option_number (p, ENV_NTASKS, false, LAYOUT_RANKS, &p->ranks, err);
        rv = rv < 0 ? rv : deal_listed_tasks (p, &h, err);
    } else if (rv == 0) {
        if ((rv = read_counts (p, err)) == 0)
            name_hosts (p);
        if (rv == 0 && deal_tasks (p, p->distribution) < 0)
            rv = errorf (err, "%ld tasks on the nodes %.60s as %.40s: %s", p->ranks, p->hosts,
                         p->tasks, errno == E2BIG ? "too many" : "it does not fit");
    }
    hosts_free (&h);
    return rv;
}

/* ---- the rest ---- */

static int read_gpus_per_node (struct env_plan *p, struct slurmdl_error *err)
{
    if (read_option_number (p, ENV_GPUS_PER_NODE, true, GPUS_MAX, &p->gpus, err) < 0
        || read_option_number (p, ENV_GPUS_PER_TASK, true, GPUS_MAX, &p->gpus_per_task, err) < 0)
        return -1;
    if (p->gpus_per_task && !p->gpus && p->nodes == 1)
        p->gpus = p->gpus_per_task * p->ranks;
    if (p->gpus > GPUS_MAX)
        p->gpus = GPUS_MAX;
    return 0;
}

static int read_word (struct env_plan *p, enum env_option key, const char *const *words, bool list,
                      struct slurmdl_error *err)
{
    const char *at = plan_text (p, key);
    char why[160] = "no such value; ";
    size_t n = strlen (why);
    char word[128];

    while (*at) {
        size_t len = list ? strcspn (at, ",") : strlen (at);
        snprintf (word, sizeof (word), "%.*s", (int)len, at);
        if (!strings_contain (words, word)) {
            word_hint (why + n, sizeof (why) - n, word, words);
            return refuse_value (p, key, why, err);
        }
        at += len + (at[len] == ',');
    }
    return 0;
}

static int read_options (struct env_plan *p, struct slurmdl_error *err)
{
    static const enum env_option ours[] = { ENV_DL, ENV_ROLES, ENV_BIND, ENV_NCCL };
    static const char *const types[] = { "none",    "pmi2",    "pmix",        "pmix_v2", "pmix_v3",
                                         "pmix_v4", "pmix_v5", "cray_shasta", "openmpi", NULL };
    struct rank_roles roles;
    char why[160];

    for (size_t i = 0; i < sizeof (ours) / sizeof (*ours); i++)
        if (p->value[ours[i]] && !*plan_text (p, ours[i]))
            return refuse_value (p, ours[i], "no value is given", err);
    p->dl = plan_text (p, ENV_DL);
    p->roles = plan_text (p, ENV_ROLES);
    p->bind = plan_text (p, ENV_BIND);
    p->nccl = plan_text (p, ENV_NCCL);
    if (read_word (p, ENV_DL, rank_environment_frameworks, false, err) < 0
        || read_word (p, ENV_BIND, bind_words, true, err) < 0
        || read_word (p, ENV_MPI, types, false, err) < 0)
        return -1;
    if (*p->roles && roles_parse (p->roles, &roles, why, sizeof (why)) < 0)
        return refuse_value (p, ENV_ROLES, why, err);
    if (*p->nccl && nccl_check_name (p->nccl) < 0)
        return refuse_value (p, ENV_NCCL, "no name of a profile", err);
    if (!strcmp (p->dl, "off"))
        p->dl = "";
    return 0;
}

/* "1234" or "1234.2", as squeue writes a step. */
static int read_job_id (struct env_plan *p, struct slurmdl_error *err)
{
    const char *value = plan_text (p, ENV_JOB);
    char *end;

    if (!*value)
        return 0;
    p->job = (uint32_t)strtoul (value, &end, 10);
    if (end != value && *end == '.' && isdigit ((unsigned char)end[1]))
        p->step = (uint32_t)strtoul (end + 1, &end, 10);
    if (end == value || *end)
        return refuse_value (p, ENV_JOB, "JOB or JOB.STEP", err);
    p->has_job = true;
    return 0;
}

static int read_topology (struct env_plan *p, struct slurmdl_error *err)
{
    struct topology *t;

    if (!p->value[ENV_TOPOLOGY])
        return 0;
    if (!(t = topology_open (p->value[ENV_TOPOLOGY], &p->all)))
        return refuse_value (p, ENV_TOPOLOGY, strerror (errno), err);
    if (*plan_text (p, ENV_CPU_LIST)) {
        if (cpus_parse (plan_text (p, ENV_CPU_LIST), &p->all) < 0) {
            topology_close (t);
            return refuse_value (p, ENV_CPU_LIST, "no list of CPUs", err);
        }
    } else
        for (int i = 0; i < t->nodes; i++)
            for (size_t k = 0; k < sizeof (p->all.word) / sizeof (uint64_t); k++)
                p->all.word[k] |= t->node[i].cpus.word[k];
    for (int v = GPU_VENDORS - 1; v >= 0; v--)
        if (binding_gpus (t, (enum gpu_vendor)v, false) > 0)
            p->vendor = (enum gpu_vendor)v;
    topology_close (t);
    return 0;
}

static int read_all_options (struct env_plan *p, struct slurmdl_error *err)
{
    return read_options (p, err) < 0 || read_distribution (p, err) < 0 || read_layout (p, err) < 0
                   || read_gpus_per_node (p, err) < 0
                   || read_option_number (p, ENV_CPUS, false, CPUS_MAX, &p->cpus, err) < 0
                   || read_job_id (p, err) < 0 || read_topology (p, err) < 0
               ? -1
               : 0;
}

static void list_ranks (struct env_plan *p)
{
    size_t size;

    p->gtids = xcalloc ((size_t)p->nodes, sizeof (char *));
    for (long i = 0; i < p->nodes; i++) {
        FILE *f = xopen_memstream (&p->gtids[i], &size);
        const char *gap = "";
        for (long r = 0; r < p->ranks; r++)
            if (p->layout.node_of[r] == i) {
                fprintf (f, "%s%ld", gap, r);
                gap = ",";
            }
        xclose_memstream (f);
    }
}

int plan_create (struct env_plan **plan, char *const *words, struct slurmdl_error *err)
{
    struct env_plan *p = *plan = xcalloc (1, sizeof (*p));

    p->task = xcalloc (1, sizeof (*p->task));
    p->job = 1;
    read_plan_words (p, words);
    if (read_all_options (p, err) < 0)
        return -1;
    list_ranks (p);
    return 0;
}

void plan_destroy (struct env_plan *p)
{
    if (!p)
        return;
    for (long i = 0; p->gtids && i < p->nodes; i++)
        free (p->gtids[i]);
    free (p->gtids);
    free (p->hosts);
    free (p->tasks);
    free (p->task);
    free (p);
}

/* ---- a rank ---- */

extern char **environ;

enum { EPHEMERAL = 32768, TEXT = 4096 };

const char *const plan_doubts[] = {
    [PLAN_PORTS] = "chosen by the number of the job (--job) or reserved by "
                   "Slurm (--resv-ports)",
    [PLAN_INTERFACE] = "each node's address and interface on the way to the "
                       "master",
    [PLAN_CPUS] = "set where Slurm gives the task one CPU",
};

/* What may be known of a step, or is only made up to see what depends on it. */
struct variant {
    uint32_t job, step;
    bool interface, one_cpu;
};

/* ---- Slurm's variables ---- */

static void put_number_entry (struct env_entries *e, const char *name, long n)
{
    char value[32];

    snprintf (value, sizeof (value), "%ld", n);
    entries_put (e, name, value);
}

/* What is exported here reaches the job (--export=ALL, the default). */
static void inherit_exports (struct env_entries *e)
{
    char name[256];

    for (char **v = environ; *v; v++) {
        size_t n = strcspn (*v, "=");
        if (variable_is_of_job (*v) || !strncmp (*v, "SLURM_", 6) || n >= sizeof (name))
            continue;
        snprintf (name, sizeof (name), "%.*s", (int)n, *v);
        entries_put (e, name, *v + n + ((*v)[n] == '='));
        e->list[e->n - 1].user = true;
    }
}

/* Slurm's order: all of the node's GPUs, or the task's own ones. */
static void put_visible_gpus (const struct env_plan *p, long local, struct env_entries *e)
{
    static const char *const names[] = { [GPU_NVIDIA] = "CUDA_VISIBLE_DEVICES",
                                         [GPU_AMD] = "ROCR_VISIBLE_DEVICES",
                                         [GPU_INTEL] = "ZE_AFFINITY_MASK" };
    long first = p->gpus_per_task ? local * p->gpus_per_task : 0;
    long count = p->gpus_per_task ? p->gpus_per_task : p->gpus;
    char list[TEXT] = "";
    int used = 0;

    if (count < 1)
        return;
    for (long i = first; i < first + count; i++)
        used += snprintf (list + used, sizeof (list) - (size_t)used, "%s%ld", used ? "," : "", i);
    if (p->gpus_per_task)
        put_number_entry (e, "SLURM_GPUS_PER_TASK", p->gpus_per_task);
    put_number_entry (e, "SLURM_GPUS_ON_NODE",
                      p->gpus ? p->gpus : p->gpus_per_task * p->layout.most);
    entries_put (e, names[p->vendor], list);
}

static void put_pmi (const struct env_plan *p, long rank, struct env_entries *e)
{
    const char *mpi = p->value[ENV_MPI];

    if (!mpi)
        mpi = strcmp (p->dl, "mpi") ? "none" : "pmix";
    if (!strncmp (mpi, "pmix", 4))
        put_number_entry (e, "PMIX_RANK", rank);
    else if (!strcmp (mpi, "pmi2"))
        put_number_entry (e, "PMI_FD", 3);
}

static void put_place (const struct env_plan *p, long rank, struct env_entries *e)
{
    long node = p->layout.node_of[rank];

    put_number_entry (e, "SLURM_PROCID", rank);
    put_number_entry (e, "SLURM_STEP_NUM_TASKS", p->ranks);
    put_number_entry (e, "SLURM_STEP_NUM_NODES", p->nodes);
    put_number_entry (e, "SLURM_LOCALID", p->layout.local_of[rank]);
    put_number_entry (e, "SLURM_NODEID", node);
    entries_put (e, "SLURM_STEP_NODELIST", p->hosts);
    entries_put (e, "SLURM_STEP_TASKS_PER_NODE", p->tasks);
    entries_put (e, "SLURM_GTIDS", p->gtids[node]);
    entries_put (e, "SLURMD_NODENAME", layout_host (&p->layout, rank));
    if (*p->distribution)
        entries_put (e, "SLURM_DISTRIBUTION", p->distribution);
    if (p->plane)
        put_number_entry (e, "SLURM_DIST_PLANESIZE", p->plane);
    if (p->cpus)
        put_number_entry (e, "SLURM_CPUS_PER_TASK", p->cpus);
    if (p->per_node)
        put_number_entry (e, "SLURM_NTASKS_PER_NODE", p->per_node);
}

static void put_slurm (const struct env_plan *p, long rank, const struct variant *v,
                       struct env_entries *e)
{
    const char *ports = p->value[ENV_RESV_PORTS];
    int cpus = cpus_count (&p->all);

    inherit_exports (e);
    put_place (p, rank, e);
    put_visible_gpus (p, p->layout.local_of[rank], e);
    put_pmi (p, rank, e);
    put_number_entry (e, "SLURM_JOB_ID", v->job);
    if (p->arbitrary)
        entries_put (e, ORDER_VARIABLE, plan_text (p, ENV_NODELIST));
    if (ports)
        entries_put (e, "SLURM_STEP_RESV_PORTS", ports);
    if (cpus)
        put_number_entry (e, "SLURM_CPUS_ON_NODE", cpus);
}

/* ---- --dl ---- */

static int first_ephemeral_port (void)
{
    int root = open ("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    long n = sysfs_number (root, "proc/sys/net/ipv4/ip_local_port_range", EPHEMERAL);

    if (root >= 0)
        close (root);
    return n > 0 ? (int)n : EPHEMERAL;
}

static void set_here (struct rank_facts *f)
{
    strcpy (f->address, "127.0.0.1");
    strcpy (f->own_address, "127.0.0.1");
    strcpy (f->interface, "lo");
}

/* Documentation addresses: they are compared, never shown. */
static void set_anything (struct rank_facts *f)
{
    strcpy (f->address, "192.0.2.1");
    strcpy (f->own_address, "192.0.2.2");
    strcpy (f->interface, "any0");
}

static void find_plan_master (struct env_plan *p, struct task *t, const struct variant *v)
{
    struct rank_facts *f = &t->facts;

    if (f->nodes > 1 && task_master_host (t, f->master, sizeof (f->master)) < 0) {
        *f->master = '\0';
    } else if (f->nodes == 1 || p->value[ENV_ONE_MACHINE]) {
        task_master_here (t);
        set_here (f);
    } else if (v->interface)
        set_anything (f);
}

static int set_framework (struct env_plan *p, const struct variant *v, struct env_entries *e,
                          struct slurmdl_error *err)
{
    struct task *t = p->task;
    const char *roles = *p->roles ? p->roles : rank_environment_roles (p->dl);
    char line[200];
    int n;

    memset (t, 0, sizeof (*t));
    t->vars = entries_variables (e);
    t->step = v->step;
    if (task_read (t, roles) < 0) {
        errno = EINVAL;
        return errorf (err, "--dl=%s: nothing is set: %s", p->dl, t->why);
    }
    t->facts.job = v->job;
    t->facts.step = v->step;
    t->facts.one_cpu = v->one_cpu;
    find_plan_master (p, t, v);
    task_ports (t, rank_environment_needs_task_ports (p->dl), first_ephemeral_port ());
    n = rank_environment_fill (p->dl, &t->facts, &t->environment);
    if (*t->environment.why)
        plan_note (p, "--dl=%s: %s", p->dl, t->environment.why);
    rank_environment_advice (p->dl, &t->facts, line, sizeof (line));
    if (*line)
        plan_note (p, "--dl=%s: %s", p->dl, line);
    if (n > 0)
        task_set (t, n);
    return 0;
}

/* ---- --dl-bind ---- */

static void print_gpus (const struct binding *b, char *buf, size_t size)
{
    size_t used = 0;

    *buf = '\0';
    for (int i = 0; i < b->p.count && used < size; i++) {
        int gpu = b->visible[b->p.order[b->p.first + i]];
        const char *name = gpu < 0 ? "unknown" : strrchr (b->t->gpu[gpu].path, '/') + 1;
        used += (size_t)snprintf (buf + used, size - used, "%s%s", i ? "," : "", name);
    }
}

static void print_place (const struct binding *b, struct plan_rank *r)
{
    bool stays = cpus_count (&b->p.cpus) == 0;

    print_gpus (b, r->gpus, sizeof (r->gpus));
    cpus_print (stays ? &b->own : &b->p.cpus, r->cpus, sizeof (r->cpus));
    if (b->p.nic >= 0)
        snprintf (r->nic, sizeof (r->nic), "%s %s", b->t->nic[b->p.nic].name,
                  distance_names[b->p.nic_distance]);
}

static int bind_plan_rank (struct env_plan *p, struct binding *b, struct plan_rank *r,
                           struct slurmdl_error *err)
{
    const char *why = NULL;

    if (binding_place (b) < 0)
        why = "too many ranks on a node";
    b->own = p->all;
    binding_cpus (b, &b->own);
    if (!why)
        why = binding_decide (b, p->value[ENV_TOPOLOGY]);
    if (why) {
        errno = EINVAL;
        return errorf (err, "--dl-bind=%s: nothing is bound: %s", p->bind, why);
    }
    binding_set (b);
    print_place (b, r);
    if (b->p.far)
        plan_note (p, "--dl-bind: a rank has no core near its GPU");
    return 0;
}

static int set_binding (struct env_plan *p, struct plan_rank *r, struct slurmdl_error *err)
{
    struct binding *b = xcalloc (1, sizeof (*b));
    int rv = 0;

    b->vars = entries_variables (&r->vars);
    binding_words (b, p->bind);
    if (binding_is_wanted (b) && !p->value[ENV_TOPOLOGY])
        plan_note (p,
                   "--dl-bind=%s: cores, order of the GPUs, OMP_NUM_THREADS "
                   "and DL_BIND_SET are decided on the node: --topology=DIR "
                   "has its /sys and /proc",
                   p->bind);
    else if (binding_is_wanted (b))
        rv = bind_plan_rank (p, b, r, err);
    topology_close (b->t);
    free (b);
    return rv;
}

/* ---- --dl-nccl ---- */

static void note_line (void *arg, const char *line)
{
    plan_note (arg, "%s", line);
}

static void set_network (struct env_plan *p, struct plan_rank *r)
{
    const struct variables v = entries_variables (&r->vars);
    const char *dir = p->value[ENV_NCCL_DIR];
    struct nccl_profile profile = { .n = 0 };
    struct fabric *f = xcalloc (1, sizeof (*f));
    char text[NCCL_VALUE];
    char sys[TEXT];

    if (p->value[ENV_TOPOLOGY]) {
        snprintf (sys, sizeof (sys), "%s/sys", p->value[ENV_TOPOLOGY]);
        fabric_read (sys, f);
        fabric_text (f, text, sizeof (text));
    } else
        plan_note (p,
                   "--dl-nccl=%s: DL_NCCL_FABRIC%s known on the node: "
                   "--topology=DIR has its /sys",
                   p->nccl, strcmp (p->nccl, "auto") ? " is" : ", and the profile, are");
    if (p->value[ENV_TOPOLOGY] || strcmp (p->nccl, "auto")) {
        nccl_choose (dir ? dir : SYSCONFDIR "/slurm-dl/nccl.d", "/etc/nccl.conf", p->nccl, f,
                     &profile, note_line, p);
        nccl_set (&v, &profile);
    }
    if (p->value[ENV_TOPOLOGY])
        v.set (v.arg, "DL_NCCL_FABRIC", text);
    free (f);
}

/* ---- a rank ---- */

/* Note what has another value, or any, once something else is known. */
static int note_variant (struct env_plan *p, struct plan_rank *r, const struct variant *v,
                         enum plan_doubt why, struct slurmdl_error *err)
{
    struct env_entries other = { NULL };
    int rv;

    put_slurm (p, r->rank, v, &other);
    rv = set_framework (p, v, &other, err);
    for (size_t i = 0; rv == 0 && i < other.n; i++) {
        const struct env_entry *o = &other.list[i];
        const struct env_entry *e = entries_find (&r->vars, o->name);
        if (!o->given || (e && e->value && o->value && !strcmp (e->value, o->value)))
            continue;
        entries_put (&r->unknown, o->name, plan_doubts[why]);
    }
    entries_free (&other);
    return rv;
}

static int fill_rank (struct env_plan *p, struct plan_rank *r, struct slurmdl_error *err)
{
    struct variant v = { p->job, p->step, false, false };
    struct variant interface = { p->job, p->step, true, false };
    struct variant cpu = { p->job, p->step, false, true };
    struct variant job = { p->job + 4711, p->step, false, false };

    put_slurm (p, r->rank, &v, &r->vars);
    if (*p->dl && set_framework (p, &v, &r->vars, err) < 0)
        return -1;
    if (*p->dl && p->task->facts.roles)
        r->role = role_names[roles_of (&p->task->roles, r->rank, &r->role_index)];
    if (*p->dl
        && (note_variant (p, r, &interface, PLAN_INTERFACE, err) < 0
            || note_variant (p, r, &cpu, PLAN_CPUS, err) < 0
            || (!p->has_job && note_variant (p, r, &job, PLAN_PORTS, err) < 0)))
        return -1;
    if (*p->bind && set_binding (p, r, err) < 0)
        return -1;
    if (*p->nccl && strcmp (p->nccl, "none"))
        set_network (p, r);
    return 0;
}

int plan_rank (struct env_plan *p, long rank, struct plan_rank *r, struct slurmdl_error *err)
{
    *r = (struct plan_rank){ .rank = rank,
                             .node = p->layout.node_of[rank],
                             .local = p->layout.local_of[rank],
                             .host = layout_host (&p->layout, rank),
                             .role = "" };
    if (fill_rank (p, r, err) < 0)
        return -1;
    entries_prune (&r->vars);
    return 0;
}

void plan_rank_free (struct plan_rank *r)
{
    entries_free (&r->vars);
    entries_free (&r->unknown);
}
