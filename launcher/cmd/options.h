/* SPDX-License-Identifier: Apache-2.0 */
/* Commands, their options and command lines, and their help. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sys/command_line.h"

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

/* More than a command has, and than resources.workers may be. */
enum { OPTIONS_MAX = 30, WORKERS_MAX = 1000000 };

/* What one wants with a command: the groups of `dl --help`. */
enum cmd_group {
    CMD_HIDDEN, /* not for users */
    CMD_START,
    CMD_LOOK,
    CMD_STEER,
    CMD_KEEP,
    CMD_CLUSTER,
};

/* A command; main() has the table of all, which a row without a name ends. */
struct cmd {
    enum cmd_group group;
    const char *name;
    const char *args;
    const char *help;
    const struct option_set *options;             /* NULL: it has none */
    int min_args, max_args;                       /* -1: any number */
    int (*run) (const struct command_line *line); /* returns an enum dl_exit */
    bool takes_program;                           /* what follows the first argument is for that */
    void (*words) (void);                         /* print what may follow its name, or NULL */
};

/* Parse what follows the command's name.  Returns 0; 1 if --help was given;
 * -1 after a line on stderr.  command_line_free() in any case.  The texts in
 * 'line' and its options are those of 'argv' and the environment.
 */
int command_line_parse (const struct cmd *cmd, int argc, char **argv, struct command_line *line);
void command_line_free (const struct cmd *cmd, struct command_line *line);

/* The options of a command; a row without a name ends them. */
const struct opt *command_rows (const struct cmd *cmd);

/* The commands in groups, and one command with its options. */
void help_all (const struct cmd *table);
void help_cmd (const struct cmd *cmd);

/* Words for a shell's completion of the words so far, which do not have the
 * program's name; 'described': each with a tab and what it is.
 */
void complete (const struct cmd *table, int argc, char **argv, bool described);
