/* SPDX-License-Identifier: Apache-2.0 */
/* dl env: explain what the plugin has set in this step, or predict what it would set in a step. */
#include "launcher/node/node.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_word.h"
#include "runtime/host/sysfs.h"
#include "runtime/host/topology.h"
#include "runtime/network/exported.h"
#include "runtime/network/nccl.h"
#include "runtime/rank/binding.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/task.h"

struct env_entry {
    char *name;
    char *value; /* NULL: removed */
    bool user;   /* the user exported it */
    bool given;  /* the plugin set it */
    bool kept;   /* the plugin read it and left the user's value */
};

struct env_entries {
    struct env_entry *list;
    size_t n;
};

enum env_option {
    ENV_NODES,
    ENV_NODELIST,
    ENV_NTASKS,
    ENV_PER_NODE,
    ENV_DISTRIBUTION,
    ENV_CPUS,
    ENV_GPUS_PER_NODE,
    ENV_GPUS_PER_TASK,
    ENV_MPI,
    ENV_DL,
    ENV_ROLES,
    ENV_BIND,
    ENV_NCCL,
    /* facts that are known only when the job runs */
    ENV_JOB,
    ENV_RESV_PORTS,
    ENV_TOPOLOGY,
    ENV_CPU_LIST,
    ENV_NCCL_DIR,
    ENV_ONE_MACHINE,
    ENV_OPTIONS
};

enum { PLAN_NOTES = 24, PLAN_NOTE = 320 };

struct env_plan {
    const char *value[ENV_OPTIONS];       /* NULL: not given */
    const char *dl, *roles, *bind, *nccl; /* "" if not given */
    long nodes, ranks, per_node, gpus, gpus_per_task, cpus, plane;
    bool arbitrary, has_job;
    uint32_t job, step;
    char *hosts; /* as Slurm writes them */
    char *tasks;
    char distribution[64];
    char **gtids; /* one list per node */
    struct rank_layout layout;
    struct cpu_set all; /* CPUs of --topology, or of --cpu-list */
    enum gpu_vendor vendor;
    struct task *task; /* scratch */
    char note[PLAN_NOTES][PLAN_NOTE];
    int notes; /* number of notes to print */
};

/* Add a note, unless the plan already has it. */
static void plan_note (struct env_plan *p, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/* ---- a planned rank ---- */

/* Why the value of a variable is unknown before the job runs. */
enum plan_doubt { PLAN_PORTS, PLAN_INTERFACE, PLAN_CPUS, PLAN_DOUBTS };
static const char *const plan_doubts[] = {
    [PLAN_PORTS] = "chosen by the number of the job (--job) or reserved by Slurm (--resv-ports)",
    [PLAN_INTERFACE] = "each node's address and interface on the way to the master",
    [PLAN_CPUS] = "set where Slurm gives the task one CPU",
};

struct plan_rank {
    long rank, node, local;
    const char *host;
    const char *role; /* "": none */
    long role_index;
    char gpus[256], cpus[256], nic[64]; /* "": unknown */
    struct env_entries vars;
    struct env_entries unknown; /* each value is one of plan_doubts */
};

/* ---- an environment in memory ---- */

static struct env_entry *find_entry (const struct env_entries *e, const char *name)
{
    for (size_t i = 0; i < e->n; i++)
        if (!strcmp (e->list[i].name, name))
            return &e->list[i];
    return NULL;
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

static void entries_put (struct env_entries *e, const char *name, const char *value)
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

static void entries_free (struct env_entries *e)
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

/* Access to 'e', which must not move. */
static struct variables entries_variables (struct env_entries *e)
{
    return (struct variables){ get_entry, set_entry, unset_entry, e };
}

/* ---- the options of a planned step ---- */

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

/* The option table of dl env has rejected all other words. */
static void read_plan_words (struct env_plan *p, char *const *words)
{
    for (; words && *words; words++) {
        size_t n = strcspn (*words, "=");
        for (int i = 0; i < ENV_OPTIONS; i++)
            if (strlen (option_names[i]) == n && !strncmp (*words, option_names[i], n))
                p->value[i] = *words + n + ((*words)[n] == '=');
    }
}

/* The value of an option, or "" if it is not given. */
static const char *plan_text (const struct env_plan *p, enum env_option option)
{
    return p->value[option] ? p->value[option] : "";
}

static void plan_note (struct env_plan *p, const char *fmt, ...)
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

/* Returns -1 with errno EINVAL. */
static int refuse_value (const struct env_plan *p, enum env_option option, const char *why,
                         struct slurmdl_error *err)
{
    errno = EINVAL;
    return errorf (err, "%s: '%.40s': %s", option_names[option], plan_text (p, option), why);
}

/* Read a number above 0; '*n' becomes 0 if the option is not given.  Accepts a range such as "2-4"
 * for --nodes and takes its first number.  If the option may be 'typed', also accepts "a100:2".
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

/* Compare names as Slurm sorts nodes: n2 before n10. */
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

/* Distribute the tasks in turn, 'block' at a time, as Slurm does if each node has enough CPUs. */
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
                   "%ld tasks on %ld nodes: as Slurm places them if each node has enough CPUs; use "
                   "--ntasks-per-node=4(x2),3 for another layout",
                   p->ranks, p->nodes);
    p->tasks = write_tasks (tasks, p->nodes);
    free (tasks);
}

