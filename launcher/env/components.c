/* SPDX-License-Identifier: Apache-2.0 */
/* A step on components of a heterogeneous job, as one step. */
#include "launcher/env/components.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/env/step_layout.h"

/* What becomes of all components, in their order. */
struct joined {
    char *nodes, *tasks, *hosts; /* with commas between */
    long ranks;
    bool unnamed, uncounted; /* hosts without names, tasks without a number */
};

static int add (char **list, const char *more)
{
    char *longer;

    if (asprintf (&longer, "%s%s%s", *list ? *list : "", *list ? "," : "", more)
        < 0)
        return -1;
    free (*list);
    *list = longer;
    return 0;
}

static int add_component (struct joined *j,
                          const struct ask *part,
                          const char *where,
                          struct slurmdl_error *err)
{
    struct env_plan *p = calloc (1, sizeof (*p));
    char nodes[32];
    int rv = -1;

    if (!p) {
        errorf (err, "out of memory");
        return -1;
    }
    p->ask = part;
    if (plan_distribution (p, err) == 0 && plan_layout (p, err) == 0) {
        snprintf (nodes, sizeof (nodes), "%ld", p->nodes);
        errno = EINVAL;
        if (*p->distribution && strcmp (p->distribution, "block")
            && p->nodes > 1)
            errorf (err,
                    "%s: of the distributions only block is read in a "
                    "heterogeneous job",
                    where);
        else if (add (&j->nodes, nodes) < 0 || add (&j->tasks, p->tasks) < 0
                 || add (&j->hosts, p->hosts) < 0)
            errorf (err, "out of memory");
        else
            rv = 0;
        j->ranks += p->ranks;
        j->unnamed |= p->placeholders;
    }
    plan_destroy (p);
    return rv;
}

static int
set (struct ask *a, enum ask_key key, const char *value, const char *where)
{
    free (a->value[key]);
    free (a->where[key]);
    a->value[key] = value ? strdup (value) : NULL;
    a->where[key] = value ? strdup (where) : NULL;
    return value && (!a->value[key] || !a->where[key]) ? -1 : 0;
}

static bool is_same (const char *a, const char *b)
{
    return !a || !b ? a == b : !strcmp (a, b);
}

/* Each rank has the GPUs of its own component, of which one plan knows none. */
static int
compare_gpus (struct ask *to, const struct ask *part, int n, const char *where)
{
    static const enum ask_key keys[] = {
        ASK_GPUS, ASK_GPUS_PER_NODE, ASK_GPUS_PER_TASK, ASK_GRES
    };
    bool same = true;
    int rv = 0;

    for (size_t k = 0; k < sizeof (keys) / sizeof (*keys); k++)
        for (int i = 1; i < n; i++)
            same = same
                   && is_same (part[0].value[keys[k]], part[i].value[keys[k]]);
    for (size_t k = 0; !same && k < sizeof (keys) / sizeof (*keys); k++)
        rv |= set (to, keys[k], NULL, NULL);
    return rv | (same ? 0 : set (to, ASK_HET_GPUS, "differ", where));
}

int components_join (struct ask *to,
                     const struct ask *part,
                     int n,
                     const char *where,
                     struct slurmdl_error *err)
{
    struct joined j = { NULL };
    char ranks[32];
    int rv = 0;

    for (int i = 0; rv == 0 && i < n; i++) {
        rv = add_component (&j, &part[i], where, err);
        j.uncounted |= part[0].value[ASK_NTASKS] && !part[i].value[ASK_NTASKS];
    }
    snprintf (ranks, sizeof (ranks), "%ld", j.ranks);
    /* Slurm gives all components the plugin's options of the last one */
    if (rv == 0
        && (ask_copy (to, &part[n - 1]) < 0
            || set (to, ASK_NODES, NULL, NULL) < 0
            || set (to, ASK_DISTRIBUTION, NULL, NULL) < 0
            || set (to, ASK_NTASKS, ranks, where) < 0
            || set (to, ASK_PER_NODE, j.tasks, where) < 0
            || set (to, ASK_NODELIST, j.unnamed ? NULL : j.hosts, where) < 0
            || set (to, ASK_HET, j.nodes, where) < 0
            || set (to, ASK_HET_TASKS, j.uncounted ? "" : NULL, where) < 0
            || compare_gpus (to, part, n, where) < 0))
        rv = errorf (err, "out of memory");
    free (j.nodes);
    free (j.tasks);
    free (j.hosts);
    return rv;
}
