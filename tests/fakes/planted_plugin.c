/* SPDX-License-Identifier: Apache-2.0 */
/* A SPANK plugin that overflows a buffer. tests/cluster/hostile.t must detect it. */
#include <stdlib.h>

#include <slurm/spank.h>

SPANK_PLUGIN (planted, 1)

int slurm_spank_task_init (spank_t sp, int ac, char **av)
{
    volatile char *p = malloc (3);

    (void)sp;
    (void)av;
    p[ac + 3] = 1;
    return 0;
}