/* ---- --nodes, --nodelist, --ntasks, --ntasks-per-node ---- */

/* Count the nodes and tasks of a list such as "4(x2),3". */
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
        p->nodes = p->ranks; /* srun does the same, with a warning */
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
        return errorf (err, "--nodelist: %ld hosts do not match --nodes=%ld", p->nodes, asked);
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

/* ---- --distribution=arbitrary: the list names the host of each rank ---- */

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

/* Place each rank on its host of the list, as Slurm does.  No variable of a task shows this layout.
 */
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

/* ---- the other options ---- */

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
        return refuse_value (p, ENV_NCCL, "not a valid profile name", err);
    if (!strcmp (p->dl, "off"))
        p->dl = "";
    return 0;
}

/* Read a job "1234" or a step "1234.2". */
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

/* Make a plan from a NULL-terminated list of options such as "--nodes=2" (may be NULL), which must
 * outlive it.  If an option is repeated, the last one wins.  Returns 0, or -1 with errno and 'err'.
 * Always call plan_destroy().
 */
static int plan_create (struct env_plan **plan, char *const *words, struct slurmdl_error *err)
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

static void plan_destroy (struct env_plan *p)
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

/* ---- what a planned rank gets ---- */

enum { EPHEMERAL = 32768, TEXT = 4096 };

/* Facts of a step.  Some are made up, to find the variables that depend on them. */
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

/* A job inherits what is exported here (--export=ALL, the default). */
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

/* Slurm gives a task all GPUs of the node or, with --gpus-per-task, its own in order. */
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

/* Use documentation addresses (RFC 5737): they are only compared, never printed. */
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
                   "and DL_BIND_SET are decided on the node: --topology=DIR has its /sys and /proc",
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
                   "--dl-nccl=%s: DL_NCCL_FABRIC%s known on the node: --topology=DIR has its /sys",
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

/* Mark the variables as unknown that the variant 'v' adds or changes. */
static int note_variant (struct env_plan *p, struct plan_rank *r, const struct variant *v,
                         enum plan_doubt why, struct slurmdl_error *err)
{
    struct env_entries other = { NULL };
    int rv;

