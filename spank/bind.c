/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: in a task, as the user: its cores, memory and view of the GPUs. */
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/layout.h"
#include "runtime/word.h"
#include "spank/bind.h"
#include "spank/variable.h"

/* ---- the option ---- */

/* clang-format off */
static const struct {
    const char *word;
    size_t flag; /* offset of a bool, or 0: a placement */
    enum placement placement;
} words[] = {
    { "closest", 0, PLACE_CLOSEST },
    { "socket",  0, PLACE_SOCKET },
    { "spread",  0, PLACE_SPREAD },
    { "none",    0, PLACE_NONE },
    { "own-gpu", offsetof (struct binding, own_gpu) },
    { "nic",     offsetof (struct binding, nic) },
    { "verbose", offsetof (struct binding, verbose) },
};
const char *const bind_words[] = {
    "closest", "socket", "spread", "none", "own-gpu", "nic", "verbose", NULL,
};
/* clang-format on */

static void read_words (struct binding *b, const char *value)
{
    b->placement = PLACE_CLOSEST;
    for (size_t i = 0; i < sizeof (words) / sizeof (*words); i++) {
        if (!word_listed (value, words[i].word))
            continue;
        if (words[i].flag)
            *(bool *)((char *)b + words[i].flag) = true;
        else
            b->placement = words[i].placement;
    }
}

static int read_place (struct binding *b)
{
    char spec[TEXT];

    b->rank = variable_number (b->sp, "SLURM_PROCID");
    b->local_rank = variable_number (b->sp, "SLURM_LOCALID");
    b->cpus_on_node = variable_number (b->sp, "SLURM_CPUS_ON_NODE");
    variable_text (b->sp, "SLURM_STEP_TASKS_PER_NODE", spec, sizeof (spec));
    b->local_size =
        layout_tasks_of_node (spec, variable_number (b->sp, "SLURM_NODEID"));
    if (b->local_rank < 0 || b->local_size <= b->local_rank
        || b->local_size > LOCAL_RANKS_MAX)
        return -1;
    b->r.local_rank = (int)b->local_rank;
    b->r.local_size = (int)b->local_size;
    return 0;
}

/* ---- which CPUs there are to choose from ---- */

int bind_cpus (struct cpu_set *s)
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
    if (set_cpus (&all) == 0 && bind_cpus (s) < 0)
        *s = b->own;
    set_cpus (&b->own);
}

/* Mask of one local rank in "0x3,0xc"; they repeat from the start. */
static int mask_of (const char *list, int rank, struct cpu_set *s)
{
    int n = 1;

    for (const char *c = list; *c; c++)
        n += *c == ',';
    for (rank %= n; rank > 0; rank--)
        list = strchr (list, ',') + 1;
    return cpus_parse_hex (list, (int)strcspn (list, ","), s);
}

static bool is_same (const struct cpu_set *a, const struct cpu_set *b)
{
    return !memcmp (a, b, sizeof (*a));
}

/* Whether Slurm gave each rank of this node cores of its own; and where. */
static bool are_private (struct binding *b, char list[static TEXT])
{
    struct cpu_set mask;
    bool differ = false;

    variable_text (b->sp, "SLURM_CPU_BIND_TYPE", list, TEXT);
    if (!strstr (list, "mask_cpu")
        || variable_text (b->sp, "SLURM_CPU_BIND_LIST", list, TEXT) < 0
        || mask_of (list, b->r.local_rank, &mask) < 0
        || !is_same (&mask, &b->own))
        return false; /* no mask, or another step's that was inherited */
    for (int i = 0; i < b->r.local_size; i++)
        if (mask_of (list, i, &mask) < 0)
            return false;
        else
            differ |= !is_same (&mask, &b->own);
    return differ;
}

static void read_homes (struct binding *b, const char *list)
{
    struct cpu_set mask;

    for (int i = 0; i < b->r.local_size; i++) {
        mask_of (list, i, &mask);
        b->home[i] = (int16_t)place_home (b->t, &mask);
    }
    b->r.home = b->home;
}

/* Without a cpuset, the widest set is the machine's, with other jobs' CPUs. */
static int read_cpus (struct binding *b, char list[static TEXT])
{
    struct cpu_set wide;

    *list = '\0';
    if (bind_cpus (&b->own) < 0)
        return -1;
    b->r.cpus = b->own;
    if (b->placement == PLACE_NONE)
        return 0;
    widest (b, &wide);
    if (cpus_count (&wide) <= b->cpus_on_node)
        b->r.cpus = wide;
    else if (!are_private (b, list))
        *list = '\0';
    return 0;
}

