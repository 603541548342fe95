/* SPDX-License-Identifier: Apache-2.0 */
/* The rank environment: from facts about a step to variables. */
#ifndef RUNTIME_RANKENV_H
#define RUNTIME_RANKENV_H

#include <stddef.h>
#include <stdint.h>

/* Pure functions over libc, without allocation: the plugin calls them in a
 * process that was forked from one with several threads.
 */

/* Where a task stands in its step, and how the others find rank 0. */
struct rank_facts {
    long rank, size;
    long local_rank, local_size; /* on this node */
    long node, nodes;            /* index of this node in the step */
    char master[256];            /* address or name of rank 0's node */
    int port;                    /* on which rank 0 listens */
    char interface[32];          /* that reaches the master; "" if unknown */
};

struct rank_variable {
    const char *name;
    char value[256];
};

enum { RANK_VARIABLES_MAX = 32 };

/* Names of the frameworks, ended by NULL.  "off" has no variables. */
extern const char *const rankenv_frameworks[];

/* Write the variables that 'framework' reads.  Returns how many, or -1 with
 * errno EINVAL if there is no such framework.
 *
 * torch: torch.distributed's env:// (RANK, WORLD_SIZE, MASTER_ADDR,
 * MASTER_PORT), what its users and libraries read by convention (LOCAL_RANK,
 * LOCAL_WORLD_SIZE, NODE_RANK), and GLOO_SOCKET_IFNAME.  Never TORCHELASTIC_*,
 * which would make every rank wait for a server that nobody starts.
 */
int rankenv_fill (const char *framework,
                  const struct rank_facts *facts,
                  struct rank_variable vars[static RANK_VARIABLES_MAX]);

/* First host of a list as Slurm writes it: "gpu-a[001-010],x3" gives
 * "gpu-a001".  Returns 0, or -1 with errno EINVAL.
 */
int rankenv_first_host (const char *list, char *buf, size_t size);

/* Tasks of node 'node' by SLURM_STEP_TASKS_PER_NODE: "4(x2),3" gives 4, 4, 3.
 * Returns -1 with errno EINVAL if it does not say.
 */
long rankenv_tasks_of_node (const char *spec, long node);

/* Port for rank 0: the first of 'reserved' (SLURM_STEP_RESV_PORTS, "41004-
 * 41006"; may be NULL), else one that job and step choose among the 12,000
 * below 'ephemeral', where the kernel's own choices begin.
 */
int rankenv_port (const char *reserved,
                  uint32_t job,
                  uint32_t step,
                  int ephemeral);

#endif
