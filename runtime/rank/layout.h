/* SPDX-License-Identifier: Apache-2.0 */
/* Compute which rank of a step runs on which node, from Slurm's variables. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Pure functions that use only libc and do not allocate memory. */

enum {
    LAYOUT_NODES = 4096,
    LAYOUT_RANKS = 32768,
    LAYOUT_NAMES = 128 * 1024, /* bytes of all names */
    LAYOUT_GROUPS = 16         /* components of a heterogeneous job */
};

/* About 300 KiB: allocate it on the heap. */
struct rank_layout {
    long nodes, ranks;
    long most; /* largest number of tasks on a node */
    uint32_t tasks[LAYOUT_NODES];
    uint32_t name[LAYOUT_NODES]; /* offset in names */
    uint16_t node_of[LAYOUT_RANKS];
    uint16_t local_of[LAYOUT_RANKS]; /* SLURM_LOCALID */
    char names[LAYOUT_NAMES];
    size_t used;
};

/* The values of Slurm's variables; NULL or "" if unset. */
struct layout_facts {
    const char *hosts;                 /* SLURM_STEP_NODELIST */
    const char *tasks;                 /* SLURM_STEP_TASKS_PER_NODE */
    const char *distribution;          /* SLURM_DISTRIBUTION; unset is block */
    long plane;                        /* SLURM_DIST_PLANESIZE */
    const char *groups[LAYOUT_GROUPS]; /* node lists of the components */
    int ngroups;                       /* 0: an ordinary job */
    long ranks;                        /* SLURM_STEP_NUM_TASKS */
    long node;                         /* SLURM_NODEID of this task */
    const char *gtids;                 /* SLURM_GTIDS: the ranks of this node */
    const char *order;                 /* for an arbitrary distribution: the host of each rank */
};

/* Compute the layout and compare it with 'gtids', which shows the real one.  Nodes are numbered as
 * in SLURM_NODEID: in a heterogeneous job component by component, although the list of hosts is
 * sorted by name.
 *
 * Returns 0, or -1 with errno EINVAL if the variables contradict each other, ENOTSUP if they do not
 * determine the layout (an arbitrary distribution on three or more nodes without f->order, because
 * neither Slurm's variables nor SPANK provide the ranks of other nodes), or E2BIG above the limits.
 */
int layout_fill (struct rank_layout *l, const struct layout_facts *f);

/* As layout_fill(), before a task exists: f->gtids is not needed, except for an arbitrary
 * distribution without f->order (ENOTSUP).
 */
int layout_deal (struct rank_layout *l, const struct layout_facts *f);

const char *layout_host (const struct rank_layout *l, long rank);

/* The number of nodes with a task of this local rank, and how many of them precede 'node':
 * Horovod's cross size and cross rank.
 */
long layout_cross (const struct rank_layout *l, long local_rank, long node, long *before);

/* How many ranks "0,2,3" (SLURM_GTIDS) lists; -1 with errno EINVAL. */
long layout_count (const char *gtids);

/* The first host of a list in Slurm's syntax: "gpu-a[001-010],x3" gives "gpu-a001".  Returns 0, or
 * -1 with errno EINVAL.
 */
int layout_first_host (const char *list, char *buf, size_t size);

/* Call 'emit' for each host of the list, in order, until it returns nonzero.  Returns 0, what emit
 * returned, or -1 with errno EINVAL.
 */
int layout_each_host (const char *list, int (*emit) (void *arg, const char *host), void *arg);

/* Number of tasks on a node from SLURM_STEP_TASKS_PER_NODE: "4(x2),3" gives 4, 4, 3.  Returns -1
 * with errno EINVAL if the value does not contain it.
 */
long layout_tasks_of_node (const char *spec, long node);
