/* SPDX-License-Identifier: Apache-2.0 */
/* A task's place in its step, from Slurm's variables. */
#include "runtime/rank/task.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/nearest_word.h"

enum { NAME = 64 };

static int read_place (struct task *t)
{
    const struct variables *v = &t->vars;
    struct rank_facts *f = &t->facts;
    /* in a heterogeneous job, all components use the number of the first */
    long job = variables_number (v, "SLURM_JOB_ID");

    f->rank = variables_number (v, "SLURM_PROCID");
    f->size = variables_number (v, "SLURM_STEP_NUM_TASKS");
    f->local_rank = variables_number (v, "SLURM_LOCALID");
    f->node = variables_number (v, "SLURM_NODEID");
    f->nodes = variables_number (v, "SLURM_STEP_NUM_NODES");
    variables_text (v, "SLURM_STEP_NODELIST", t->hosts, sizeof (t->hosts));
    variables_text (v, "SLURM_STEP_TASKS_PER_NODE", t->tasks, sizeof (t->tasks));
    variables_text (v, "SLURM_GTIDS", t->gtids, sizeof (t->gtids));
    variables_text (v, "SLURMD_NODENAME", f->own, sizeof (f->own));
    variables_text (v, "SLURM_DISTRIBUTION", t->distribution, sizeof (t->distribution));
    if (!strncmp (t->distribution, "arbitrary", 9))
        variables_text (v, ORDER_VARIABLE, t->order, sizeof (t->order));
    f->local_size = layout_count (t->gtids);
    if (f->local_size < 1)
        f->local_size = layout_tasks_of_node (t->tasks, f->node);
    if (job > 0)
        t->job = (uint32_t)job;
    if (f->rank < 0 || f->size <= f->rank || f->local_rank < 0 || f->node < 0 || f->nodes < 1
        || f->local_size < 1)
        return -1;
    return 0;
}

/* Whether Slurm was told to divide the GPUs of a node among tasks. */
static bool are_parted (const struct variables *v)
{
    static const char *const names[] = { "SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU",
                                         "SLURM_GPU_BIND" };
    static const char *const tres[] = { "SLURM_TRES_PER_TASK", "SLURM_TRES_BIND",
                                        "SLURMD_TRES_BIND" };
    char text[1024];

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (variables_text (v, names[i], text, sizeof (text)) == 0)
            return true;
    for (size_t i = 0; i < sizeof (tres) / sizeof (*tres); i++)
        if (variables_text (v, tres[i], text, sizeof (text)) == 0 && strstr (text, "gpu"))
            return true;
    return false;
}

