/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: their options, command lines, help and completion. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sys/command_line.h"

enum opt_type {
    OPT_DIR, /* command_line.dir */
    OPT_STRING,
    OPT_LIST,
    OPT_WORD, /* kept as the user wrote it, "--nodes=2" */
    OPT_INT,
    OPT_COUNT, /* an integer that is not 0 */
    OPT_REAL,
    OPT_FLAG
};

/* An option.  Parsing, environment defaults, --help and completion all use this
 * table, and tests/launcher/options.t checks that the manual agrees with it.
 */
struct opt {
    const char *name;    /* NULL: the end of the rows */
    const char *arginfo; /* placeholder of the argument; NULL for a flag */
    const char *env;     /* environment variable with the default, or NULL */
    const char *help;
    enum opt_type type;
    size_t offset; /* in the command's struct NAME_options */
    char letter;   /* short option, or 0 */
    int initial;   /* default of a number */
};

/* The options of a command and the size of the struct that they fill. */
struct option_set {
    size_t size; /* of struct NAME_options; 0: there is none */
    const struct opt *rows;
};

/* Commands that only need to find an experiment share options_sweep; archive, label
 * and exclude share options_mark.
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
extern const struct option_set options_goodput;
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

/* Upper limits for the options of a command and for resources.workers. */
enum { OPTIONS_MAX = 30, WORKERS_MAX = 1000000 };

/* Groups of commands in `dl --help`. */
enum cmd_group {
    CMD_HIDDEN, /* not for users */
    CMD_START,
    CMD_LOOK,
    CMD_STEER,
    CMD_KEEP,
    CMD_CLUSTER,
};

/* A command.  The table in main.c ends with a row without a name. */
struct cmd {
    enum cmd_group group;
    const char *name;
    const char *args;
    const char *help;
    const struct option_set *options;             /* NULL: it has none */
    int min_args, max_args;                       /* -1: any number */
    int (*run) (const struct command_line *line); /* returns an enum dl_exit */
    bool takes_program;   /* words after the first argument belong to that program */
    void (*words) (void); /* print the words that may follow the name, or NULL */
};

enum parsed_line {
    LINE_INVALID, /* an error was printed */
    LINE_HELP,    /* --help was given */
    LINE_PARSED,
};

/* Parse the words after the command's name.  Call command_line_free() in every case.
 * Strings in 'line' and its options point into 'argv' and the environment.
 */
enum parsed_line command_line_parse (const struct cmd *cmd, int argc, char **argv,
                                     struct command_line *line);
void command_line_free (const struct cmd *cmd, struct command_line *line);

/* Return the options of a command, ended by a row without a name. */
const struct opt *command_rows (const struct cmd *cmd);

/* Print the help of all commands by group, and of one command with its options. */
void help_all (const struct cmd *table);
void help_cmd (const struct cmd *cmd);

/* Print the possible completions of the last word.  'argv' excludes the program's
 * name.  If 'described', a tab and a description follow each word.
 */
void complete (const struct cmd *table, int argc, char **argv, bool described);
