/* SPDX-License-Identifier: Apache-2.0 */
/* dl.so: the hooks that Slurm calls, and what each of them does. */
#include <string.h>

#include <slurm/slurm.h>

#include "spank/bind.h"
#include "spank/context.h"
#include "spank/debug.h"
#include "spank/gather.h"
#include "spank/monitor.h"
#include "spank/nccl.h"
#include "spank/options.h"
#include "spank/secret.h"
#include "spank/task.h"

SPANK_PLUGIN (dl, 1)

/* Only in a task of an ordinary step, as the user: a batch script's
 * environment would leak into all that it starts.
 */
static int is_ordinary_step (spank_t sp)
{
    uint32_t step;

    return spank_get_item (sp, S_JOB_STEPID, &step) == ESPANK_SUCCESS
           && step != SLURM_BATCH_SCRIPT && step != SLURM_EXTERN_CONT
           && step != SLURM_INTERACTIVE_STEP && step != SLURM_PENDING_STEP;
}

static bool is_on (int row)
{
    const char *value = option_value (row);

    return *value && strcmp (value, "off");
}

static bool is_any_on (void)
{
    for (int row = 0; row < PLUGIN_OPTIONS; row++)
        if (is_on (row))
            return true;
    return false;
}

int slurm_spank_init (spank_t sp, int ac, char **av)
{
    switch (spank_context ()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
    case S_CTX_REMOTE:
        options_begin (ac, av);
        if (options_register (sp) < 0)
            plugin_complain ("another plugin has one of these options; see "
                             "plugstack.conf");
        break;
    default:
        break; /* slurmd loads the plugin and has no use for it */
    }
    return 0; /* an error on a node would drain it */
}

int slurm_spank_task_init (spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    if (!is_ordinary_step (sp))
        return 0;
    if (is_on (PLUGIN_FRAMEWORK))
        task_environment (
            sp, option_value (PLUGIN_FRAMEWORK), option_value (PLUGIN_ROLES));
    if (*option_value (PLUGIN_BIND))
        bind_task (sp);
    if (*option_value (PLUGIN_NCCL))
        nccl_task (sp);
    if (is_on (PLUGIN_DEBUG))
        debug_task (sp);
    gather_task (sp, option_value (PLUGIN_CHECK), is_on (PLUGIN_DEBUG));
    if (is_on (PLUGIN_MONITOR))
        monitor_task (sp);
    return 0; /* a job is never failed for its environment */
}

/* In srun, as the user: the last hook whose environment all components of a
 * heterogeneous job get.
 */
int slurm_spank_init_post_opt (spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    if (spank_context () != S_CTX_LOCAL)
        return 0;
    plugin_secret (is_any_on ());
    gather_start (sp, option_value (PLUGIN_CHECK), is_on (PLUGIN_DEBUG));
    return 0;
}

int slurm_spank_local_user_init (spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    if (is_on (PLUGIN_MONITOR) && is_ordinary_step (sp))
        monitor_begin (sp);
    return 0;
}

int slurm_spank_exit (spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    if (spank_context () == S_CTX_LOCAL)
        monitor_end (sp);
    return 0;
}
