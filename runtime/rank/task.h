/* SPDX-License-Identifier: Apache-2.0 */
/* Where a task is in its step, and the variables that it gets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "runtime/rank/rank_environment.h"
#include "runtime/rank/variables.h"

/* In which srun tells the tasks its hosts, with --distribution=arbitrary. */
#define ORDER_VARIABLE "SLURM_DL_HOSTFILE"
enum { ORDER_TEXT = 96 * 1024 };

/* About 1 MiB, most of it never touched: for the heap, filled with 0. */
struct task {
    struct variables vars;
    struct rank_facts facts;
    struct rank_roles roles;
    uint32_t job, step;
    long master_rank;
    bool is_het;
    bool contradicted;              /* Slurm's variables do not fit each other, here */
    struct sockaddr_storage master; /* of its node */
    socklen_t master_len;           /* 0: not resolved */
    char why[200];
    char distribution[64];
    char hosts[64 * 1024]; /* Slurm's variables */
    char tasks[16 * 1024];
    char gtids[64 * 1024];
    char order[ORDER_TEXT];
    char groups[LAYOUT_GROUPS][8 * 1024];
    struct rank_layout layout;
    struct rank_environment environment;
};

/* Find what Slurm's variables say: t->facts but for the master, its address,
 * the interface and ports.  Set before: t->vars, t->step, and t->job for where
 * SLURM_JOB_ID is not set.  'roles' may be NULL.  Returns 0, or -1 with the
 * reason in t->why.
 */
int task_read (struct task *t, const char *roles);

/* The node of the master.  Returns -1 if it is not known. */
int task_master_host (struct task *t, char *buf, size_t size);

/* The master is this machine: the step is on one node, or all its nodes are. */
void task_master_here (struct task *t);

/* Choose the ports; the kernel's own choices begin at 'ephemeral'. */
void task_ports (struct task *t, bool of_tasks, int ephemeral);

/* Set the first n of t->environment, and say which in DL_ENV_SET. */
void task_set (struct task *t, int n);
