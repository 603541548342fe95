/* SPDX-License-Identifier: Apache-2.0 */
/* The rank environment: from facts about a step to variables. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/rank/layout.h"
#include "runtime/rank/roles.h"

/* This folder: where a task is in its step, and what it gets there: variables,
 * cores, GPUs.  Libc only, as the plugin needs it.
 */

/* Pure functions over libc, without allocation: the plugin calls them in a
 * process that was forked from one with several threads.
 */

enum rank_pmi { RANK_PMI_NONE, RANK_PMI_2, RANK_PMI_X };

/* Where a task stands in its step, and how the others find rank 0. */
struct rank_facts {
    long rank, size;
    long local_rank, local_size; /* on this node */
    long node, nodes;            /* index of this node in the step */
    long gpus;                   /* of the node; 0: none, or not known */
    long visible_gpus;           /* to this task; 0: not known */
    bool own_gpus;               /* no other task has them */
    bool one_cpu;                /* this task may run on one only */
    char master[256];            /* name or address of rank 0's node; "" if unknown */
    char unknown[200];           /* why it is; "": Slurm does not say which node it is */
    char address[64];            /* the same as numbers; "" if unknown */
    char own[256];               /* as 'master', of this node */
    char own_address[64];
    char interface[32]; /* that reaches the master; "" if unknown */
    int port, port2;    /* on which rank 0 can listen */
    int task_port;      /* first of the ports of tasks; 0: too few */
    bool one_machine;   /* all nodes are this machine */
    bool elastic;       /* torchrun may restart its ranks, or has spare nodes */
    bool is_master;     /* this node is the master's */
    uint32_t job, step;
    enum rank_pmi pmi;
    const struct rank_layout *layout; /* NULL: unknown */
    const struct rank_roles *roles;   /* NULL: not given */
};

enum {
    RANK_VARIABLES_MAX = 40,
    RANK_VALUE_MAX = 100000, /* the kernel takes 128 KiB for one variable */
    RANK_TEXT = 4 * RANK_VALUE_MAX
};

struct rank_variable {
    const char *name;
    const char *value; /* in the text of the environment */
};

/* About 400 KiB: for the heap. */
struct rank_environment {
    int n;
    struct rank_variable vars[RANK_VARIABLES_MAX];
    char why[200]; /* what is missing, and why; "" if nothing is */
    char text[RANK_TEXT];
    size_t used;
};

/* Names of the frameworks, ended by NULL.  "off" has no variables. */
extern const char *const rank_environment_frameworks[];

/* Whether the framework needs a port for each task. */
bool rank_environment_needs_task_ports (const char *framework);

/* The roles that the framework has if none are given; NULL: it has none. */
const char *rank_environment_roles (const char *framework);

/* The rank whose node is the master: that of the scheduler, else 0. */
long rank_environment_master_rank (const struct rank_roles *roles);

/* Write the variables that 'framework' reads; dl-spank(7) lists them.  Returns
 * how many, or -1 with errno EINVAL if there is no such framework.  What cannot
 * be known is left out, and e->why says so.
 *
 * Never TORCHELASTIC_*, which would make every rank wait for a server that
 * nobody starts.
 */
int rank_environment_fill (const char *framework, const struct rank_facts *facts,
                           struct rank_environment *e);

/* For the user of a framework whose ranks have a GPU each: a line if there are
 * fewer ranks than GPUs, or the other way round; else "".
 */
void rank_environment_advice (const char *framework, const struct rank_facts *f, char *buf,
                              size_t size);

struct rank_ports {
    int master, second, third; /* for rank 0 */
    int tasks;                 /* first of those of the tasks; 0: too many tasks */
};

enum { RANK_TASK_PORTS = 64 };

/* Ports of a step.  From 'reserved' (SLURM_STEP_RESV_PORTS, "41004-41006"; may
 * be NULL): the first three, and 'tasks' of them from the second on, if there
 * are so many (Slurm reserves one more than a node has tasks).  Else from the
 * 12,000 below 'ephemeral', where the kernel's own choices begin: the upper
 * half is divided in 2,000 threes, the lower one in 93 blocks of
 * RANK_TASK_PORTS; the job chooses the first, each next step has the next.
 */
struct rank_ports rank_environment_ports (const char *reserved, uint32_t job, uint32_t step,
                                          int ephemeral, long tasks);
