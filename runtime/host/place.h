/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs, cores and network device each rank of a node gets. */
#pragma once

#include "runtime/host/topology.h"

enum { LOCAL_RANKS_MAX = 1024 };

enum placement {
    PLACE_NONE,
    PLACE_CLOSEST, /* cores of the NUMA nodes of the rank's GPUs */
    PLACE_SOCKET,  /* and those of its package that no rank has */
    PLACE_SPREAD,  /* ranks over packages and NUMA nodes */
};

struct place_request {
    enum placement placement;
    int local_rank, local_size;
    struct cpu_set cpus; /* that the ranks of this node share */

    /* Where Slurm gave each rank cores of its own: the index in
     * topology.node of rank i's (-1: several).  Cores then stay, 'cpus' is not
     * read, and GPUs are put in order.  NULL: the ranks share 'cpus'.
     */
    const int16_t *home;

    const int *visible; /* indices in topology.gpu, -1: unknown */
    int devices;        /* how many */
    bool fixed_order;   /* GPUs must stay in order */
};

struct place {
    /* The order in which all ranks of the node are to see the devices, as
     * indices in 'visible': index LOCAL_RANK stays a device of its own.
     */
    int order[GPUS_MAX];
    bool reordered;
    int first, count;    /* this rank's devices in that order */
    int node;            /* of its first device; -1: none or unknown */
    struct cpu_set cpus; /* its cores; empty: those it has */
    int nic;             /* index in topology.nic, -1: none */
    enum distance nic_distance;
    bool far; /* no core in the NUMA node of its device */
};

/* Decide for one rank.  All ranks of a node come to decisions that fit
 * together, without talking to each other, because their requests differ in
 * local_rank only.  Cores are in whole, disjoint between ranks, unless there
 * are fewer cores than ranks.  Returns 0, or -1 with errno EINVAL.
 */
int place_rank (const struct topology *t, const struct place_request *r, struct place *p);

/* Cores of which 'cpus' has at least one thread. */
int place_cores (const struct topology *t, const struct cpu_set *cpus);
