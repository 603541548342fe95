/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: bind a task to cores, memory and GPUs, as the user, and give advice. */
#include "spank/hooks.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "runtime/base/nearest_word.h"
#include "runtime/rank/binding.h"
#include "spank/context.h"

/* ---- advice ---- */

/* The number of GPUs that the step has on this node.  SLURM_GPUS_ON_NODE may count
 * the GPUs of the whole job, of which the step asked for a part, so use it only if
 * Slurm was told to divide them among the tasks.
 */
static long gpus_asked (const struct binding *b)
{
    static const char *const by_task[] = { "SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU",
                                           "SLURM_GPU_BIND", "SLURM_TRES_BIND" };
    char text[BINDING_TEXT];
    long asked;
    long on_node = variables_number (&b->vars, "SLURM_GPUS_ON_NODE");

    variables_text (&b->vars, "SLURM_STEP_GPUS", text, BINDING_TEXT);
    asked = words_count (text);
    for (size_t i = 0; i < sizeof (by_task) / sizeof (*by_task); i++)
        if (on_node > asked && variables_text (&b->vars, by_task[i], text, BINDING_TEXT) == 0)
            return on_node;
    return asked;
}

/* NVLink does not work between peers whose device files a task cannot open.  Peers
 * that are only invisible remain reachable, but LOCAL_RANK does not index the
 * visible GPUs.
 */
static void report_hidden_gpus (const struct binding *b)
{
    long asked = gpus_asked (b);
    int open;

    if (!b->view || b->local_size < 2 || b->r.devices >= b->local_size || b->r.devices >= asked)
        return;
    open = binding_gpus (b->t, b->view->vendor, true);
    if (open < asked)
        slurm_error ("dl: this task can open %d of the %ld GPUs that the job has on "
                     "this node (--gpus-per-task or --gpu-bind hides the others), so "
                     "NCCL cannot use NVLink between ranks; use --gpus-per-node=%ld "
                     "instead of --gpus-per-task, or --gpu-bind=none, or from Slurm "
                     "23.11.4 on SLURM_GRES_FLAGS=allow-task-sharing",
                     open, asked, asked);
    else if (!b->own_gpu)
        slurm_error ("dl: %s shows this task %d of the %ld GPUs that the job has on "
                     "this node: a program that uses LOCAL_RANK as its device fails; "
                     "use --gpus-per-node=%ld instead of --gpus-per-task, or "
                     "--gpu-bind=none",
                     b->view->variable, b->r.devices, asked, asked);
}

static void report_lost_cpus (const struct binding *b)
{
    long asked = variables_number (&b->vars, "SLURM_CPUS_PER_TASK");
    int have = cpus_count (&b->own);

    if (asked > have)
        slurm_error ("dl: the job has --cpus-per-task=%ld, this task %d: srun "
                     "of Slurm 22.05 and 23.02 does not inherit it from sbatch; pass it to srun, "
                     "or export SRUN_CPUS_PER_TASK=%ld",
                     asked, have, asked);
}

static void report_far_ranks (const struct binding *b)
{
    struct place_request r = b->r;
    struct place p;
    char cpus[128];
    int n = 0;

    for (r.local_rank = 0; r.local_rank < r.local_size; r.local_rank++)
        n += place_rank (b->t, &r, &p) == 0 && p.far;
    if (n > 0)
        slurm_error ("dl: %d of %d ranks on this node have no core in the NUMA "
                     "node of their GPU (the step's CPUs are %s): ask for "
                     "--exclusive, or --gres-flags=enforce-binding",
                     n, r.local_size,
                     b->r.home ? "bound by --cpu-bind"
                               : cpus_print (&b->r.cpus, cpus, sizeof (cpus)));
}

static const char *gpu_name (const struct binding *b, int i)
{
    int gpu = b->visible[b->p.order[b->p.first + i]];

    return gpu < 0 ? "unknown" : strrchr (b->t->gpu[gpu].path, '/') + 1;
}

