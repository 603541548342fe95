/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: bind a task to cores, memory and GPUs, as the user. */
#include "spank/bind.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "spank/bind_advice.h"
#include "spank/context.h"
#include "spank/variable.h"

static int get_cpus (struct cpu_set *s)
{
    memset (s, 0, sizeof (*s));
    return sched_getaffinity (0, sizeof (*s), (cpu_set_t *)s);
}

static int set_cpus (const struct cpu_set *s)
{
    return sched_setaffinity (0, sizeof (*s), (const cpu_set_t *)s);
}

/* All that the cpuset of the step allows: the kernel leaves the rest out. */
static void widest (const struct binding *b, struct cpu_set *s)
{
    struct cpu_set all;

    memset (&all, 0xff, sizeof (all));
    *s = b->own;
    if (set_cpus (&all) == 0 && get_cpus (s) < 0)
        *s = b->own;
    set_cpus (&b->own);
}

static int read_cpus (struct binding *b)
{
    struct cpu_set wide;

    if (get_cpus (&b->own) < 0)
        return -1;
    wide = b->own;
    if (b->placement != PLACE_NONE)
        widest (b, &wide);
    binding_cpus (b, &wide);
    return 0;
}

/* Memory of the node in which all cores are, as long as there is some; what
 * srun --mem-bind chose stays.
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
    if (read_cpus (b) < 0)
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
