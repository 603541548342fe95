/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a run of dl elastic: nodes, numbers and the folder. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "launcher/sys/command_line.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* A node of the allocation, or with --local a place on this machine.  Its
 * ranks are one step, so that they end together.
 */
struct elastic_unit {
    char node[256];     /* "": this machine */
    long tries;         /* that were started */
    long fails;         /* since it last ran for long */
    pid_t pid;          /* 0: nothing runs */
    double begun, next; /* when it began, when it may begin again */
    double asked;       /* to end; 0: not yet (step_signal()) */
};

struct elastic {
    const struct command_line *line;
    const struct elastic_options *opt;
    char dir[PATH_MAX - 128]; /* of this run */
    struct own_folder folder; /* it, open: others may exchange its name */
    struct elastic_unit *units;
    long n;
    long ranks;    /* of a unit */
    long min, max; /* units */
    long wanted;   /* units, without spares */
    long spares;
    bool local;
    bool done;  /* a rank has done with training: nothing is begun any more */
    bool never; /* another try makes no sense */
    int signal; /* that ends all; 0: none */
};

/* Units, numbers and the folder, as the settings and Slurm say. */
int elastic_plan (struct elastic *e, struct slurmdl_error *err);

/* Whether 'dir' is the folder of such a run; and to ask it for N units. */
bool elastic_is_run (const char *dir);
/* 0; 1: it has so many already. */
int elastic_scale (const char *dir, long units, struct slurmdl_error *err);
/* That it has ended, where its folder stays. */
void elastic_end (const struct elastic *e);
/* Remove the folder that was made, whatever has its name now. */
void elastic_remove (struct elastic *e);
