/* SPDX-License-Identifier: Apache-2.0 */
/* The experiment file: what to run, over which space, with which searcher. */
#ifndef LAUNCHER_CONFIG_EXPERIMENT_H
#define LAUNCHER_CONFIG_EXPERIMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/word.h"
#include "runtime/slurmdl.h"
#include "searcher/searcher.h"

/* One hyperparameter.  A constant has no dimension of the search. */
struct hparam {
    char *path;     /* "optimizer.lr" */
    int dim;        /* index in params, -1: constant */
    json_t *values; /* categorical: array; constant: the value; else NULL */
    int line;       /* in the file */
    char **labels;  /* categorical: texts of the choices, NULL-ended */
    double *when_values; /* of its param */
    double preset;       /* its default, NaN: none */
};

/* One or several booleans, as they stand in the file. */
struct bools {
    int n;
    bool value[OBJECTIVES_MAX];
};

/* How many checkpoints stay (launcher/retention/checkpoints.h). */
struct gc_policy {
    int64_t experiment_best;
    int64_t trial_best;
    int64_t trial_latest;
};

struct experiment {
    char *file; /* as given, for messages */
    char *dir;  /* folder in which the command runs */
    char *text; /* what it says if it was edited, else NULL */
    char *name;
    char *description;
    char *entrypoint; /* a shell command, or NULL and ... */
    char **argv;      /* ... a command with its arguments */
    char **patterns;  /* that find metrics in standard output */
    char **variables; /* NAME=VALUE, added to the command's environment */

    struct search_config search;
    char *searcher_name;
    char *sampler;
    char *mode;
    char *metric;   /* the first of ... */
    char **metrics; /* ... all, NULL-ended */
    size_t nmetrics;
    struct bools smaller;
    char **constraints;
    char *constraint; /* all of them in one */
    double *points;   /* the rows of search.points */
    char *warm_start; /* folder, relative to 'dir', of which ... */
    int warm_line;
    struct search_known *known; /* ... search.known comes */
    double *known_numbers;
    char *command;        /* of the searcher "custom" */
    double max_hours;     /* from the creation to the stop, 0: no limit */
    double max_gpu_hours; /* 0: no limit */

    struct hparam *hparams; /* sorted by path */
    size_t nhparams;
    struct param *params; /* the dimensions, in the same order */
    size_t nparams;

    int64_t seed;
    int64_t max_restarts;
    struct gc_policy policy; /* checkpoint_policy */
    struct policy *policies; /* of log_policies and built-in ones */
    size_t npolicies;
    int64_t workers;
    int64_t slots; /* GPUs of a trial on each of its nodes */
    int64_t cpus;  /* cores of a trial, or of each of its ranks */
    int64_t lanes; /* trials side by side in one array task */
    int64_t nodes; /* of a trial */
    int64_t ranks; /* of a trial on each of its nodes */
    char *memory;
    char *partition;
    char *account;
    char *qos;
    char *time;
    char *framework; /* --dl=FRAMEWORK for the workers' steps */
    char *check;     /* --dl-check=LEVEL, the same; NULL: none */
    char **sbatch_args;
    int64_t lease;     /* s without a sign of life until a worker is dead */
    int64_t heartbeat; /* s between two signs of life */
    int64_t grace;     /* s that a trainer has to stop */

    /* Of a fork (dl fork); the first log entry has it. */
    char *source;          /* experiment, NULL: it is none, ... */
    long source_trial;     /* ... trial, 0: none, ... */
    int64_t source_length; /* ... and length of the checkpoint ... */
    char *source_file;     /* ... that is to be taken; NULL when it is there */
};

/* ---- the keys ---- */

enum key_type {
    KEY_STRING,
    KEY_INT,
    KEY_FLOAT,
    KEY_BOOL,
    KEY_BOOLS,  /* a boolean or a list of them */
    KEY_LIST,   /* a string or a list of strings */
    KEY_TEXT,   /* a string that is kept as a shell command, or a list of
                   arguments */
    KEY_GROUPS, /* a list of groups, which a function of its own reads */
};

