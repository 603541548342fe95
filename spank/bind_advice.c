/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: advice on the cores and GPUs of a task. */
#include "spank/bind_advice.h"

#include <stdio.h>
#include <string.h>

#include <slurm/spank.h>

#include "runtime/base/nearest_word.h"

/* GPUs of the step on this node.  SLURM_GPUS_ON_NODE may be the job's, of which
 * the step wanted a part: it counts where Slurm was told to part them by task.
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

/* Peers that a task cannot open are lost to NVLink; peers that it only cannot
 * see are not, but LOCAL_RANK is no index of what it sees.
 */
static void report_hidden_gpus (const struct binding *b)
{
    long asked = gpus_asked (b);
    int open;

    if (!b->view || b->local_size < 2 || b->r.devices >= b->local_size || b->r.devices >= asked)
        return;
    open = binding_gpus (b->t, b->view->vendor, true);
    if (open < asked)
        slurm_error ("dl: this task may open %d of the %ld GPUs that the job has on "
                     "this node (--gpus-per-task or --gpu-bind hides the others), so "
                     "NCCL cannot use NVLink between ranks; use --gpus-per-node=%ld "
                     "instead of --gpus-per-task, or --gpu-bind=none, or from Slurm "
                     "23.11.4 on SLURM_GRES_FLAGS=allow-task-sharing",
                     open, asked, asked);
    else if (!b->own_gpu)
        slurm_error ("dl: %s shows this task %d of the %ld GPUs that the job has on "
                     "this node: a program that takes LOCAL_RANK as its device fails; "
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
                     "of Slurm 22.05 and 23.02 does not take it from sbatch; "
                     "give it to srun, or export SRUN_CPUS_PER_TASK=%ld",
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

void advice_report (const struct binding *b, const struct cpu_set *now)
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
