/* SPDX-License-Identifier: Apache-2.0 */
/* A variant of the plugin whose task_init only runs the command dl. */
#include "spank/helper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <slurm/slurm.h>

#include "spank/hooks.h"

SPANK_PLUGIN (dl, 1)

int slurm_spank_init (spank_t sp, int ac, char **av)
{
    (void)sp;
    options_begin (ac, av);
    return 0;
}

int slurm_spank_task_init (spank_t sp, int ac, char **av)
{
    const char *const args[] = { "--version", NULL };
    int rv[2];
    int e[2];

    (void)ac;
    (void)av;
    rv[0] = helper_wait (sp, args, 10);
    e[0] = errno;
    rv[1] = helper_detach (sp, args, NULL);
    e[1] = errno;
    for (int i = 0; i < 2; i++)
        slurm_error ("helper: %d %s", rv[i], rv[i] < 0 ? strerrorname_np (e[i]) : "");
    return 0;
}