/* ---- which GPUs ---- */

static const struct view views[] = {
    { GPU_NVIDIA, "CUDA_VISIBLE_DEVICES" },
    { GPU_AMD, "ROCR_VISIBLE_DEVICES" },
    { GPU_AMD, "HIP_VISIBLE_DEVICES" },
    { GPU_INTEL, "ZE_AFFINITY_MASK" },
};

int bind_gpus (const struct topology *t, enum gpu_vendor vendor, bool reachable)
{
    int n = 0;

    for (int i = 0; i < t->gpus; i++)
        n += t->gpu[i].vendor == vendor && (!reachable || t->gpu[i].reachable);
    return n;
}

/* Only with the variable, which Slurm sets: a step without GPUs must not find
 * the ones of other jobs.
 */
static void find_view (struct binding *b)
{
    for (size_t i = 0; i < sizeof (views) / sizeof (*views); i++) {
        if (variable_text (b->sp, views[i].variable, b->list, TEXT) < 0
            || !*b->list || bind_gpus (b->t, views[i].vendor, false) == 0)
            continue;
        b->view = &views[i];
        b->r.visible = b->visible;
        b->r.devices =
            topology_visible (b->t, views[i].vendor, b->list, b->visible);
        return;
    }
}

/* An order that another variable gives, or a mask, is not ours to change. */
static void find_order (struct binding *b)
{
    char text[TEXT];

    if (!b->view)
        return;
    b->r.fixed_order = b->view->vendor == GPU_INTEL;
    if (b->view->vendor == GPU_NVIDIA
        && variable_text (b->sp, "CUDA_DEVICE_ORDER", text, TEXT) == 0
        && strcmp (text, "PCI_BUS_ID"))
        b->r.fixed_order = true;
    if (b->view->vendor == GPU_AMD
        && variable_text (b->sp, "HIP_VISIBLE_DEVICES", text, TEXT) == 0
        && strcmp (text, b->list))
        b->r.fixed_order = true;
    for (int i = 0; i < b->r.devices; i++)
        if (b->visible[i] < 0) /* a MIG device */
            b->r.fixed_order = true;
}

/* ---- setting ---- */

static void set (struct binding *b, const char *name, const char *value)
{
    size_t used = strlen (b->ours);

    spank_setenv (b->sp, name, value, 1);
    snprintf (
        b->ours + used, sizeof (b->ours) - used, "%s%s", used ? "," : "", name);
}

/* Unless the user has; what an outer step's plugin set is not the user's. */
static bool give (struct binding *b, const char *name, const char *value)
{
    char have[TEXT];

    if (variable_text (b->sp, name, have, TEXT) == 0
        && !word_listed (b->stale, name))
        return false;
    set (b, name, value);
    return true;
}

static const char *part_of (const char *list, int n)
{
    while (n-- > 0)
        list += strcspn (list, ",") + 1;
    return list;
}

static void write_devices (struct binding *b)
{
    char value[TEXT];
    char ids[TEXT] = "";
    int first = b->own_gpu ? b->p.first : 0;
    int count = b->own_gpu ? b->p.count : b->r.devices;
    int used = 0;
    int at = 0;

    for (int i = 0; i < count; i++) {
        const char *part = part_of (b->list, b->p.order[first + i]);
        used += snprintf (value + used,
                          sizeof (value) - (size_t)used,
                          "%s%.*s",
                          i ? "," : "",
                          (int)strcspn (part, ","),
                          part);
        at += snprintf (
            ids + at, sizeof (ids) - (size_t)at, "%s%d", i ? "," : "", i);
    }
    spank_setenv (b->sp, b->view->variable, value, 1);
    if (b->own_gpu)
        give (b, "JAX_LOCAL_DEVICE_IDS", ids);
}

/* Slurm gives AMD's devices in several variables, which filter one after the
 * other: the second one's indices would count what the first one left.
 */