    put_slurm (p, r->rank, v, &other);
    rv = set_framework (p, v, &other, err);
    for (size_t i = 0; rv == 0 && i < other.n; i++) {
        const struct env_entry *o = &other.list[i];
        const struct env_entry *e = find_entry (&r->vars, o->name);
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

/* Find what one rank gets.  Always call plan_rank_free(). */
static int plan_rank (struct env_plan *p, long rank, struct plan_rank *r, struct slurmdl_error *err)
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

static void plan_rank_free (struct plan_rank *r)
{
    entries_free (&r->vars);
    entries_free (&r->unknown);
}

/* ---- explain the rank environment of this process ---- */

enum { LINES = 32, LINE = 320, NAME = 64 };

struct inside {
    char line[LINES][LINE]; /* contradictions */
    int lines;
    struct env_entries ours; /* set by the plugin */
    struct env_entries user; /* exported by the user, with the values the plugin would set */
};

__attribute__ ((format (printf, 2, 3))) static void contradiction (struct inside *x,
                                                                   const char *fmt, ...)
{
    va_list ap;

    if (x->lines == LINES)
        return;
    va_start (ap, fmt);
    vsnprintf (x->line[x->lines++], LINE, fmt, ap);
    va_end (ap);
}

static const char *env_value (const char *name)
{
    const char *v = getenv (name);

    return v ? v : "";
}

/* ---- whose is it ---- */

static const char *const marks[] = { "DL_ENV_SET", "DL_BIND_SET", "DL_NCCL_SET" };
enum { MARKS = sizeof (marks) / sizeof (*marks) };

static void read_plugin_mark (struct inside *x, const char *mark)
{
    char name[NAME];

    for (const char *at = env_value (mark); *at;) {
        size_t n = strcspn (at, ",");
        snprintf (name, sizeof (name), "%.*s", (int)n, at);
        if (!getenv (name))
            contradiction (x, "%s: the plugin set it (%s), and it is gone", name, mark);
        else
            entries_put (&x->ours, name, env_value (name));
        at += n + (at[n] == ',');
    }
}

static void fill_environment (struct env_entries *e)
{
    char name[256];

    for (char **v = environ; *v; v++) {
        size_t n = strcspn (*v, "=");
        if (n >= sizeof (name) || !(*v)[n])
            continue;
        snprintf (name, sizeof (name), "%.*s", (int)n, *v);
        entries_put (e, name, *v + n + 1);
    }
}

static bool environment_has (const struct rank_environment *e, const char *name)
{
    for (int i = 0; i < e->n; i++)
        if (!strcmp (e->vars[i].name, name))
            return true;
    return false;
}

/* Whether the framework has every variable that the plugin set, except DL_*. */
static bool explains (const struct rank_environment *e, const char *set)
{
    char name[NAME];

    while (*set) {
        size_t n = strcspn (set, ",");
        snprintf (name, sizeof (name), "%.*s", (int)n, set);
        if (strncmp (name, "DL_", 3) && !environment_has (e, name))
            return false;
        set += n + (set[n] == ',');
    }
    return e->n > 0;
}

static void explain_exported (struct inside *x, const struct task *t)
{
    char lines[EXPORTED_LINES][EXPORTED_LINE];
    int n = exported_check (t, env_value ("DL_ENV_SET"), lines);

    for (int i = 0; i < n; i++)
        contradiction (x, "%.319s", lines[i]);
}

/* Guess the framework, because no variable holds it: the one with the fewest variables that has all
 * of DL_ENV_SET.  The user exported its other variables.
 */
static void find_users (struct inside *x, struct task *t)
{
    const char *set = env_value ("DL_ENV_SET");
    const char *best = NULL;
    int fewest = RANK_VARIABLES_MAX + 1;

    for (const char *const *f = rank_environment_frameworks; *f; f++)
        if (rank_environment_fill (*f, &t->facts, &t->environment) >= 0
            && explains (&t->environment, set) && t->environment.n < fewest) {
            fewest = t->environment.n;
            best = *f;
        }
    if (!best)
        return;
    rank_environment_fill (best, &t->facts, &t->environment);
    explain_exported (x, t);
    for (int i = 0; i < t->environment.n; i++) {
        const struct rank_variable *v = &t->environment.vars[i];
        if (!word_listed (set, v->name) && getenv (v->name))
            entries_put (&x->user, v->name, v->value);
    }
}

/* Set facts that no variable holds to "?", which is not compared. */
static void guess_facts (struct rank_facts *f)
{
    const char *set = env_value ("DL_ENV_SET");

    snprintf (f->master, sizeof (f->master), "%.250s",
              *env_value ("MASTER_ADDR") ? env_value ("MASTER_ADDR") : "?");
    f->port = atoi (env_value ("MASTER_PORT"));
    f->port2 = f->port + 1;
    f->task_port = 1;
    strcpy (f->address, "?");
    strcpy (f->own_address, "?");
    snprintf (f->interface, sizeof (f->interface), "%.30s",
              word_listed (set, "GLOO_SOCKET_IFNAME") ? env_value ("GLOO_SOCKET_IFNAME") : "?");
    f->elastic = word_listed (set, "PET_RDZV_CONF");
    f->one_machine = f->nodes > 1 && !strcmp (f->interface, "lo");
}

static void read_users (struct inside *x)
{
    struct env_entries all = { NULL };
    struct task *t = xcalloc (1, sizeof (*t));

    fill_environment (&all);
    if (getenv ("DL_ENV_SET")) {
        t->vars = entries_variables (&all);
        t->job = 1;
        if (task_read (t, NULL) == 0) {
            guess_facts (&t->facts);
            find_users (x, t);
        }
    }
    free (t);
    entries_free (&all);
}

/* ---- contradictions ---- */

/* clang-format off */
static const struct {
    const char *name, *slurm;
} same[] = {
    { "RANK",                      "SLURM_PROCID" },
    { "WORLD_SIZE",                "SLURM_STEP_NUM_TASKS" },
    { "LOCAL_RANK",                "SLURM_LOCALID" },
    { "NODE_RANK",                 "SLURM_NODEID" },
    { "GROUP_RANK",                "SLURM_NODEID" },
    { "GROUP_WORLD_SIZE",          "SLURM_STEP_NUM_NODES" },
    { "PET_NODE_RANK",             "SLURM_NODEID" },
    { "PET_NNODES",                "SLURM_STEP_NUM_NODES" },
    { "HOROVOD_RANK",              "SLURM_PROCID" },
    { "HOROVOD_SIZE",              "SLURM_STEP_NUM_TASKS" },
    { "HOROVOD_LOCAL_RANK",        "SLURM_LOCALID" },
    { "JAX_PROCESS_ID",            "SLURM_PROCID" },
    { "JAX_NUM_PROCESSES",         "SLURM_STEP_NUM_TASKS" },
    { "PADDLE_GLOBAL_RANK",        "SLURM_PROCID" },
    { "PADDLE_GLOBAL_SIZE",        "SLURM_STEP_NUM_TASKS" },
    { "OMPI_COMM_WORLD_RANK",      "SLURM_PROCID" },
    { "OMPI_COMM_WORLD_SIZE",      "SLURM_STEP_NUM_TASKS" },
    { "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID" },
    { "MPI_LOCALRANKID",           "SLURM_LOCALID" },
    { "PMIX_RANK",                 "SLURM_PROCID" },
    { "PMI_RANK",                  "SLURM_PROCID" },
};
/* clang-format on */

static void compare_slurm_numbers (struct inside *x)
{
    for (size_t i = 0; i < sizeof (same) / sizeof (*same); i++)
        if (*env_value (same[i].name) && *env_value (same[i].slurm)
            && strcmp (env_value (same[i].name), env_value (same[i].slurm)))
            contradiction (x, "%s=%s, but %s=%s", same[i].name, env_value (same[i].name),
                           same[i].slurm, env_value (same[i].slurm));
}

static void compare_step (struct inside *x)
{
    char step[64];

    snprintf (step, sizeof (step), "%.30s.%.30s", env_value ("SLURM_JOB_ID"),
              env_value ("SLURM_STEP_ID"));
    if (*env_value ("DL_ENV_STEP") && strcmp (env_value ("DL_ENV_STEP"), step))
        contradiction (x,
                       "the variables are those of the step %s, this is %s: "
                       "started without --dl from within another step?",
                       env_value ("DL_ENV_STEP"), step);
}

static void compare_owners (struct inside *x)
{
    static const char *const pairs[][2] = {
        { "MASTER_ADDR", "MASTER_PORT" },
        { "RANK", "WORLD_SIZE" },
        { "LOCAL_RANK", "RANK" },
    };

    for (size_t i = 0; i < sizeof (pairs) / sizeof (*pairs); i++)
        for (int k = 0; k < 2; k++)
            if (find_entry (&x->ours, pairs[i][k]) && find_entry (&x->user, pairs[i][!k]))
                contradiction (x,
                               "%s=%s is exported, while %s=%s is the "
                               "plugin's: unset it, or give both",
                               pairs[i][!k], env_value (pairs[i][!k]), pairs[i][k],
                               env_value (pairs[i][k]));
}

static void check_devices (struct inside *x)
{
    const char *list = env_value ("CUDA_VISIBLE_DEVICES");
    long n = *list != '\0';

    for (const char *c = list; *c; c++)
        n += *c == ',';
    if (n > 0 && *env_value ("LOCAL_RANK") && atol (env_value ("LOCAL_RANK")) >= n)
        contradiction (x,
                       "LOCAL_RANK=%s is the number of no GPU of CUDA_VISIBLE_DEVICES=%.100s: use "
                       "--gpus-per-node instead of --gpus-per-task, or --gpu-bind=none",
                       env_value ("LOCAL_RANK"), list);
}

static void check_threads (struct inside *x)
{
    cpu_set_t cpus;
    long threads = atol (env_value ("OMP_NUM_THREADS"));

    if (sched_getaffinity (0, sizeof (cpus), &cpus) == 0 && threads > CPU_COUNT (&cpus))
        contradiction (x, "OMP_NUM_THREADS=%ld, but this rank has %d CPUs", threads,
                       CPU_COUNT (&cpus));
}

static void check_elastic (struct inside *x)
{
    static const char *const bad[] = { "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID" };

    for (size_t i = 0; i < sizeof (bad) / sizeof (*bad); i++)
        if (*env_value (bad[i]) && !getenv ("TORCHELASTIC_RESTART_COUNT"))
            contradiction (x,
                           "%s is exported outside torchrun: ranks wait for a "
                           "store that nobody serves; unset it",
                           bad[i]);
}

static void check_network_choice (struct inside *x)
{
    char lines[NCCL_LINES][NCCL_LINE];
    struct fabric *f = xcalloc (1, sizeof (*f));
    int n;

    fabric_read ("/sys", f);
    n = nccl_lint (environ, env_value ("DL_NCCL_SET"), f, lines);
    for (int i = 0; i < n; i++)
        contradiction (x, "%.300s", lines[i]);
    free (f);
}

/* ---- printing ---- */

static void print_list (const char *head, const struct env_entries *e, bool would)
{
    if (e->n)
        printf ("\n%s\n", head);
    for (size_t i = 0; i < e->n; i++) {
        const char *name = e->list[i].name;
        printf ("  %s=%s", name, env_value (name));
        if (would && strcmp (e->list[i].value, env_value (name)) && strcmp (e->list[i].value, "?"))
            printf ("   (the plugin's: %s)", e->list[i].value);
        putchar ('\n');
    }
}

static void print_explanation (const struct inside *x)
{
    printf ("rank %s of %s: task %s of node %s (%s), step %s.%s\n", env_value ("SLURM_PROCID"),
            env_value ("SLURM_STEP_NUM_TASKS"), env_value ("SLURM_LOCALID"),
            env_value ("SLURM_NODEID"), env_value ("SLURMD_NODENAME"), env_value ("SLURM_JOB_ID"),
            env_value ("SLURM_STEP_ID"));
    if (!x->ours.n)
        puts ("\nThe plugin has set nothing here: the step was started "
              "without --dl, --dl-bind and --dl-nccl, or is a batch script.");
    print_list ("Set by the plugin:", &x->ours, false);
    print_list ("Exported before, and therefore unchanged:", &x->user, true);
    if (x->lines)
        puts ("\nContradictions:");
    for (int i = 0; i < x->lines; i++)
        printf ("  %s\n", x->line[i]);
}

static json_t *entries_json (const struct env_entries *e)
{
    json_t *o = json_object ();

    for (size_t i = 0; i < e->n; i++)
        json_object_set_new (o, e->list[i].name, json_string (env_value (e->list[i].name)));
    return o;
}

static void print_explanation_json (const struct inside *x)
{
    json_t *lines = json_array ();
    json_t *o;

    for (int i = 0; i < x->lines; i++)
        json_array_append_new (lines, json_string (x->line[i]));
    o = json_pack ("{s:i, s:o, s:o, s:o}", "rank", atoi (env_value ("SLURM_PROCID")), "plugin",
                   entries_json (&x->ours), "exported", entries_json (&x->user), "contradictions",
                   lines);
    json_dumpf (o, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putchar ('\n');
    json_decref (o);
}

/* Print which variables the plugin set, which the user exported, and the contradictions between
 * them.  Returns an exit status: EXIT_FAILED if there are contradictions, EXIT_USAGE outside a
 * step.
 */
static int explain_print (bool json)
{
    struct inside *x;
    int status;

    if (!getenv ("SLURM_PROCID") || !getenv ("SLURM_STEP_NUM_TASKS")) {
        complain (
            "env: not in a Slurm step: run it with srun, or give the options of a step, such as "
            "--nodes=2 --ntasks=8");
        return EXIT_USAGE;
    }
    x = xcalloc (1, sizeof (*x));
    for (int i = 0; i < MARKS; i++)
        read_plugin_mark (x, marks[i]);
    read_users (x);
    compare_step (x);
    compare_slurm_numbers (x);
    compare_owners (x);
    check_devices (x);
    check_threads (x);
    check_elastic (x);
    check_network_choice (x);
    (json ? print_explanation_json : print_explanation) (x);
    status = x->lines ? EXIT_FAILED : EXIT_OK;
    entries_free (&x->ours);
    entries_free (&x->user);
    free (x);
    return status;
}

/* ---- print a plan ---- */

enum { WIDE = 60, COLUMNS = 8 };

/* ---- one rank, for env -S and the shell ---- */

static bool entry_is_known (const struct plan_rank *r, const struct env_entry *e)
{
    return e->given && e->value && !find_entry (&r->unknown, e->name);
}

static int print_rank (struct env_plan *p, long rank, struct slurmdl_error *err)
{
    struct plan_rank r;
    int rv = plan_rank (p, rank, &r, err);

    for (size_t i = 0; rv == 0 && i < r.vars.n; i++)
        if (entry_is_known (&r, &r.vars.list[i])) {
            printf ("%s=", r.vars.list[i].name);
            shell_put (stdout, r.vars.list[i].value);
            putchar ('\n');
        }
    for (size_t i = 0; rv == 0 && i < r.unknown.n; i++)
        plan_note (p, "%s is not known: %s", r.unknown.list[i].name, r.unknown.list[i].value);
    plan_rank_free (&r);
    return rv;
}

/* ---- the table ---- */

struct env_row {
    const char *cell[COLUMNS];
    char text[COLUMNS][64];
};

static const char *const heads[COLUMNS] = { "RANK", "NODE",  "LOCAL", "ROLE",
                                            "GPUS", "CORES", "NIC",   NULL };

static const char *rank_value (const struct plan_rank *r, const char *name)
{
    const struct env_entry *e = find_entry (&r->vars, name);

    return e && e->value ? e->value : "";
}

/* Without --dl-bind, return the GPUs that the rank sees, by Slurm's numbers. */
static const char *visible_gpus (const struct env_plan *p, const struct plan_rank *r, char *buf,
                                 size_t size)
{
    long first = p->gpus_per_task ? r->local * p->gpus_per_task : 0;
    long count = p->gpus_per_task ? p->gpus_per_task : p->gpus;

    if (*r->gpus || count == 0)
        return r->gpus;
    snprintf (buf, size, count > 1 ? "%ld-%ld" : "%ld", first, first + count - 1);
    return buf;
}

static void fill_row (const struct env_plan *p, const struct plan_rank *r, struct env_row *row)
{
    *row = (struct env_row){ { NULL } };
    snprintf (row->text[0], sizeof (row->text[0]), "%ld", r->rank);
    snprintf (row->text[2], sizeof (row->text[2]), "%ld", r->local);
    if (*r->role)
        snprintf (row->text[3], sizeof (row->text[3]), "%s %ld", r->role, r->role_index);
    row->cell[0] = row->text[0];
    row->cell[1] = r->host;
    row->cell[2] = row->text[2];
    row->cell[3] = row->text[3];
    row->cell[4] = visible_gpus (p, r, row->text[4], sizeof (row->text[4]));
    row->cell[5] = r->cpus;
    row->cell[6] = r->nic;
}

static void print_rank_table (const struct env_plan *p, const struct plan_rank *r, long n)
{
    int width[COLUMNS] = { 0 };
    struct env_row row;

    for (long i = 0; i < n; i++) {
        fill_row (p, &r[i], &row);
        for (int c = 0; heads[c]; c++)
            if (*row.cell[c] && (int)strlen (row.cell[c]) > width[c])
                width[c] = (int)strlen (row.cell[c]);
    }
    for (long i = -1; i < n; i++) {
        const char *gap = "";
        if (i >= 0)
            fill_row (p, &r[i], &row);
        for (int c = 0; heads[c]; c++) {
            int w = (int)strlen (heads[c]);
            if (!width[c])
                continue;
            w = width[c] > w ? width[c] : w;
            printf ("%s%-*s", gap, heads[c + 1] ? w : 0,
                    i < 0          ? heads[c]
                    : *row.cell[c] ? row.cell[c]
                                   : "-");
            gap = "  ";
        }
        putchar ('\n');
    }
}

/* ---- variables ---- */

static bool is_same_in_all_ranks (const struct plan_rank *r, long n, const char *name)
{
    for (long i = 1; i < n; i++)
        if (strcmp (rank_value (&r[0], name), rank_value (&r[i], name)))
            return false;
    return true;
}

static void print_common (const struct plan_rank *r, long n)
{
    puts ("\nThe same for all ranks:");
    for (size_t i = 0; i < r[0].vars.n; i++) {
        const struct env_entry *e = &r[0].vars.list[i];
        if (entry_is_known (&r[0], e) && is_same_in_all_ranks (r, n, e->name))
            printf ("  %s=%s\n", e->name, e->value);
    }
}

static void print_rank_values (const struct plan_rank *r, long n, const char *name)
{
    int at = printf ("  %s=", name);

    for (long i = 0; i < n; i++) {
        const char *value = rank_value (&r[i], name);
        const struct env_entry *e = find_entry (&r[i].vars, name);
        if (at > 2 * WIDE || strlen (value) > WIDE) {
            printf ("... (--rank=%ld)", i);
            break;
        }
        at += printf ("%s%s", !e || !e->value ? "-" : value, i + 1 < n ? " " : "");
    }
    putchar ('\n');
}

/* Go through the variables of all ranks, because rank 0 may lack one (DMLC_WORKER_ID). */
static void print_differing (const struct plan_rank *r, long n)
{
    struct env_entries seen = { NULL };

    puts ("\nBy rank, in their order:");
    for (long k = 0; k < n; k++)
        for (size_t i = 0; i < r[k].vars.n; i++) {
            const struct env_entry *e = &r[k].vars.list[i];
            if (!entry_is_known (&r[k], e) || find_entry (&seen, e->name))
                continue;
            entries_put (&seen, e->name, "");
            if (!is_same_in_all_ranks (r, n, e->name))
                print_rank_values (r, n, e->name);
        }
    entries_free (&seen);
}

static void collect_unknown (const struct plan_rank *r, long n, struct env_entries *all)
{
    for (long k = 0; k < n; k++)
        for (size_t i = 0; i < r[k].unknown.n; i++)
            entries_put (all, r[k].unknown.list[i].name, r[k].unknown.list[i].value);
}

static void print_unknown (const struct plan_rank *r, long n)
{
    struct env_entries all = { NULL };

    collect_unknown (r, n, &all);
    if (all.n)
        puts ("\nSet, but known only when the job runs:");
    for (int d = 0; d < PLAN_DOUBTS; d++) {
        const char *gap = "  ";
        bool any = false;
        for (size_t i = 0; i < all.n; i++)
            if (!strcmp (all.list[i].value, plan_doubts[d])) {
                printf ("%s%s", gap, all.list[i].name);
                gap = ", ";
                any = true;
            }
        if (any)
            printf (": %s\n", plan_doubts[d]);
    }
    entries_free (&all);
}

static void print_kept (const struct plan_rank *r)
{
    const char *head = "\nExported here, and therefore unchanged:";

    for (size_t i = 0; i < r->vars.n; i++)
        if (r->vars.list[i].kept) {
            if (head)
                puts (head);
            head = NULL;
            printf ("  %s=%s\n", r->vars.list[i].name, r->vars.list[i].value);
        }
}

static void print_all_variables (struct env_plan *p, const struct plan_rank *r)
{
    long n = p->ranks;

    print_rank_table (p, r, n);
    if (!*p->dl && !*p->bind && !*p->nccl)
        puts ("\nNo variable is set: none of --dl, --dl-bind and --dl-nccl is given.");
    else {
        print_common (r, n);
        if (n > 1)
            print_differing (r, n);
    }
    print_unknown (r, n);
    print_kept (r);
    if (p->notes)
        puts ("\nNotes:");
    for (int i = 0; i < p->notes; i++)
        printf ("  %s\n", p->note[i]);
}

/* ---- all ranks ---- */

static void free_planned_ranks (struct plan_rank *r, long n)
{
    for (long i = 0; i < n; i++)
        plan_rank_free (&r[i]);
    free (r);
}

static struct plan_rank *plan_all_ranks (struct env_plan *p, struct slurmdl_error *err)
{
    struct plan_rank *r = xcalloc ((size_t)p->ranks, sizeof (*r));
    int rv = 0;

    for (long i = 0; rv == 0 && i < p->ranks; i++)
        rv = plan_rank (p, i, &r[i], err);
    if (rv == 0)
        return r;
    free_planned_ranks (r, p->ranks);
    return NULL;
}

static int print_env_plan (struct env_plan *p, struct slurmdl_error *err)
{
    struct plan_rank *r = plan_all_ranks (p, err);

    if (!r)
        return -1;
    print_all_variables (p, r);
    free_planned_ranks (r, p->ranks);
    return 0;
}

static json_t *json_of_rank (const struct plan_rank *r)
{
    json_t *v = json_pack ("{s:i, s:s, s:i, s:i, s:{}, s:{}}", "rank", (int)r->rank, "node",
                           r->host, "node_index", (int)r->node, "local_rank", (int)r->local,
                           "environment", "unknown");

    if (*r->role)
        json_object_set_new (v, "role", json_string (r->role));
    if (*r->gpus)
        json_object_set_new (v, "gpus", json_string (r->gpus));
    if (*r->cpus)
        json_object_set_new (v, "cpus", json_string (r->cpus));
    if (*r->nic)
        json_object_set_new (v, "nic", json_string (r->nic));
    for (size_t i = 0; i < r->vars.n; i++)
        if (entry_is_known (r, &r->vars.list[i]))
            json_object_set_new (json_object_get (v, "environment"), r->vars.list[i].name,
                                 json_string (r->vars.list[i].value));
    for (size_t i = 0; i < r->unknown.n; i++)
        json_object_set_new (json_object_get (v, "unknown"), r->unknown.list[i].name,
                             json_string (r->unknown.list[i].value));
    return v;
}

static json_t *json_of_plan (struct env_plan *p, struct slurmdl_error *err)
{
    struct plan_rank *r = plan_all_ranks (p, err);
    json_t *v;

    if (!r)
        return NULL;
    v = json_pack ("{s:[], s:[]}", "ranks", "notes");
    for (long i = 0; i < p->ranks; i++)
        json_array_append_new (json_object_get (v, "ranks"), json_of_rank (&r[i]));
    for (int i = 0; i < p->notes; i++)
        json_array_append_new (json_object_get (v, "notes"), json_string (p->note[i]));
    free_planned_ranks (r, p->ranks);
    return v;
}

/* ---- the command ---- */

static int print_one (struct env_plan *p, long rank, struct slurmdl_error *err)
{
    if (rank >= p->ranks) {
        errno = EINVAL;
        return errorf (err, "--rank=%ld: the step has the ranks 0 to %ld", rank, p->ranks - 1);
    }
    if (print_rank (p, rank, err) < 0)
        return -1;
    for (int i = 0; i < p->notes; i++)
        complain ("env: %s", p->note[i]);
    return 0;
}

static int print_env_plan_json (struct env_plan *p, struct slurmdl_error *err)
{
    json_t *json = json_of_plan (p, err);

    if (!json)
        return -1;
    json_dumpf (json, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putchar ('\n');
    json_decref (json);
    return 0;
}

int cmd_env (const struct command_line *line)
{
    const struct env_options *opt = line->options;
    struct slurmdl_error err = { "" };
    struct env_plan *p = NULL;
    int rv;

    if (!opt->facts)
        return explain_print (opt->json);
    if ((rv = plan_create (&p, opt->facts, &err)) == 0)
        rv = opt->rank >= 0 ? print_one (p, (long)opt->rank, &err)
             : opt->json    ? print_env_plan_json (p, &err)
                            : print_env_plan (p, &err);
    plan_destroy (p);
    return rv < 0 ? fail (&err) : EXIT_OK;
}
