/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the Slurm plugin that an experiment has keys for. */
#include "launcher/config/plugin_settings.h"

#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/sys/strings.h"

void experiment_each_plugin_option (const struct experiment *e,
                                    void (*f) (enum plugin_option_id id, const char *key,
                                               const char *value, void *arg),
                                    void *arg)
{
    const struct {
        enum plugin_option_id id;
        const char *key, *value;
    } all[] = {
        { PLUGIN_FRAMEWORK, "resources.framework", e->plugin->framework },
        { PLUGIN_ROLES, "job.roles", e->job->plugin_roles },
        { PLUGIN_CHECK, "resources.check", e->plugin->check },
        { PLUGIN_BIND, "resources.bind", e->plugin->bind },
        { PLUGIN_NCCL, "resources.nccl", e->plugin->nccl },
        { PLUGIN_MONITOR, "resources.monitor", e->plugin->monitor },
        { PLUGIN_DEBUG, "resources.debug", e->plugin->debug },
    };

    for (size_t i = 0; i < sizeof (all) / sizeof (*all); i++)
        if (all[i].value)
            f (all[i].id, all[i].key, all[i].value, arg);
}

static void add_plugin_option (enum plugin_option_id id, const char *key, const char *value,
                               void *arg)
{
    (void)key;
    strings_addf (arg, "--%s=%s", plugin_options[id].name, value);
}

void experiment_add_plugin_options (const struct experiment *e, char ***words)
{
    experiment_each_plugin_option (e, add_plugin_option, words);
}