static void leave_one_filter (struct binding *b)
{
    static const char *const others[] = { "CUDA_VISIBLE_DEVICES",
                                          "HIP_VISIBLE_DEVICES",
                                          "GPU_DEVICE_ORDINAL" };
    char text[TEXT];

    for (size_t i = 0; i < sizeof (others) / sizeof (*others); i++)
        if (strcmp (others[i], b->view->variable)
            && variable_text (b->sp, others[i], text, TEXT) == 0
            && !strcmp (text, b->list))
            spank_unsetenv (b->sp, others[i]);
}

static void apply_view (struct binding *b)
{
    if (!b->view || b->r.devices == 0
        || (b->placement == PLACE_NONE && !b->own_gpu))
        return;
    if (b->view->vendor == GPU_AMD)
        leave_one_filter (b);
    if (b->view->vendor == GPU_NVIDIA)
        give (b, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    if (b->p.reordered || b->own_gpu)
        write_devices (b);
}

/* Memory of the node in which all cores are, as long as there is some; what
 * srun --mem-bind chose stays.
 */
static void apply_memory (const struct binding *b)
{
    unsigned long nodes[16] = { 0 };
    int home = place_home (b->t, &b->p.cpus);
    int id = home < 0 ? -1 : b->t->node[home].id;
    int mode = -1;

    if (b->t->nodes < 2 || id < 0 || id >= 1024
        || syscall (SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) < 0
        || mode != MPOL_DEFAULT)
        return;
    nodes[(size_t)id / (8 * sizeof (*nodes))] |=
        1ul << (size_t)id % (8 * sizeof (*nodes));
    syscall (SYS_set_mempolicy, MPOL_PREFERRED, nodes, 8 * sizeof (nodes) + 1);
}

static void apply_cpus (struct binding *b)
{
    if (cpus_count (&b->p.cpus) == 0)
        return;
    if (set_cpus (&b->p.cpus) < 0)
        slurm_error ("dl: --dl-bind: cannot set the affinity of rank %ld: %m",
                     b->rank);
    else
        apply_memory (b);
}

/* Threads for the cores of this rank, for each of its GPUs: it may be a
 * launcher.  No more than its part of the job's CPUs where nothing confines it
 * to them.
 */
static int threads (const struct binding *b)
{
    bool stays = cpus_count (&b->p.cpus) == 0;
    int n = place_cores (b->t, stays ? &b->own : &b->p.cpus);
    long part = b->cpus_on_node / b->local_size;

    if (!b->r.home && b->cpus_on_node > 0
        && cpus_count (&b->r.cpus) > b->cpus_on_node && n > part)
        n = (int)part;
    if (b->p.count > 1)
        n /= b->p.count;
    return n > 0 ? n : 1;
}

static void apply (struct binding *b)
{
    const struct nic *nic = b->p.nic < 0 ? NULL : &b->t->nic[b->p.nic];
    char text[64];

    apply_cpus (b);
    apply_view (b);
    snprintf (text, sizeof (text), "%d", threads (b));
    if (b->placement != PLACE_NONE)
        give (b, "OMP_NUM_THREADS", text);
    if (b->nic && nic && nic->kind == NIC_INFINIBAND) {
        snprintf (text, sizeof (text), "%s:1", nic->name);
        give (b, "UCX_NET_DEVICES", text);
    }
    spank_setenv (b->sp, "DL_BIND_SET", b->ours, 1);
}

/* ---- all together ---- */

static const char *bind_rank (struct binding *b)
{
    char masks[TEXT];

    if (read_place (b) < 0)
        return "Slurm does not say where this task is";
    if (read_cpus (b, masks) < 0)
        return "the kernel does not say which CPUs this task has";
    b->t = topology_open ("/", &b->r.cpus);
    if (!b->t)
        return "no memory";
    if (*masks)
        read_homes (b, masks);
    find_view (b);
    find_order (b);
    if (place_rank (b->t, &b->r, &b->p) < 0)
        return "too many ranks";
    apply (b);
    bind_tell (b);
    return NULL;
}

void bind_task (spank_t sp)
{
    struct binding b = { .sp = sp };
    const char *value = option_value (OPTION_BIND);
    const char *why;

    read_words (&b, value);
    if (b.placement == PLACE_NONE && !b.own_gpu && !b.nic && !b.verbose)
        return;
    b.r.placement = b.placement;
    variable_text (sp, "DL_BIND_SET", b.stale, sizeof (b.stale));
    why = bind_rank (&b);
    topology_close (b.t);
    if (why)
        slurm_error ("dl: --dl-bind=%s: nothing is bound: %s", value, why);
}