static void report_place (const struct binding *b, const struct cpu_set *now)
{
    char gpus[256] = "no GPU";
    char cpus[256];
    char node[64];
    int used = 0;

    variables_text (&b->vars, "SLURMD_NODENAME", node, sizeof (node));
    for (int i = 0; i < b->p.count && used < (int)sizeof (gpus); i++)
        used += snprintf (gpus + used, sizeof (gpus) - (size_t)used, "%s%s", i ? "," : "GPU ",
                          gpu_name (b, i));
    slurm_spank_log ("dl: rank %ld on %s: %s, CPUs %s, NIC %s%s%s", b->rank, node, gpus,
                     cpus_print (now, cpus, sizeof (cpus)),
                     b->p.nic < 0 ? "none" : b->t->nic[b->p.nic].name, b->p.nic < 0 ? "" : " at ",
                     b->p.nic < 0 ? "" : distance_names[b->p.nic_distance]);
}

/* Report hidden GPUs, lost CPUs and distant cores, and the placement of the rank if
 * the user asked for it.  'now' is the affinity of this process after binding.
 */
static void advice_report (const struct binding *b, const struct cpu_set *now)
{
    if (b->rank == 0) {
        report_hidden_gpus (b);
        report_lost_cpus (b);
    }
    if (b->local_rank == 0 && b->placement != PLACE_NONE && b->r.devices > 0)
        report_far_ranks (b);
    if (b->verbose)
        report_place (b, now);
}

/* ---- binding ---- */

static int get_cpus (struct cpu_set *s)
{
    memset (s, 0, sizeof (*s));
    return sched_getaffinity (0, sizeof (*s), (cpu_set_t *)s);
}

static int set_cpus (const struct cpu_set *s)
{
    return sched_setaffinity (0, sizeof (*s), (const cpu_set_t *)s);
}

/* All CPUs that the cpuset of the step allows: the kernel ignores the others. */
static void widest_set (const struct binding *b, struct cpu_set *s)
{
    struct cpu_set all;

    memset (&all, 0xff, sizeof (all));
    *s = b->own;
    if (set_cpus (&all) == 0 && get_cpus (s) < 0)
        *s = b->own;
    set_cpus (&b->own);
}

static int read_step_cpus (struct binding *b)
{
    struct cpu_set wide;

    if (get_cpus (&b->own) < 0)
        return -1;
    wide = b->own;
    if (b->placement != PLACE_NONE)
        widest_set (b, &wide);
    binding_cpus (b, &wide);
    return 0;
}

/* Prefer memory of the node that contains all cores while it lasts.  Keep the
 * user's srun --mem-bind.
 */
static void apply_memory (const struct binding *b)
{
    unsigned long nodes[16] = { 0 };
    int home = topology_home (b->t, &b->p.cpus);
    int id = home < 0 ? -1 : b->t->node[home].id;
    int mode = -1;

    if (b->t->nodes < 2 || id < 0 || id >= 1024
        || syscall (SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) < 0 || mode != MPOL_DEFAULT)
        return;
    nodes[(size_t)id / (8 * sizeof (*nodes))] |= 1ul << (size_t)id % (8 * sizeof (*nodes));
    syscall (SYS_set_mempolicy, MPOL_PREFERRED, nodes, 8 * sizeof (nodes) + 1);
}

static void apply_cpus (struct binding *b)
{
    if (cpus_count (&b->p.cpus) == 0)
        return;
    if (set_cpus (&b->p.cpus) < 0)
        slurm_error ("dl: --dl-bind: cannot set the affinity of rank %ld: %m", b->rank);
    else
        apply_memory (b);
}

static const char *bind_rank (struct binding *b)
{
    struct cpu_set now;
    const char *why;

    if (binding_place (b) < 0)
        return "Slurm does not say where this task is";
    if (read_step_cpus (b) < 0)
        return "the kernel does not say which CPUs this task has";
    if ((why = binding_decide (b, "/")))
        return why;
    apply_cpus (b);
    binding_set (b);
    get_cpus (&now);
    advice_report (b, &now);
    return NULL;
}

void bind_task (spank_t sp)
{
    struct binding b = { .vars = variables_of (sp) };
    const char *value = option_value (PLUGIN_BIND);
    const char *why;

    binding_words (&b, value);
    b.keeps_threads = !option_is_given (PLUGIN_BIND);
    if (!binding_is_wanted (&b))
        return;
    why = bind_rank (&b);
    topology_close (b.t);
    if (why)
        slurm_error ("dl: --dl-bind=%s: nothing is bound: %s", value, why);
}
