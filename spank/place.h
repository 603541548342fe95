/* SPDX-License-Identifier: Apache-2.0 */
/* Where a task is in its step. */
#ifndef SPANK_PLACE_H
#define SPANK_PLACE_H

#include <stdbool.h>
#include <sys/socket.h>

#include <slurm/spank.h>

#include "runtime/rankenv.h"

/* About 1 MiB, most of it never touched: for the heap, filled with 0. */
struct task {
    spank_t sp;
    struct rank_facts facts;
    struct rank_roles roles;
    uint32_t job, step;
    long master_rank;
    bool is_het;
    bool contradicted; /* Slurm's variables do not fit each other, here */
    struct sockaddr_storage master; /* of its node */
    socklen_t master_len;           /* 0: not resolved */
    char why[200];
    char distribution[64];
    char hosts[64 * 1024]; /* Slurm's variables */
    char tasks[16 * 1024];
    char gtids[64 * 1024];
    char groups[LAYOUT_GROUPS][8 * 1024];
    struct rank_layout layout;
    struct rank_environment environment;
};

/* Find all that t->facts holds; only t->sp is set.  'roles' may be NULL.
 * Returns 0, or -1 with the reason in t->why.
 */
int task_place (struct task *t, const char *roles, bool task_ports);

#endif