struct key {
    const char *path; /* "searcher.metric" */
    enum key_type type;
    size_t offset;      /* in struct experiment */
    double min, max;    /* of a number */
    const char *byname; /* the default, NULL: none, "!": must be given */
    const char *help;
};

/* All keys but those under "hyperparameters" and "environment", which the
 * user names; ended by a row whose path is NULL.
 */
extern const struct key experiment_keys[];

/* ---- reading ---- */

/* What is wrong, a line each: "exp.conf:12: unknown key 'sercher' ...". */
struct problems {
    char *text;
    size_t size;
    FILE *stream;
    int count;
    char *const *sets; /* of --set: lines may stand for them (edit.c) */
    char **about;      /* keys and groups that have a line, NULL-ended */
};

int problems_open (struct problems *p);
void problems_close (struct problems *p); /* p->text stays until freed */
void problem (struct problems *p, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/* Note that a problem is about a key or group, which was misspelt, say; and
 * whether one is about the key or a group that it is in: that the key is
 * missing would then be a second line about one mistake.
 */
void problem_about (struct problems *p, const char *key);
bool problem_is_about (const struct problems *p, const char *key);

/* Read and check the experiment file 'path'.  All problems are added to 'p'.
 *
 * Returns NULL on failure with errno EINVAL (see 'p'), ENOENT, ....
 */
struct experiment *experiment_read (const char *path, struct problems *p);

/* The same, with the file edited before it is checked. */
struct edit;
struct experiment *experiment_read_edited (const char *path,
                                           const struct edit *edit,
                                           struct problems *p);
void experiment_destroy (struct experiment *e);

/* Whether a trial is several processes that Slurm starts as a step. */
bool experiment_has_ranks (const struct experiment *e);

/* GPUs of a trial on all of its nodes. */
int64_t experiment_gpus (const struct experiment *e);

/* Number of trials that the search may make, 0 if unknown. */
long experiment_trials (const struct experiment *e);

/* What its searcher is and needs (the bits of searcher_kinds). */
int experiment_needs (const struct experiment *e);

/* ---- an earlier experiment ---- */

/* Read the finished trials of the experiment 'warm_start' whose points lie in
 * this space into search.known; does nothing without it.  experiment_read()
 * does not, because the other folder need not stay: the first log entry has a
 * copy.  Returns -1 after a problem.
 */
int warm_start (struct experiment *e, struct problems *p);

/* search.known for that log entry, and back.  NULL if there is none. */
json_t *known_json (const struct experiment *e);
int known_read (struct experiment *e, const json_t *known);

/* ---- points ---- */

/* The hyperparameters at point 'x' as a (nested) JSON object, without those
 * that are not active there.
 */
json_t *hparams_json (const struct experiment *e, const double *x);

/* The value of the hyperparameter 'path' in such an object; NULL if none. */
const json_t *hparams_value (const json_t *hparams, const char *path);

/* The value of the hyperparameter 'path' in such an object as text: strings
 * bare, all else as JSON.  The caller frees it; NULL if there is none.
 */
char *hparams_text (const json_t *hparams, const char *path);

/* Replace each {name} in 'text' by the hyperparameter of that name (by nothing
 * if it is not active), or by one of {length} {trial} {repeat} {seed}
 * {attempt_dir}.  'quote' for the shell.
 */
char *hparams_expand (const char *text,
                      const json_t *hparams,
                      const json_t *builtins,
                      bool quote);

/* Find the first {name} in 'text' that is neither a hyperparameter nor a
 * built-in; its name is written to buf.  Returns 1 if there is one, else 0.
 */
int hparams_unknown (const struct experiment *e,
                     const char *text,
                     char *buf,
                     size_t size);

/* "DL_HP_optimizer_lr" for "optimizer.lr". */
void hparams_variable (char *buf, size_t size, const char *path);

#endif
