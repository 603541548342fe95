/* SPDX-License-Identifier: Apache-2.0 */
/* Run the plugin's functions on the variables that Slurm would set. */
#include "launcher/node/env_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "launcher/sys/job_variables.h"
#include "runtime/host/sysfs.h"
#include "runtime/network/nccl.h"
#include "runtime/rank/binding.h"

extern char **environ;

enum { EPHEMERAL = 32768, TEXT = 4096 };

const char *const plan_doubts[] = {
    [PLAN_PORTS] = "chosen by the number of the job (--job) or reserved by "
                   "Slurm (--resv-ports)",
    [PLAN_INTERFACE] = "each node's address and interface on the way to the "
                       "master",
};

/* What may be known of a step, or is only made up to see what depends on it. */
struct variant {
    uint32_t job, step;
    bool interface;
};

/* ---- Slurm's variables ---- */

static int number (struct env_entries *e, const char *name, long n)
{
    char value[32];

    snprintf (value, sizeof (value), "%ld", n);
    return entries_put (e, name, value);
}

/* What is exported here reaches the job (--export=ALL, the default). */
static int inherit (struct env_entries *e)
{
    char name[256];

    for (char **v = environ; *v; v++) {
        size_t n = strcspn (*v, "=");
        if (variable_is_of_job (*v) || !strncmp (*v, "SLURM_", 6) || n >= sizeof (name))
            continue;
        snprintf (name, sizeof (name), "%.*s", (int)n, *v);
        if (entries_put (e, name, *v + n + ((*v)[n] == '=')) < 0)
            return -1;
        e->list[e->n - 1].user = true;
    }
    return 0;
}

/* Slurm's order: all of the node's GPUs, or the task's own ones. */
static int put_gpus (const struct env_plan *p, long local, struct env_entries *e)
{
    static const char *const names[] = { [GPU_NVIDIA] = "CUDA_VISIBLE_DEVICES",
                                         [GPU_AMD] = "ROCR_VISIBLE_DEVICES",
                                         [GPU_INTEL] = "ZE_AFFINITY_MASK" };
    long first = p->gpus_per_task ? local * p->gpus_per_task : 0;
    long count = p->gpus_per_task ? p->gpus_per_task : p->gpus;
    char list[TEXT] = "";
    int used = 0;

    if (count < 1)
        return 0;
    for (long i = first; i < first + count; i++)
        used += snprintf (list + used, sizeof (list) - (size_t)used, "%s%ld", used ? "," : "", i);
    if (p->gpus_per_task && number (e, "SLURM_GPUS_PER_TASK", p->gpus_per_task) < 0)
        return -1;
    if (number (e, "SLURM_GPUS_ON_NODE", p->gpus ? p->gpus : p->gpus_per_task * p->layout.most) < 0)
        return -1;
    return entries_put (e, names[p->vendor], list);
}

static int put_pmi (const struct env_plan *p, long rank, struct env_entries *e)
{
    const char *mpi = p->value[ENV_MPI];

    if (!mpi)
        mpi = strcmp (p->dl, "mpi") ? "none" : "pmix";
    if (!strncmp (mpi, "pmix", 4))
        return number (e, "PMIX_RANK", rank);
    return strcmp (mpi, "pmi2") ? 0 : number (e, "PMI_FD", 3);
}

static int put_place (const struct env_plan *p, long rank, struct env_entries *e)
{
    long node = p->layout.node_of[rank];
    int rv = number (e, "SLURM_PROCID", rank);

    rv |= number (e, "SLURM_STEP_NUM_TASKS", p->ranks);
    rv |= number (e, "SLURM_STEP_NUM_NODES", p->nodes);
    rv |= number (e, "SLURM_LOCALID", p->layout.local_of[rank]);
    rv |= number (e, "SLURM_NODEID", node);
    rv |= entries_put (e, "SLURM_STEP_NODELIST", p->hosts);
    rv |= entries_put (e, "SLURM_STEP_TASKS_PER_NODE", p->tasks);
    rv |= entries_put (e, "SLURM_GTIDS", p->gtids[node]);
    rv |= entries_put (e, "SLURMD_NODENAME", layout_host (&p->layout, rank));
    if (*p->distribution)
        rv |= entries_put (e, "SLURM_DISTRIBUTION", p->distribution);
    if (p->plane)
        rv |= number (e, "SLURM_DIST_PLANESIZE", p->plane);
    if (p->cpus)
        rv |= number (e, "SLURM_CPUS_PER_TASK", p->cpus);
    if (p->per_node)
        rv |= number (e, "SLURM_NTASKS_PER_NODE", p->per_node);
    return rv;
}

