/* SPDX-License-Identifier: Apache-2.0 */
/* A SPANK plugin that accesses a user's file as root, to check that
 * tests/cluster/asroot.t notices.
 */
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN (curious, 1)

int slurm_spank_init (spank_t sp, int ac, char **av)
{
    (void)sp;
    if (spank_context () == S_CTX_REMOTE && ac > 0)
        (void)!access (av[0], R_OK);
    return 0;
}
