/* SPDX-License-Identifier: Apache-2.0 */
/* The rank environment: convert facts about a step to variables. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/rank/layout.h"
#include "runtime/rank/roles.h"

/* This folder: the place of a task in its step, and its variables, cores and GPUs.  It uses only
 * libc, because the plugin includes it.
 */

/* Pure functions that do not allocate memory: the plugin calls them in a process forked from one
 * with several threads.
 */

enum rank_pmi { RANK_PMI_NONE, RANK_PMI_2, RANK_PMI_X };

/* The place of a task in its step, and how the others find rank 0. */
struct rank_facts {
    long rank, size;
    long local_rank, local_size; /* on this node */
    long node, nodes;            /* index of this node in the step */
    long gpus;                   /* on the node; 0: none or unknown */
    long visible_gpus;           /* to this task; 0: unknown */
    bool own_gpus;               /* no other task uses them */
    bool one_cpu;                /* this task may run on one CPU only */
    char master[256];            /* name or address of rank 0's node; "" if unknown */
    char unknown[200];           /* why; "": Slurm does not provide it */
    char address[64];            /* its numeric address; "" if unknown */
    char own[256];               /* the same of this node */
    char own_address[64];
    char interface[32]; /* that reaches the master; "" if unknown */
    int port, port2;    /* at which rank 0 can listen */
    int task_port;      /* first port of the tasks; 0: there are too few */
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
    RANK_VALUE_MAX = 100000, /* the kernel allows 128 KiB for a variable */
    RANK_TEXT = 4 * RANK_VALUE_MAX
};

struct rank_variable {
    const char *name;
    const char *value; /* in the text of the environment */
};

/* About 400 KiB: allocate it on the heap. */
struct rank_environment {
    int n;
    struct rank_variable vars[RANK_VARIABLES_MAX];
    char why[200]; /* which variables are missing, and why; "" if none is */
    char text[RANK_TEXT];
    size_t used;
};

/* Names of the frameworks, ended by NULL.  "off" has no variables. */
extern const char *const rank_environment_frameworks[];

/* Whether the framework needs a port for each task. */
bool rank_environment_needs_task_ports (const char *framework);

/* The default roles of the framework; NULL if it has none. */
const char *rank_environment_roles (const char *framework);

/* The rank whose node is the master: the scheduler's, or else 0. */
long rank_environment_master_rank (const struct rank_roles *roles);

/* Write the variables that 'framework' reads; dl-spank(7) lists them.  Returns their number, or -1
 * with errno EINVAL if there is no such framework.  Variables with unknown values are omitted, and
 * e->why explains that.
 *
 * TORCHELASTIC_* are never set, because every rank would wait for a server that nobody starts.
 */
int rank_environment_fill (const char *framework, const struct rank_facts *facts,
                           struct rank_environment *e);

/* Write a line for the user of a framework with one GPU for each rank if the numbers of ranks and
 * GPUs differ; otherwise "".
 */
void rank_environment_advice (const char *framework, const struct rank_facts *f, char *buf,
                              size_t size);

struct rank_ports {
    int master, second, third; /* for rank 0 */
    int tasks;                 /* first port of the tasks; 0: too many tasks */
};

enum { RANK_TASK_PORTS = 64 };

/* Choose the ports of a step.  From 'reserved' (SLURM_STEP_RESV_PORTS, "41004-41006"; may be NULL):
 * the first three, and 'tasks' ports from the second on, if there are enough (Slurm reserves one
 * more than a node has tasks).  Otherwise, from the 12,000 ports below 'ephemeral', where the
 * kernel's own choices begin: the upper half has 2,000 groups of three, the lower half 93 blocks of
 * RANK_TASK_PORTS.  The job number selects the first group and block; later steps use the following
 * ones.
 */
struct rank_ports rank_environment_ports (const char *reserved, uint32_t job, uint32_t step,
                                          int ephemeral, long tasks);
