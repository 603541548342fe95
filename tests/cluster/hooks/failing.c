/* SPDX-License-Identifier: Apache-2.0 */
/* A SPANK plugin in which the hook that its argument names fails, to show how
 * Slurm reacts.
 */
#include <stdio.h>
#include <string.h>

#include <slurm/spank.h>

SPANK_PLUGIN (failing, 1)

/* "local:init" is the hook in srun, "init" the one on the node. */
static int fails (const char *hook, int ac, char **av)
{
    char name[64];

    snprintf (name, sizeof (name), "%s%s", spank_context () == S_CTX_REMOTE ? "" : "local:", hook);
    return ac > 0 && !strcmp (av[0], name) ? -1 : 0;
}

static int take (int val, const char *value, int remote)
{
    (void)val;
    (void)value;
    return remote ? -1 : 0;
}

int slurm_spank_init (spank_t sp, int ac, char **av)
{
    struct spank_option o = { .name = "failing", .usage = "fail on the node", .cb = take };

    spank_option_register (sp, &o);
    return fails ("init", ac, av);
}

#define HOOK(name)                                                                                 \
    int slurm_spank_##name (spank_t sp, int ac, char **av)                                         \
    {                                                                                              \
        (void)sp;                                                                                  \
        return fails (#name, ac, av);                                                              \
    }

HOOK (init_post_opt)
HOOK (local_user_init)
HOOK (user_init)
HOOK (task_init_privileged)
HOOK (task_init)
HOOK (task_post_fork)
HOOK (task_exit)
HOOK (exit)
