/* SPDX-License-Identifier: Apache-2.0 */
/* Make the plan of a step from its options. */
#include "launcher/env/needs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/env/step_layout.h"
#include "launcher/sys/strings.h"
#include "runtime/base/word.h"
#include "runtime/network/nccl.h"
#include "runtime/rank/binding.h"

/* Of "gpu:2", "gpu:a100:2", "gpu", others with commas between. */
static long gres_gpus (const char *list)
{
    for (; *list;
         list += strcspn (list, ",") + (list[strcspn (list, ",")] == ',')) {
        char one[64];
        const char *colon;
        snprintf (one, sizeof (one), "%.*s", (int)strcspn (list, ","), list);
        if (!strncmp (one, "gres/", 5))
            memmove (one, one + 5, strlen (one + 5) + 1);
        if (strncmp (one, "gpu", 3) || (one[3] && one[3] != ':'))
            continue;
        colon = strrchr (one, ':');
        return colon && isdigit ((unsigned char)colon[1]) ? atol (colon + 1)
                                                          : 1;
    }
    return 0;
}

static void note_components (struct env_plan *p)
{
    if (p->ask->value[ASK_HET_GPUS])
        plan_note (p,
                   "%.60s: the components have different GPUs, and variables "
                   "of GPUs are not shown",
                   p->ask->where[ASK_HET_GPUS]);
    if (p->ask->value[ASK_HET_TASKS])
        plan_note (p,
                   "%.60s: Slurm 23.11 and newer give a component without "
                   "--ntasks as many tasks as the first",
                   p->ask->where[ASK_HET_TASKS]);
}

static int read_gpus (struct env_plan *p, struct slurmdl_error *err)
{
    long total;

    note_components (p);
    if (plan_number (p, ASK_GPUS_PER_NODE, true, GPUS_MAX, &p->gpus, err) < 0
        || plan_number (
               p, ASK_GPUS_PER_TASK, true, GPUS_MAX, &p->gpus_per_task, err)
               < 0
        || plan_number (p, ASK_GPUS, true, LAYOUT_RANKS, &total, err) < 0)
        return -1;
    if (!p->gpus)
        p->gpus = gres_gpus (plan_text (p, ASK_GRES));
    if (!p->gpus && total) {
        p->gpus = total / p->nodes;
        plan_note (p, "--gpus=%ld: as if each node gave %ld", total, p->gpus);
    }
    if (p->gpus_per_task && !p->gpus && p->nodes == 1)
        p->gpus = p->gpus_per_task * p->ranks;
    if (!strcmp (plan_text (p, ASK_GPU_BIND), "none"))
        p->gpus_per_task = 0;
    if (p->gpus > GPUS_MAX)
        p->gpus = GPUS_MAX;
    return 0;
}

static int read_word (struct env_plan *p,
                      enum ask_key key,
                      const char *const *words,
                      bool list,
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
            return plan_refuse (p, key, why, err);
        }
        at += len + (at[len] == ',');
    }
    return 0;
}

static int read_options (struct env_plan *p, struct slurmdl_error *err)
{
    static const enum ask_key ours[] = {
        ASK_DL, ASK_ROLES, ASK_BIND, ASK_NCCL
    };
    static const char *const types[] = { "none",    "pmi2",        "pmix",
                                         "pmix_v2", "pmix_v3",     "pmix_v4",
                                         "pmix_v5", "cray_shasta", "openmpi",
                                         NULL };
    struct rank_roles roles;
    char why[160];

    for (size_t i = 0; i < sizeof (ours) / sizeof (*ours); i++)
        if (p->ask->value[ours[i]] && !*plan_text (p, ours[i]))
            return plan_refuse (p, ours[i], "no value is given", err);
    p->dl = plan_text (p, ASK_DL);
    p->roles = plan_text (p, ASK_ROLES);
    p->bind = plan_text (p, ASK_BIND);
    p->nccl = plan_text (p, ASK_NCCL);
    if (read_word (p, ASK_DL, rankenv_frameworks, false, err) < 0
        || read_word (p, ASK_BIND, bind_words, true, err) < 0
        || read_word (p, ASK_MPI, types, false, err) < 0)
        return -1;
    if (*p->roles && roles_parse (p->roles, &roles, why, sizeof (why)) < 0)
        return plan_refuse (p, ASK_ROLES, why, err);
    if (*p->nccl && nccl_check_name (p->nccl) < 0)
        return plan_refuse (p, ASK_NCCL, "no name of a profile", err);
    if (!strcmp (p->dl, "off"))
        p->dl = "";
    return 0;
}

