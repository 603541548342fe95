/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a trial: in all, and on each of its nodes. */
#include "launcher/config/trial_gpus.h"

#include <stddef.h>
#include <string.h>

int64_t experiment_gpus (const struct experiment *e)
{
    return e->gpus > 0 ? e->gpus : e->node_gpus * e->nodes;
}

const char *experiment_gpus_key (const struct experiment *e)
{
    return e->gpus > 0 ? "gpus_per_trial" : e->slots > 0 ? "slots_per_trial" : "gpus_per_node";
}

double experiment_max_seconds (const struct experiment *e)
{
    int64_t gpus = experiment_gpus (e);

    return e->max_gpu_hours * 3600 / (gpus > 1 ? (double)gpus : 1);
}

void experiment_share_gpus (struct experiment *e)
{
    if (e->slots == 0)
        return;
    if (e->given.node_gpus && !e->given.nodes && e->node_gpus > 0 && e->slots > e->node_gpus)
        e->nodes = e->slots / e->node_gpus;
    if (!e->given.node_gpus)
        e->node_gpus = e->slots / e->nodes;
}

bool experiment_has_option (const struct experiment *e, const char *const *names)
{
    for (char **a = e->sbatch_args; a && *a; a++)
        for (const char *const *n = names; *n; n++)
            if (!strncmp (*a, *n, strlen (*n)))
                return true;
    return false;
}

bool experiment_places_itself (const struct experiment *e)
{
    static const char *const options[] = { "--nodes", "-N", "--ntasks", "-n",
                                           "--gpus",  "-G", "--gres",   NULL };

    return experiment_has_option (e, options);
}

/* Returns whether there was one. */
static bool check_gpus_per_trial (const struct experiment *e, struct origin origin,
                                  struct problems *p)
{
    if (e->slots > 0)
        problem_at (p, origin,
                    "'resources.gpus_per_trial' and 'slots_per_trial' both "
                    "count the GPUs of a trial on all of its nodes: leave one "
                    "of them out ('gpus_per_node' counts those of a node)");
    else if (e->lanes > 1)
        problem_at (p, origin,
                    "'resources.gpus_per_trial' cannot be used with "
                    "'resources.trials_per_task'; use "
                    "'resources.slots_per_trial'");
    else if (experiment_places_itself (e))
        problem_at (p, origin,
                    "'resources.gpus_per_trial' finds nodes and ranks: leave "
                    "--nodes, --ntasks, --gpus and --gres out of "
                    "'resources.sbatch_args'");
    else
        return false;
    return true;
}

void experiment_check_gpus (const struct experiment *e, struct origin origin, struct problems *p)
{
    int64_t all = e->gpus > 0 ? e->gpus : e->slots;
    bool by_nodes = e->given.nodes, by_each = e->given.node_gpus;
    const char *key = experiment_gpus_key (e);

    if (all == 0 || (e->gpus > 0 && check_gpus_per_trial (e, origin, p)))
        return;
    if (by_nodes && by_each && e->nodes * e->node_gpus != all)
        problem_at (p, origin,
                    "'resources.%s' is %lld, but 'nodes_per_trial' x "
                    "'gpus_per_node' is %lld x %lld; leave one of the three "
                    "out",
                    key, (long long)all, (long long)e->nodes, (long long)e->node_gpus);
    else if ((by_nodes && all % e->nodes) || (by_each && (!e->node_gpus || all % e->node_gpus)))
        problem_at (p, origin, "'resources.%s' (%lld) is no multiple of '%s' (%lld)%s", key,
                    (long long)all, by_nodes ? "nodes_per_trial" : "gpus_per_node",
                    (long long)(by_nodes ? e->nodes : e->node_gpus),
                    e->gpus ? ""
                            : ": it counts the GPUs of a trial on all of its "
                              "nodes, 'gpus_per_node' those of a node");
}
