/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a task in its step, and its variables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/rank/rank_environment.h"
#include "runtime/rank/variables.h"

/* The variable in which srun passes its hosts to the tasks, with --distribution=arbitrary. */
#define ORDER_VARIABLE "SLURM_DL_HOSTFILE"
enum { ORDER_TEXT = 96 * 1024 };

/* About 1 MiB, most of it never touched: allocate it on the heap, zeroed. */
struct task {
    struct variables vars;
    struct rank_facts facts;
    struct rank_roles roles;
    uint32_t job, step;
    long master_rank;
    bool is_het;
    bool contradicted; /* Slurm's variables contradict each other */
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

/* Fill in t->facts from Slurm's variables, except for the master, its address, the interface and
 * the ports.  Set t->vars, t->step and, in case SLURM_JOB_ID is not set, t->job before.  'roles'
 * may be NULL.  Returns 0, or -1 with the reason in t->why.
 */
int task_read (struct task *t, const char *roles);

/* Write the node of the master.  Returns -1 if it is unknown. */
int task_master_host (struct task *t, char *buf, size_t size);

/* Make this machine the master: the step has one node, or all its nodes are this machine. */
void task_master_here (struct task *t);

/* Choose the ports, below 'ephemeral', where the kernel's own choices begin. */
void task_ports (struct task *t, bool of_tasks, int ephemeral);

/* Set the first n variables of t->environment, and list their names in DL_ENV_SET. */
void task_set (struct task *t, int n);
