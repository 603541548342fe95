/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs, cores and network device each rank of a node gets. */
#pragma once

#include "runtime/host/topology.h"

enum { LOCAL_RANKS_MAX = 1024 };

enum placement {
    PLACE_NONE,
    PLACE_CLOSEST, /* cores of the NUMA nodes of the rank's GPUs */
    PLACE_SOCKET,  /* and the unused ones of that package */
    PLACE_SPREAD,  /* spread the ranks over packages and NUMA nodes */
};

struct place_request {
    enum placement placement;
    int local_rank, local_size;
    struct cpu_set cpus; /* that the ranks of this node share */

    /* If Slurm allocated separate cores to each rank: the index in topology.node of rank i's
     * cores (-1: several nodes).  Cores then stay, 'cpus' is ignored, and only GPUs are ordered.
     * NULL: the ranks share 'cpus'.
     */
    const int16_t *home;

    const int *visible; /* indices in topology.gpu, -1: unknown */
    int devices;        /* how many */
    bool fixed_order;   /* GPUs must stay in order */
};

struct place {
    /* The order in which all ranks of the node should see the devices, as indices in 'visible':
     * index LOCAL_RANK remains a separate device for each rank.
     */
    int order[GPUS_MAX];
    bool reordered;
    int first, count;    /* this rank's devices in that order */
    int node;            /* of its first device; -1: none or unknown */
    struct cpu_set cpus; /* its cores; empty: leave them */
    int nic;             /* index in topology.nic, -1: none */
    enum distance nic_distance;
    bool far; /* no core in the NUMA node of its device */
};

/* Decide for one rank.  The ranks of a node reach consistent decisions without communication,
 * because their requests differ only in local_rank.  A rank gets whole cores that no other rank
 * has, unless there are fewer cores than ranks.  Returns 0, or -1 with errno EINVAL.
 */
int place_rank (const struct topology *t, const struct place_request *r, struct place *p);

/* Number of cores of which 'cpus' contains at least one thread. */
int place_cores (const struct topology *t, const struct cpu_set *cpus);