static int put_slurm (const struct env_plan *p, long rank, const struct variant *v,
                      struct env_entries *e)
{
    const char *ports = p->value[ENV_RESV_PORTS];
    int cpus = cpus_count (&p->all);
    int rv = inherit (e) < 0 || put_place (p, rank, e) < 0
             || put_gpus (p, p->layout.local_of[rank], e) < 0 || put_pmi (p, rank, e) < 0
             || number (e, "SLURM_JOB_ID", v->job) < 0;

    if (!rv && p->arbitrary)
        rv = entries_put (e, ORDER_VARIABLE, plan_text (p, ENV_NODELIST));
    if (!rv && ports)
        rv = entries_put (e, "SLURM_STEP_RESV_PORTS", ports);
    if (!rv && cpus)
        rv = number (e, "SLURM_CPUS_ON_NODE", cpus);
    return rv ? -1 : 0;
}

/* ---- --dl ---- */

static int first_ephemeral (void)
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

static void find_master (struct env_plan *p, struct task *t, const struct variant *v)
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
    const char *roles = *p->roles ? p->roles : rankenv_roles (p->dl);
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
    find_master (p, t, v);
    task_ports (t, rankenv_needs_task_ports (p->dl), first_ephemeral ());
    n = rankenv_fill (p->dl, &t->facts, &t->environment);
    if (*t->environment.why)
        plan_note (p, "--dl=%s: %s", p->dl, t->environment.why);
    rankenv_advice (p->dl, &t->facts, line, sizeof (line));
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

static int bind_rank (struct env_plan *p, struct binding *b, struct plan_rank *r,
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
    struct binding *b = calloc (1, sizeof (*b));
    int rv = 0;

    if (!b)
        return errorf (err, "out of memory");
    b->vars = entries_variables (&r->vars);
    binding_words (b, p->bind);
    if (binding_is_wanted (b) && !p->value[ENV_TOPOLOGY])
        plan_note (p,
                   "--dl-bind=%s: cores, order of the GPUs, OMP_NUM_THREADS "
                   "and DL_BIND_SET are decided on the node: --topology=DIR "
                   "has its /sys and /proc",
                   p->bind);
    else if (binding_is_wanted (b))
        rv = bind_rank (p, b, r, err);
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
    struct fabric *f = calloc (1, sizeof (*f));
    char text[NCCL_VALUE];
    char sys[TEXT];

    if (!f)
        return;
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
static int compare (struct env_plan *p, struct plan_rank *r, const struct variant *v,
                    enum plan_doubt why, struct slurmdl_error *err)
{
    struct env_entries other = { NULL };
    int rv = put_slurm (p, r->rank, v, &other) < 0 ? errorf (err, "out of memory")
                                                   : set_framework (p, v, &other, err);

    for (size_t i = 0; rv == 0 && i < other.n; i++) {
        const struct env_entry *o = &other.list[i];
        const struct env_entry *e = entries_find (&r->vars, o->name);
        if (!o->given || (e && e->value && o->value && !strcmp (e->value, o->value)))
            continue;
        if (entries_put (&r->unknown, o->name, plan_doubts[why]) < 0)
            rv = errorf (err, "out of memory");
    }
    entries_free (&other);
    return rv;
}

static int fill (struct env_plan *p, struct plan_rank *r, struct slurmdl_error *err)
{
    struct variant v = { p->job, p->step, false };
    struct variant interface = { p->job, p->step, true };
    struct variant job = { p->job + 4711, p->step, false };

    if (put_slurm (p, r->rank, &v, &r->vars) < 0)
        return errorf (err, "out of memory");
    if (*p->dl && set_framework (p, &v, &r->vars, err) < 0)
        return -1;
    if (*p->dl && p->task->facts.roles)
        r->role = role_names[roles_of (&p->task->roles, r->rank, &r->role_index)];
    if (*p->dl
        && (compare (p, r, &interface, PLAN_INTERFACE, err) < 0
            || (!p->has_job && compare (p, r, &job, PLAN_PORTS, err) < 0)))
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
    if (fill (p, r, err) < 0)
        return -1;
    entries_prune (&r->vars);
    return 0;
}

void plan_rank_free (struct plan_rank *r)
{
    entries_free (&r->vars);
    entries_free (&r->unknown);
}
