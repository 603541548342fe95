/* SPDX-License-Identifier: Apache-2.0 */
/* What an experiment asks for, as a sum of its settings. */
#include "launcher/config/queries.h"

#include <stdio.h>
#include <string.h>

#include "launcher/sys/strings.h"

bool experiment_has_ranks (const struct experiment *e)
{
    return e->nodes * e->ranks > 1 || e->job.nroles > 0;
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

void experiment_each_plugin_option (const struct experiment *e,
                                    void (*f) (enum plugin_option_id id, const char *key,
                                               const char *value, void *arg),
                                    void *arg)
{
    const struct {
        enum plugin_option_id id;
        const char *key, *value;
    } all[] = {
        { PLUGIN_FRAMEWORK, "resources.framework", e->framework },
        { PLUGIN_ROLES, "job.roles", e->job.plugin_roles },
        { PLUGIN_CHECK, "resources.check", e->check },
        { PLUGIN_BIND, "resources.bind", e->bind },
        { PLUGIN_NCCL, "resources.nccl", e->nccl },
        { PLUGIN_MONITOR, "resources.monitor", e->monitor },
        { PLUGIN_DEBUG, "resources.debug", e->debug },
    };

    for (size_t i = 0; i < sizeof (all) / sizeof (*all); i++)
        if (all[i].value)
            f (all[i].id, all[i].key, all[i].value, arg);
}

struct option_words {
    char ***words;
    int rv;
};

static void add_plugin_option (enum plugin_option_id id, const char *key, const char *value,
                               void *arg)
{
    struct option_words *o = arg;

    (void)key;
    o->rv |= strings_addf (o->words, "--%s=%s", plugin_options[id].name, value);
}

int experiment_add_plugin_options (const struct experiment *e, char ***words)
{
    struct option_words o = { words, 0 };

    experiment_each_plugin_option (e, add_plugin_option, &o);
    return o.rv;
}

long experiment_trials (const struct experiment *e)
{
    struct search_rung rungs[64];
    int n = searcher_preview (&e->search, e->params, e->nparams, rungs, 64);
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
    const struct searcher_kind *k = searcher_kind_of (e->search.name);

    return k ? k->needs : 0;
}
