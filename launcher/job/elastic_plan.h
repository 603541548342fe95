/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a run of dl elastic: its nodes, its limits and its folder. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "launcher/sys/command_line.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* A node of the allocation or, with --local, a place on this machine.  All ranks of a unit are one
 * step, so that they end together.
 */
struct elastic_unit {
    char node[256];     /* "": this machine */
    long tries;         /* how often it was started */
    long fails;         /* failures in a row; a long run resets the count */
    pid_t pid;          /* of srun or the program; 0: nothing runs */
    double begun, next; /* when it last started, and when it may start again; monotonic, in s */
    double asked;       /* when SIGTERM was sent; 0: not yet */
};

struct elastic {
    const struct command_line *line;
    const struct elastic_options *opt;
    char dir[PATH_MAX - 128]; /* folder of this run */
    struct own_folder folder; /* the same, held open in case others replace it */
    struct elastic_unit *units;
    long n;
    long ranks;    /* per unit */
    long min, max; /* units that must and may run */
    long wanted;   /* units that should run, without spares */
    long spares;
    bool local;
    bool done;  /* a rank has completed the training, so no unit is started any more */
    bool never; /* a rank reported that another try makes no sense */
    int signal; /* the signal that ends the run; 0: none */
};

/* Fill in the units and limits from the options and from Slurm's variables, and create the folder
 * of the run.  Returns -1 with 'err'.
 */
int elastic_plan (struct elastic *e, struct slurmdl_error *err);

/* Whether 'dir' is the folder of a run of dl elastic that belongs to this user. */
bool elastic_is_run (const char *dir);

/* Ask the run in 'dir' to use that many units.  SCALE_SAME: it was already asked for that many.
 * SCALE_ERROR: failed, with 'err'.
 */
enum elastic_scaling { SCALE_ERROR = -1, SCALE_ASKED, SCALE_SAME };
enum elastic_scaling elastic_scale (const char *dir, long units, struct slurmdl_error *err);
/* Mark the run as ended in its folder, which stays. */
void elastic_end (const struct elastic *e);

/* Remove the folder that elastic_plan() created, even if something else has its name now. */
void elastic_remove (struct elastic *e);
