/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: decide what one task gets, from its variables and the machine. */
#include "runtime/rank/binding.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/nearest_word.h"
#include "runtime/rank/layout.h"

enum { TEXT = BINDING_TEXT };

/* ---- the option ---- */

/* clang-format off */
static const struct {
    const char *word;
    size_t flag; /* offset of a bool; 0: the word is a placement */
    enum placement placement;
} binding_table[] = {
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

void binding_words (struct binding *b, const char *value)
{
    b->placement = PLACE_CLOSEST;
    for (size_t i = 0; i < sizeof (binding_table) / sizeof (*binding_table); i++) {
        if (!word_listed (value, binding_table[i].word))
            continue;
        if (binding_table[i].flag)
            *(bool *)((char *)b + binding_table[i].flag) = true;
        else
            b->placement = binding_table[i].placement;
    }
}

int binding_places (const char *value)
{
    int n = 0;

    for (size_t i = 0; i < sizeof (binding_table) / sizeof (*binding_table); i++)
        n += !binding_table[i].flag && word_listed (value, binding_table[i].word);
    return n;
}

bool binding_is_wanted (const struct binding *b)
{
    return b->placement != PLACE_NONE || b->own_gpu || b->nic || b->verbose;
}

int binding_place (struct binding *b)
{
    const struct variables *v = &b->vars;
    char spec[TEXT];

    b->rank = variables_number (v, "SLURM_PROCID");
    b->local_rank = variables_number (v, "SLURM_LOCALID");
    b->cpus_on_node = variables_number (v, "SLURM_CPUS_ON_NODE");
    variables_text (v, "SLURM_STEP_TASKS_PER_NODE", spec, sizeof (spec));
    b->local_size = layout_tasks_of_node (spec, variables_number (v, "SLURM_NODEID"));
    if (b->local_rank < 0 || b->local_size <= b->local_rank || b->local_size > LOCAL_RANKS_MAX)
        return -1;
    b->r.placement = b->placement;
    b->r.local_rank = (int)b->local_rank;
    b->r.local_size = (int)b->local_size;
    return 0;
}

/* ---- the CPUs to choose from ---- */

/* The mask of one local rank in a list such as "0x3,0xc", which repeats from the
 * start.
 */
static int mask_of (const char *list, int rank, struct cpu_set *s)
{
    int n = 1;

    for (const char *c = list; *c; c++)
        n += *c == ',';
    for (rank %= n; rank > 0; rank--)
        list = strchr (list, ',') + 1;
    return cpus_parse_hex (list, (int)strcspn (list, ","), s);
}

static bool is_same_set (const struct cpu_set *a, const struct cpu_set *b)
{
    return !memcmp (a, b, sizeof (*a));
}

/* Whether Slurm gave each rank of this node its own cores.  'list' is a buffer. */
static bool are_private (struct binding *b, char list[static TEXT])
{
    struct cpu_set mask;
    bool differ = false;

    variables_text (&b->vars, "SLURM_CPU_BIND_TYPE", list, TEXT);
    if (!strstr (list, "mask_cpu")
        || variables_text (&b->vars, "SLURM_CPU_BIND_LIST", list, TEXT) < 0
        || mask_of (list, b->r.local_rank, &mask) < 0 || !is_same_set (&mask, &b->own))
        return false; /* no mask, or one inherited from another step */
    for (int i = 0; i < b->r.local_size; i++)
        if (mask_of (list, i, &mask) < 0)
            return false;
        else
            differ |= !is_same_set (&mask, &b->own);
    return differ;
}

static void read_homes (struct binding *b)
{
    char list[TEXT];
    struct cpu_set mask;

    variables_text (&b->vars, "SLURM_CPU_BIND_LIST", list, TEXT);
    for (int i = 0; i < b->r.local_size; i++) {
        mask_of (list, i, &mask);
        b->home[i] = (int16_t)topology_home (b->t, &mask);
    }
}

/* Without a cpuset, the widest set is the whole machine, including the CPUs of
 * other jobs.
 */
void binding_cpus (struct binding *b, const struct cpu_set *wide)
{
    char list[TEXT];

    b->r.cpus = b->own;
    if (b->placement == PLACE_NONE)
        return;
    if (cpus_count (wide) <= b->cpus_on_node)
        b->r.cpus = *wide;
    else
        b->r.home = are_private (b, list) ? b->home : NULL;
}

/* ---- which GPUs ---- */

static const struct view views[] = {
    { GPU_NVIDIA, "CUDA_VISIBLE_DEVICES" },
    { GPU_AMD, "ROCR_VISIBLE_DEVICES" },
    { GPU_AMD, "HIP_VISIBLE_DEVICES" },
    { GPU_INTEL, "ZE_AFFINITY_MASK" },
};

int binding_gpus (const struct topology *t, enum gpu_vendor vendor, bool reachable)
{
    int n = 0;

    for (int i = 0; i < t->gpus; i++)
        n += t->gpu[i].vendor == vendor && (!reachable || t->gpu[i].reachable);
    return n;
}

/* Use GPUs only if Slurm has set the variable: a step without GPUs must not find
 * those of other jobs.
 */
static void find_view (struct binding *b)
{
    for (size_t i = 0; i < sizeof (views) / sizeof (*views); i++) {
        if (variables_text (&b->vars, views[i].variable, b->list, TEXT) < 0 || !*b->list
            || binding_gpus (b->t, views[i].vendor, false) == 0)
            continue;
        b->view = &views[i];
        b->r.visible = b->visible;
        b->r.devices = topology_visible (b->t, views[i].vendor, b->list, b->visible);
        return;
    }
}

/* Do not change an order that another variable sets, or a mask. */
static void find_order (struct binding *b)
{
    char text[TEXT];

    if (!b->view)
        return;
    b->r.fixed_order = b->view->vendor == GPU_INTEL;
    if (b->view->vendor == GPU_NVIDIA
        && variables_text (&b->vars, "CUDA_DEVICE_ORDER", text, TEXT) == 0
        && strcmp (text, "PCI_BUS_ID"))
        b->r.fixed_order = true;
    if (b->view->vendor == GPU_AMD
        && variables_text (&b->vars, "HIP_VISIBLE_DEVICES", text, TEXT) == 0
        && strcmp (text, b->list))
        b->r.fixed_order = true;
    for (int i = 0; i < b->r.devices; i++)
        if (b->visible[i] == GPU_UNKNOWN)
            b->r.fixed_order = true;
}

/* ---- setting ---- */

static const char *list_part (const char *list, int n)
{
    while (n-- > 0)
        list += strcspn (list, ",") + 1;
    return list;
}

static void write_devices (struct binding *b, struct given *g)
{
    char value[TEXT];
    char ids[TEXT] = "";
    int first = b->own_gpu ? b->p.first : 0;
    int count = b->own_gpu ? b->p.count : b->r.devices;
    int used = 0;
    int at = 0;

    for (int i = 0; i < count; i++) {
        const char *part = list_part (b->list, b->p.order[first + i]);
        used += snprintf (value + used, sizeof (value) - (size_t)used, "%s%.*s", i ? "," : "",
                          (int)strcspn (part, ","), part);
        at += snprintf (ids + at, sizeof (ids) - (size_t)at, "%s%d", i ? "," : "", i);
    }
    b->vars.set (b->vars.arg, b->view->variable, value);
    if (b->own_gpu)
        given_set (g, "JAX_LOCAL_DEVICE_IDS", ids);
}

/* Slurm lists AMD's devices in several variables, which filter one after the other:
 * indices in the second would count what the first left over.
 */
static void leave_one_filter (struct binding *b)
{
    static const char *const others[] = { "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                          "GPU_DEVICE_ORDINAL" };
    char text[TEXT];

    for (size_t i = 0; i < sizeof (others) / sizeof (*others); i++)
        if (strcmp (others[i], b->view->variable)
            && variables_text (&b->vars, others[i], text, TEXT) == 0 && !strcmp (text, b->list))
            b->vars.unset (b->vars.arg, others[i]);
}

static void apply_view (struct binding *b, struct given *g)
{
    if (!b->view || b->r.devices == 0 || (b->placement == PLACE_NONE && !b->own_gpu))
        return;
    if (b->view->vendor == GPU_AMD)
        leave_one_filter (b);
    if (b->view->vendor == GPU_NVIDIA)
        given_set (g, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    if (b->p.reordered || b->own_gpu)
        write_devices (b, g);
}

/* The number of threads: one for each core of this rank, divided by its GPUs,
 * because the rank may be a launcher.  If nothing confines the rank to the job's
 * CPUs, use no more than its share of them.
 */
static int rank_threads (const struct binding *b)
{
    bool stays = cpus_count (&b->p.cpus) == 0;
    int n = place_cores (b->t, stays ? &b->own : &b->p.cpus);
    long part = b->cpus_on_node / b->local_size;

    if (!b->r.home && b->cpus_on_node > 0 && cpus_count (&b->r.cpus) > b->cpus_on_node && n > part)
        n = (int)part;
    if (b->p.count > 1)
        n /= b->p.count;
    return n > 0 ? n : 1;
}

void binding_set (struct binding *b)
{
    const struct nic *nic = b->p.nic < 0 ? NULL : &b->t->nic[b->p.nic];
    struct given g;
    char text[64];

    given_begin (&g, &b->vars, "DL_BIND_SET");
    apply_view (b, &g);
    snprintf (text, sizeof (text), "%d", rank_threads (b));
    if (b->placement != PLACE_NONE && !b->keeps_threads)
        given_set (&g, "OMP_NUM_THREADS", text);
    if (b->nic && nic && nic->kind == NIC_INFINIBAND) {
        snprintf (text, sizeof (text), "%s:1", nic->name);
        given_set (&g, "UCX_NET_DEVICES", text);
    }
    given_end (&g, "DL_BIND_SET");
}

/* ---- all together ---- */

const char *binding_decide (struct binding *b, const char *root)
{
    b->t = topology_open (root, &b->r.cpus);
    if (!b->t)
        return "no memory";
    if (b->r.home)
        read_homes (b);
    find_view (b);
    find_order (b);
    return place_rank (b->t, &b->r, &b->p) < 0 ? "too many ranks" : NULL;
}
