/* SPDX-License-Identifier: Apache-2.0 */
/* What an experiment asks for, as a sum of its settings. */
#include "launcher/config/queries.h"

#include <stdio.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sys/strings.h"

bool experiment_has_ranks (const struct experiment *e)
{
    return e->resources->nodes * e->resources->ranks > 1 || e->job->nroles > 0;
}

int64_t experiment_least_nodes (const struct experiment *e)
{
    return e->resources->min_nodes > 0 && e->resources->min_nodes < e->resources->nodes
               ? e->resources->min_nodes
               : e->resources->nodes;
}

int64_t experiment_job_nodes (const struct experiment *e)
{
    return e->resources->nodes + e->resources->spares;
}

bool experiment_has_placeholder (const struct experiment *e, const char *name)
{
    char placeholder[256];
    char **a = e->argv;

    snprintf (placeholder, sizeof (placeholder), "{%s}", name);
    while (a && *a && !strstr (*a, placeholder))
        a++;
    return (a && *a) || (e->entrypoint && strstr (e->entrypoint, placeholder));
}

long experiment_trials (const struct experiment *e)
{
    struct search_rung rungs[64];
    int n = searcher_preview (&e->search->config, e->space->params, e->space->nparams, rungs, 64);
    long trials = 0;

    for (int i = 0; i < n && i < 64; i++)
        trials += rungs[i].trials;
    return trials;
}

const struct searcher_kind *searcher_kind_of (const char *name)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        if (!strcmp (k->name, name))
            return k;
    return NULL;
}

int experiment_needs (const struct experiment *e)
{
    const struct searcher_kind *k = searcher_kind_of (e->search->config.name);

    return k ? k->needs : 0;
}