/* "1234" or "1234.2", as squeue writes a step. */
static int read_job (struct env_plan *p, struct slurmdl_error *err)
{
    const char *value = plan_text (p, ASK_JOB);
    char *end;

    if (!*value)
        return 0;
    p->job = (uint32_t)strtoul (value, &end, 10);
    if (end != value && *end == '.' && isdigit ((unsigned char)end[1]))
        p->step = (uint32_t)strtoul (end + 1, &end, 10);
    if (end == value || *end)
        return plan_refuse (p, ASK_JOB, "JOB or JOB.STEP", err);
    p->has_job = true;
    return 0;
}

static int read_topology (struct env_plan *p, struct slurmdl_error *err)
{
    struct topology *t;

    p->topology = p->ask->value[ASK_TOPOLOGY];
    if (!p->topology)
        return 0;
    if (!(t = topology_open (p->topology, &p->all)))
        return plan_refuse (p, ASK_TOPOLOGY, strerror (errno), err);
    if (*plan_text (p, ASK_CPU_LIST)) {
        if (cpus_parse (plan_text (p, ASK_CPU_LIST), &p->all) < 0) {
            topology_close (t);
            return plan_refuse (p, ASK_CPU_LIST, "no list of CPUs", err);
        }
    } else
        for (int i = 0; i < t->nodes; i++)
            for (size_t k = 0; k < sizeof (p->all.word) / sizeof (uint64_t);
                 k++)
                p->all.word[k] |= t->node[i].cpus.word[k];
    for (int v = GPU_VENDORS - 1; v >= 0; v--)
        if (binding_gpus (t, (enum gpu_vendor)v, false) > 0)
            p->vendor = (enum gpu_vendor)v;
    topology_close (t);
    return 0;
}

static int read_all (struct env_plan *p, struct slurmdl_error *err)
{
    p->one_machine = p->ask->value[ASK_ONE_MACHINE] != NULL;
    return read_options (p, err) < 0 || plan_distribution (p, err) < 0
                   || plan_layout (p, err) < 0 || read_gpus (p, err) < 0
                   || plan_number (p, ASK_CPUS, false, CPUS_MAX, &p->cpus, err)
                          < 0
                   || read_job (p, err) < 0 || read_topology (p, err) < 0
               ? -1
               : 0;
}

static int list_ranks (struct env_plan *p)
{
    FILE **f = calloc ((size_t)p->nodes, sizeof (*f));
    size_t size;
    int rv =
        f && (p->gtids = calloc ((size_t)p->nodes, sizeof (char *))) ? 0 : -1;

    for (long i = 0; rv == 0 && i < p->nodes; i++) {
        const char *gap = "";
        if (!(f[i] = open_memstream (&p->gtids[i], &size))) {
            rv = -1;
            break;
        }
        for (long r = 0; r < p->ranks; r++)
            if (p->layout.node_of[r] == i) {
                fprintf (f[i], "%s%ld", gap, r);
                gap = ",";
            }
        fclose (f[i]);
    }
    free (f);
    return rv;
}

int plan_create (struct env_plan **plan,
                 const struct ask *ask,
                 uint32_t step,
                 struct slurmdl_error *err)
{
    struct env_plan *p = *plan = calloc (1, sizeof (*p));

    if (!p || !(p->task = calloc (1, sizeof (*p->task))))
        return errorf (err, "out of memory");
    p->ask = ask;
    p->step = step;
    p->job = 1;
    if (read_all (p, err) < 0)
        return -1;
    return list_ranks (p) < 0 ? errorf (err, "out of memory") : 0;
}
