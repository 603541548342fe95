/* SPDX-License-Identifier: Apache-2.0 */
/* The experiment file: what to run, over which space, with which searcher. */
#pragma once

#include <jansson.h>
#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/config/diagnostics.h"
#include "searcher/searcher.h"

/* One hyperparameter.  A constant has no dimension of the search. */
struct hparam {
    char *path;     /* "optimizer.lr" */
    int dim;        /* index in params, -1: constant */
    json_t *values; /* categorical: array; constant: the value; else NULL */
    struct origin origin;
    char **labels;       /* categorical: texts of the choices, NULL-ended */
    double *when_values; /* of its param */
    double preset;       /* its default, NaN: none */
    bool exponents;      /* its range was given by exponents */
    bool halves;         /* where the memory of a GPU is too small */
};

/* One or several booleans, as they stand in the file. */
struct bools {
    int n;
    bool value[OBJECTIVES_MAX];
};

/* How many checkpoints stay (launcher/worker/retention.h). */
struct gc_policy {
    int64_t experiment_best;
    int64_t trial_best;
    int64_t trial_latest;
};

/* What a trial's values of a metric come to (searcher.summary). */
enum summary {
    SUMMARY_LAST,
    SUMMARY_BEST,
    SUMMARY_MIN,
    SUMMARY_MAX,
    SUMMARY_MEAN, /* of the last ones */
};
enum { MEAN_MAX = 1000 };

/* Whom to tell of what (launcher/worker). */
struct notify_settings {
    char *command;
    char *mail;      /* an address */
    char *webhook;   /* a file with the URL, or "$NAME": a variable */
    char **on;       /* "end", "failure", NULL-ended; NULL: both */
    char **patterns; /* expressions for lines of a log */
    int64_t timeout; /* s, of each way */
};

/* In which software the trials run (launcher/code); NULL: not given. */
struct software {
    char *image;   /* of a container: a file, a folder or a reference */
    char *runtime; /* one of container_runtimes */
    char **binds;
    char **options; /* for the runtime */
    char **modules; /* to load */
    char *conda;    /* name or folder of an environment */
    char *venv;     /* folder */
    struct {
        struct origin image, modules, conda, venv;
    } origins;
    char **activated; /* all variables with modules, conda or venv, NULL-ended;
                         NULL: those of this process */
    bool by_srun;     /* srun itself starts the container (pyxis) */
};

/* Which members of a job begin again when they end (launcher/job/verdict.h). */
enum restart_policy {
    RESTART_ON_FAILURE, /* one that fails */
    RESTART_NEVER,      /* none: its failure is the job's */
    RESTART_ALWAYS,     /* one that ends, however it ended */
    RESTART_EXIT_CODE,  /* one that fails, by its exit status */
};

/* When a job has succeeded. */
enum success_policy {
    SUCCESS_DEFAULT,     /* the chief has; without one, the first worker */
    SUCCESS_CHIEF,       /* the chief has */
    SUCCESS_ALL_WORKERS, /* the chief has; without one, all workers */
    SUCCESS_ANY,         /* any worker has, or the chief */
};

/* Exit statuses, as of a shell, and whether a member that ends with one begins
 * again.
 */
struct exit_range {
    int first, last;
    bool again;
};

/* One role of a job. */
struct job_role {
    char *name;
    int64_t count;
    char *command; /* for the shell; NULL: the entrypoint */
    int64_t cpus;  /* of a member; 0: as resources says */
    int64_t gpus;  /* of a member */
    char *restart_policy;
    char **exit_codes;
    enum restart_policy restart;
    struct exit_range *ranges; /* ended by .last 0; NULL: those of the job */
};

/* The group "job": a search of one trial whose attempts are the job's starts. */
struct job_settings {
    bool is_given;
    char *restart_policy, *success_policy, *clean_up, *deadline_text;
    char **exit_codes;
    enum restart_policy restart;
    struct exit_range *ranges; /* NULL: exit_ranges */
    enum success_policy success;
    bool waits;      /* for the workers that still run when it has ended */
    int64_t backoff; /* -1: not given */
    double deadline; /* s that it may be active; 0: for ever */
    int64_t ttl;     /* s after its end until dl ls hides it; -1: never */
    bool is_suspended;
    struct job_role *roles;
    size_t nroles;
    char *plugin_roles; /* for --dl-roles, or NULL */
};

/* Whose the folder is in which an attempt runs. */
enum working_folder {
    WORK_ATTEMPT, /* its own */
    WORK_TRIAL,   /* its own, with the files of the attempt before */
    WORK_SHARED,  /* that of all trials */
};

