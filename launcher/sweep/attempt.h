/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt at a segment of a trial. */
#pragma once

#include "launcher/sweep/sweep.h"

enum { SPARE_SIZE = 4096 };

/* The subfolder of an attempt's folder that keeps what the attempt wrote to its working folder. */
#define WORK_NAME "work"

/* The command of a flow's step, which runs as an attempt instead of a trial's command.  The sweep
 * of such an attempt has only 'exp' and perhaps 'root'; all its other members are empty.
 */
struct own_command {
    char **words;     /* NULL-ended lists: the program and its arguments, ... */
    char **variables; /* ... NAME=VALUE, added to this process's environment, ... */
    char **folders;   /* ... and the folders that its container sees */
};

/* The file in which the worker notes what it did about ranks that died or hung, as lines "TIME
 * TEXT", and the folder with the stacks of those ranks (launcher/debug/debug.h).
 */
#define HEALING_NAME "healing"
#define STACKS_NAME  "stacks"
enum { HEALING_MOST = 4096 };

/* File with a message by which the monitor of a step (srun --dl-monitor=idle:MINUTES,park) asks the
 * worker to park.
 */
#define IDLE_NAME "idle"
#define IDLE_TEXT "all GPUs were idle for %ld min, and --dl-monitor says park"
enum { IDLE_MOST = 512 };

struct trial_attempt {
    const struct sweep *sweep;
    long trial;
    long number;
    int64_t length;
    const char *socket; /* that `dl log` connects to; NULL: none */
    const char *ranks;  /* notice of the worker that watches its ranks; NULL: nobody does */
    const char *nodes;  /* nodes of the allocation that it uses, "n1,n2"; NULL: all */
    long nnodes;        /* how many 'nodes' lists */
    char dir[4096];     /* trials/0007/a.2 */
    char work[4096];    /* its working folder; "": exp->dir, as for all */
    const struct own_command *own; /* runs instead of the experiment's command; or NULL */
    char *spare; /* SPARE_SIZE bytes: the path of an unused working folder that the
                    next attempt can take, or ""; NULL: do not keep one */
};
