/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: subcommands, options, exit statuses. */
#ifndef LAUNCHER_CMD_OPTIONS_H
#define LAUNCHER_CMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/executor/executor.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"
#include "launcher/sys/settings.h"

enum cmd_bit {
    CMD_RUN = 1 << 0,
    CMD_LS = 1 << 1,
    CMD_SHOW = 1 << 2,
    CMD_LOGS = 1 << 3,
    CMD_STOP = 1 << 4,
    CMD_RESUME = 1 << 5,
    CMD_LOG = 1 << 6,
    CMD_WORKER = 1 << 7,
    CMD_SEARCH = 1 << 8,
    CMD_PREVIEW = 1 << 9,
    CMD_GC = 1 << 10,
    CMD_EXPORT = 1 << 11,
    CMD_CHECK = 1 << 12,
    CMD_PAUSE = 1 << 13,
    CMD_KILL = 1 << 14,
    CMD_CONTINUE = 1 << 15,
    CMD_RETRY = 1 << 16,
    CMD_FORK = 1 << 17,
    CMD_WAIT = 1 << 18,
    CMD_ARCHIVE = 1 << 19,
    CMD_LABEL = 1 << 20,
    CMD_EXCLUDE = 1 << 21,
    CMD_RM = 1 << 22,
    CMD_SCALE = 1 << 23,
    CMD_CKPT = 1 << 24,
    CMD_ELASTIC = 1 << 25,
    CMD_HOROVOD = 1 << 26,
    CMD_MONITOR = 1 << 27,
    CMD_DEBUG = 1 << 28,
    CMD_ENV = 1 << 29,
    CMD_DOCTOR = 1 << 30,
    CMD_STARTS = CMD_RUN | CMD_RESUME | CMD_CONTINUE | CMD_RETRY | CMD_FORK,
    CMD_SWEEPS = CMD_STARTS | CMD_LS | CMD_SHOW | CMD_LOGS | CMD_STOP
                 | CMD_PAUSE | CMD_KILL | CMD_WAIT | CMD_ARCHIVE | CMD_LABEL
                 | CMD_EXCLUDE | CMD_RM | CMD_GC | CMD_EXPORT | CMD_SCALE
                 | CMD_WORKER,
};

/* A WORD is kept as it was written, "--nodes=2". */
enum opt_type {
    OPT_STRING,
    OPT_LIST,
    OPT_WORD,
    OPT_INT,
    OPT_COUNT, /* an integer that is not 0 */
    OPT_REAL,
    OPT_FLAG
};

/* As many as resources.workers may be. */
enum { WORKERS_MAX = 1000000 };

/* The only list of options: getopt, the environment, --help and completion
 * are made from it, and tests/launcher/options.t compares dl(1) with it.
 */
struct opt {
    const char *name;
    const char *arginfo; /* NULL: a flag */
    const char *env;     /* variable that gives a default, or NULL */
    const char *help;
    enum opt_type type;
    size_t offset; /* in struct settings */
    int cmds;      /* of enum cmd_bit */
};
extern const struct opt opt_table[];

/* A subcommand; main() has the table of all, which a row without a name ends.
 */
struct cmd {
    const char *name;
    const char *args;
    const char *help; /* "": not for users */
    int bit;
    int min_args, max_args;                 /* -1: any number */
    int (*run) (const struct settings *st); /* returns an enum dl_exit */
    void (*words) (void); /* print what may follow its name, or NULL */
};

/* Parse what follows the subcommand.  Returns 0; 1 if --help was given; -1
 * after a line on stderr.  settings_free() in any case.
 */
int settings_parse (const struct cmd *cmd,
                    int argc,
                    char **argv,
                    struct settings *st);
void settings_free (struct settings *st);

void help_all (const struct cmd *table);
void help_cmd (const struct cmd *cmd);
/* Words for a shell's completion of the words so far. */
void complete (const struct cmd *table, int argc, char **argv);

/* ---- views ---- */

/* What the search will cost; 'seconds' for a unit of length, 0: unknown. */
void print_preview (const struct experiment *e, double seconds);
/* Print the table of trials, the best first: 'max' rows, 0: all. */
int print_trials (const struct sweep *s, long max, bool json);
/* A line for each machine that is excluded, with the reason. */
void print_excluded (const struct sweep *s);
/* "best loss 0.1: trial 3 at length 9", nothing if there is no result; and
 * which metrics never had a number.
 */
void print_best (const struct sweep *s);
/* What is known of the experiment beside its trials (overview.c). */
void print_overview (const struct sweep *s);

/* ---- following ---- */

/* Show progress until the sweep ends, is stopped, or has no workers. */
int follow (struct sweep *s, struct executor *x);
/* ^C and SIGTERM stop the workers that follow() will find, from now on. */
void follow_signals (void);

/* Start workers and follow them, as the settings say. */
int start_workers (struct sweep *s, const struct settings *st);

/* Make a new experiment of 'e', which is taken, and start its workers. */
int run_new (struct experiment *e, const struct settings *st);

/* The exit status that says how an experiment that does not run ended. */
int state_status (enum sweep_state state);

/* Kill an experiment, and cancel its jobs, before it is removed. */
int kill_experiment (struct sweep *s);

#endif
