/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of nodes as Slurm knows them. */
#pragma once

#include <slurm/spank.h>

/* Call 'emit' for each node that SLURM_NODE_ALIASES or slurm.conf gives an
 * address (NodeAddr, else NodeHostname) with its NodeName: from these files, as
 * the user, and never by asking slurmctld.  Until it does not return 0.
 */
void nodeaddr_each (spank_t sp, int (*emit) (void *arg, const char *node, const char *to),
                    void *arg);