struct experiment {
    char *file;     /* as given, for messages */
    char *dir;      /* folder in which the command runs */
    char *file_dir; /* of the experiment file, where 'dir' is its frozen copy;
                       else NULL */
    char *text;     /* what it says if it was edited, else NULL */
    char *name;
    char *description;
    char *entrypoint; /* a shell command, or NULL and ... */
    char **argv;      /* ... a command with its arguments */
    struct origin entrypoint_origin, metric_origin;
    char **patterns;    /* that find metrics in standard output, or in ... */
    char *metrics_file; /* ... this file of an attempt's folder */
    char *metrics_format;
    char **variables; /* NAME=VALUE, added to the command's environment */
    struct software software;

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
    char **summaries; /* NULL-ended, or NULL */
    enum summary summary[OBJECTIVES_MAX];
    int64_t mean_of_last;
    double goal;      /* of the first metric; NaN: none */
    char *warm_start; /* folder, relative to 'dir', of which ... */
    struct origin warm_start_origin;
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
    int64_t max_failed;          /* trials; -1: half of them */
    struct gc_policy policy;     /* checkpoint_policy */
    char **checkpoint_files;     /* checkpoint_policy.files, or NULL */
    struct log_policy *policies; /* of log_policies and built-in ones */
    size_t npolicies;
    struct notify_settings notify;
    int64_t workers;
    int64_t gpus;      /* of a trial, one rank for each; 0: 'slots' says it */
    int64_t slots;     /* of a trial, 0: 'node_gpus' and 'nodes' say it */
    int64_t node_gpus; /* GPUs of a trial on each of its nodes */
    int64_t cpus;      /* cores of a trial, or of each of its ranks */
    int64_t lanes;     /* trials side by side in one array task */
    int64_t nodes;     /* of a trial */
    int64_t ranks;     /* of a trial on each of its nodes */
    struct {
        bool nodes, node_gpus, ranks, length, smaller;
    } given; /* in the file or by --set */
    char *memory;
    char *max_memory;     /* with which a trial that ran out is tried again */
    int64_t memory_bytes; /* of 'memory', 0: not given, and ... */
    int64_t memory_most;  /* ... of 'max_memory' */
    char *partition;
    char *account;
    char *qos;
    char *time;
    char *framework; /* --dl=FRAMEWORK for the workers' steps */
    char *check;     /* --dl-check=LEVEL, the same; NULL: none */
    char *bind;      /* --dl-bind */
    char *nccl;      /* --dl-nccl */
    char *monitor;   /* --dl-monitor */
    char *debug;     /* --dl-debug */
    char **sbatch_args;
    int64_t lease;     /* s without a sign of life until a worker is dead */
    int64_t heartbeat; /* s between two signs of life */
    int64_t grace;     /* s that a trainer has to stop */

    struct job_settings job;

    char *working_folder;
    enum working_folder work;
    bool code_freeze, code_local;
    char *code_path;
    char **code_include, **code_exclude;

    /* Of a new experiment; borrowed, NULL: none. */
    const struct frozen_code *frozen_code;

    /* Of a fork (dl fork); the first log entry has it. */
    char *folder;          /* its folder's name is FOLDER-0001; NULL: NAME */
    char *source;          /* experiment, NULL: it is none, ... */
    long source_trial;     /* ... trial, 0: none, ... */
    int64_t source_length; /* ... and length of the checkpoint ... */
    char *source_file;     /* ... that is to be taken; NULL when it is there */
    char **source_files;   /* or paths of files and folders that a script has
                              left; NULL-ended, or NULL */
    char **source_shared;  /* and of those in {trial_dir} */
    uid_t source_owner;    /* of whom they may be (file_take_of()) */
};

/* Read the experiment file 'path', edit it if 'edit' is not NULL, and check it.
 * All problems are added to 'p'.
 *
 * Returns NULL on failure with errno EINVAL (see 'p'), ENOENT, ....
 */
struct edit;
struct experiment *experiment_read_edited (const char *path, const struct edit *edit,
                                           struct problems *p);

/* The same, with a text that was read from 'path'. */
struct experiment *experiment_read_text (const char *path, const char *text, size_t size,
                                         struct problems *p);
void experiment_destroy (struct experiment *e);

/* Parse a file in libconfig's syntax or, by its name, in YAML.  '*parts'
 * becomes how many files beside libconfig's own there were; NULL: it is an
 * experiment's own copy, where there may be none.
 */
int experiment_parse (config_t *cf, const char *path, int *parts, struct problems *p);

/* The folder of a file, free() it; of a pipe, the one where this process is.
 * NULL with errno: there is no such file, or its whole path cannot be found.
 */
char *file_folder (const char *path);
void file_folder_problem (struct problems *p, int e);

/* The group "environment". */
void experiment_read_environment (struct experiment *e, const config_setting_t *s,
                                  struct problems *p);
