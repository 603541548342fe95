/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt at a segment of a trial. */
#pragma once

#include "launcher/sweep/sweep.h"

enum { SPARE_SIZE = 4096 };

/* The folder in an attempt's that has what it left in its working folder. */
#define WORK_NAME "work"

/* A command that is not a trial's, run as an attempt: a step of a flow.  The sweep
 * of the attempt has an experiment then, and perhaps a root, and nothing else.
 */
struct own_command {
    char **words;     /* NULL-ended lists: the program and its arguments, ... */
    char **variables; /* ... NAME=VALUE, besides those of this process, ... */
    char **folders;   /* ... and what its container sees */
};

/* What the worker did about ranks that died or hung: lines "TIME TEXT"; and
 * their stacks (launcher/debug/dump_folder.h).
 */
#define HEALING_NAME "healing"
#define STACKS_NAME  "stacks"
enum { HEALING_MOST = 4096 };

struct trial_attempt {
    const struct sweep *sweep;
    long trial;
    long number;
    int64_t length;
    const char *socket;            /* for `dl log`, NULL: none */
    const char *ranks;             /* notice of who watches its ranks, NULL: nobody */
    const char *nodes;             /* of the allocation, "n1,n2", on which they are; NULL: all */
    long nnodes;                   /* of 'nodes' */
    char dir[4096];                /* trials/0007/a.2 */
    char work[4096];               /* where it runs, "": where all do (exp->dir) */
    const struct own_command *own; /* instead of the experiment's; NULL */
    char *spare;                   /* of SPARE_SIZE: the path of another working folder, in which
                                      nothing was written, or ""; NULL: none is kept */
};