static void read_task_gpus (struct task *t)
{
    static const char *const names[] = { "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                         "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK" };
    struct rank_facts *f = &t->facts;
    char list[1024];
    long n;

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (variables_text (&t->vars, names[i], list, sizeof (list)) == 0 && *list
            && strcmp (list, "NoDevFiles") && strcmp (list, "-1")) {
            f->visible_gpus = words_count (list);
            break;
        }
    n = variables_number (&t->vars, "SLURM_GPUS_ON_NODE");
    f->gpus = f->visible_gpus ? f->visible_gpus : n > 0 ? n : 0;
    f->own_gpus =
        f->visible_gpus > 0
        && (f->local_size == 1 || (n >= f->visible_gpus * f->local_size && are_parted (&t->vars)));
}

static void read_task_cpus (struct task *t)
{
    cpu_set_t own;

    t->facts.one_cpu = sched_getaffinity (0, sizeof (own), &own) == 0 && CPU_COUNT (&own) == 1;
}

static void read_pmi (struct task *t)
{
    if (variables_number (&t->vars, "PMIX_RANK") >= 0)
        t->facts.pmi = RANK_PMI_X;
    else if (variables_number (&t->vars, "PMI_FD") >= 0)
        t->facts.pmi = RANK_PMI_2;
}

static void read_het_group (struct task *t, int i)
{
    char name[NAME];

    snprintf (name, sizeof (name), "SLURM_JOB_NODELIST_HET_GROUP_%d", i);
    if (variables_text (&t->vars, name, t->groups[i], sizeof (t->groups[i])) == 0)
        return;
    snprintf (name, sizeof (name), "SLURM_JOB_NODELIST_PACK_GROUP_%d", i);
    variables_text (&t->vars, name, t->groups[i], sizeof (t->groups[i]));
}

/* SLURM_HET_SIZE is also set in a step of one component, and in a job submitted
 * from a heterogeneous one.
 */
static void find_layout (struct task *t)
{
    struct rank_facts *f = &t->facts;
    long het = variables_number (&t->vars, "SLURM_HET_SIZE");
    struct layout_facts l = { .hosts = t->hosts,
                              .tasks = t->tasks,
                              .distribution = t->distribution,
                              .ranks = f->size,
                              .node = f->node,
                              .gtids = t->gtids,
                              .order = t->order };

    l.plane = variables_number (&t->vars, "SLURM_DIST_PLANESIZE");
    for (int i = 0; i < het && het <= LAYOUT_GROUPS; i++) {
        read_het_group (t, i);
        l.groups[l.ngroups++] = t->groups[i];
    }
    t->is_het = l.ngroups > 1;
    if (layout_fill (&t->layout, &l) == 0) {
        f->layout = &t->layout;
        return;
    }
    t->contradicted = errno == EINVAL;
    l.ngroups = 0;
    if (t->is_het && layout_fill (&t->layout, &l) == 0) {
        t->is_het = t->contradicted = false;
        f->layout = &t->layout;
    }
}

int task_read (struct task *t, const char *roles)
{
    if (read_place (t) < 0) {
        snprintf (t->why, sizeof (t->why), "Slurm does not say where this task is");
        return -1;
    }
    if (roles && *roles) {
        if (roles_parse (roles, &t->roles, t->why, sizeof (t->why)) < 0
            || roles_resolve (&t->roles, t->facts.size, t->why, sizeof (t->why)) < 0)
            return -1;
        t->facts.roles = &t->roles;
    }
    t->master_rank = rank_environment_master_rank (t->facts.roles);
    find_layout (t);
    read_task_gpus (t);
    read_task_cpus (t);
    read_pmi (t);
    return 0;
}

/* Without a layout, all we know is that an ordinary step begins on its first host. */
int task_master_host (struct task *t, char *buf, size_t size)
{
    if (t->facts.layout) {
        snprintf (buf, size, "%s", layout_host (t->facts.layout, t->master_rank));
        return 0;
    }
    if (t->is_het || t->master_rank || !strncmp (t->distribution, "arbitrary", 9))
        return -1;
    return layout_first_host (t->hosts, buf, size);
}

void task_master_here (struct task *t)
{
    t->facts.one_machine = t->facts.nodes > 1;
    *t->facts.unknown = '\0';
    snprintf (t->facts.master, sizeof (t->facts.master), "127.0.0.1");
}

/* The components of a heterogeneous job reserve their own ports, all in one list.
 * Only the first are known to belong to the node of rank 0.
 */
void task_ports (struct task *t, bool of_tasks, int ephemeral)
{
    struct rank_facts *f = &t->facts;
    long tasks = f->one_machine ? f->size : f->layout ? f->layout->most : 1;
    struct rank_ports p;
    char reserved[256];

    variables_text (&t->vars, "SLURM_STEP_RESV_PORTS", reserved, sizeof (reserved));
    if (of_tasks && t->is_het)
        *reserved = '\0';
    p = rank_environment_ports (reserved, t->job, t->step, ephemeral, of_tasks ? tasks : 1);
    f->port = p.master;
    f->port2 = p.second;
    f->task_port = p.tasks;
}

/* Keep what the user exported, but not what the plugin set in an outer step.  A job
 * submitted from a step inherits that.
 */
void task_set (struct task *t, int n)
{
    const struct rank_variable *v = t->environment.vars;
    struct given g;
    char step[32];

    given_begin (&g, &t->vars, "DL_ENV_SET");
    for (int i = 0; i < n; i++)
        given_set (&g, v[i].name, v[i].value);
    snprintf (step, sizeof (step), "%u.%u", t->job, t->step);
    t->vars.set (t->vars.arg, "DL_ENV_STEP", step);
    given_end (&g, "DL_ENV_SET");
}
