/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a command's options and its arguments. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Values of the options. */
struct settings {
    char *dir;
    char *slot;
    char *searcher;
    char *format;
    char *output;
    char *only; /* of dl ckpt export: how names of tensors begin */
    char *file;
    char *entrypoint;
    char *label;
    char *columns;
    char *models; /* registry of dl model */
    char *where;
    char *sort;
    char *every;  /* how often a flow recurs */
    char **sets;  /* of --set, NULL-ended, or NULL */
    char **words; /* options of Slurm's, "--nodes=2", NULL-ended, or NULL */
    char *root;   /* of a recorded machine */
    char *config; /* recorded output of scontrol show config */
    bool local;
    bool dry_run;
    bool detach;
    bool wait;
    bool no_workers;
    bool json;
    bool csv;
    bool values;
    bool provenance;
    bool undo;
    bool force;
    bool trust;
    bool follow;
    bool all;
    bool full;
    bool table;
    bool run;
    bool summary;
    bool last;
    bool safe_csv;
    bool coverage;
    bool watch;
    bool network;
    int64_t rank;                   /* -1: all */
    int64_t workers;                /* 0: as the experiment says */
    int64_t attempt;                /* 0: the last */
    int64_t step;                   /* -1: not given */
    int64_t trials;                 /* rows of a table, 0: all */
    int64_t length;                 /* of a full training, 0: as it is */
    int64_t seeds;                  /* trials of one point, 0: one */
    int64_t lines;                  /* of a log, the last; -1: all */
    int64_t min, max, size, spares; /* nodes, 0: as there are */
    int64_t ranks;                  /* on each, 0: one */
    int64_t restarts;
    int64_t minutes; /* -1: not given */
    int64_t gpus;    /* of a node; -1: not given */
    double seconds;  /* for one unit of length; between files; 0: not given */
    double timeout;  /* s, < 0: none */
    char **args;     /* what is no option, NULL-ended */
    int nargs;
};
