/* SPDX-License-Identifier: Apache-2.0 */
/* The options of all commands: the only list of them. */
#pragma once

#include <stddef.h>

/* A WORD is kept as it was written, "--nodes=2". */
enum opt_type {
    OPT_DIR, /* command_line.dir */
    OPT_STRING,
    OPT_LIST,
    OPT_WORD,
    OPT_INT,
    OPT_COUNT, /* an integer that is not 0 */
    OPT_REAL,
    OPT_FLAG
};

/* Parsing, the environment, --help and completion are made from it, and
 * tests/launcher/options.t compares the manual with it.
 */
struct opt {
    const char *name;    /* NULL: the end of the rows */
    const char *arginfo; /* NULL: a flag */
    const char *env;     /* variable that gives a default, or NULL */
    const char *help;
    enum opt_type type;
    size_t offset; /* in the struct of the command */
    char letter;   /* a short name, 0: none */
    int initial;   /* value of a number that is not given */
};

/* The options of a command: the struct that they fill, and a row each. */
struct option_set {
    size_t size; /* of struct NAME_options; 0: there is none */
    const struct opt *rows;
};

/* 'sweep' is for the commands that only need to find an experiment, 'mark' for
 * archive, label and exclude.
 */
extern const struct option_set options_run;
extern const struct option_set options_preview;
extern const struct option_set options_try;
extern const struct option_set options_fork;
extern const struct option_set options_import;
extern const struct option_set options_flow;
extern const struct option_set options_elastic;
extern const struct option_set options_job;
extern const struct option_set options_shell;
extern const struct option_set options_notebook;
extern const struct option_set options_tensorboard;
extern const struct option_set options_search_server;
extern const struct option_set options_worker;
extern const struct option_set options_ls;
extern const struct option_set options_watch;
extern const struct option_set options_show;
extern const struct option_set options_best;
extern const struct option_set options_failures;
extern const struct option_set options_compare;
extern const struct option_set options_plot;
extern const struct option_set options_top;
extern const struct option_set options_logs;
extern const struct option_set options_wait;
extern const struct option_set options_monitor;
extern const struct option_set options_debug;
extern const struct option_set options_resume;
extern const struct option_set options_retry;
extern const struct option_set options_continue;
extern const struct option_set options_sweep;
extern const struct option_set options_scale;
extern const struct option_set options_mark;
extern const struct option_set options_export;
extern const struct option_set options_report;
extern const struct option_set options_ckpt;
extern const struct option_set options_model;
extern const struct option_set options_gc;
extern const struct option_set options_reproduce;
extern const struct option_set options_rm;
extern const struct option_set options_log;
extern const struct option_set options_check;
extern const struct option_set options_doctor;
extern const struct option_set options_env;
