/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: subcommands, options, exit statuses. */
#ifndef LAUNCHER_CMD_OPTIONS_H
#define LAUNCHER_CMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/sweep/sweep.h"

/* Exit statuses; dl(1) lists this table. */
enum dl_exit {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* the experiment failed; there is something to change */
    EXIT_USAGE = 2,  /* bad option, argument or experiment file */
    EXIT_NOT_FOUND = 3,
    EXIT_STOPPED = 4,
    EXIT_DAMAGED = 5,
    EXIT_SLURM = 6,
    EXIT_IO = 7,
    EXIT_NO_WORKERS = 8,
    EXIT_BUSY = 9,      /* workers are at work */
    EXIT_TIMEOUT = 10,  /* dl wait --timeout */
    EXIT_PARKED = 75,   /* EX_TEMPFAIL: a worker with work left */
    EXIT_EXCLUDED = 76, /* the same, and it must not run on this machine */
    EXIT_BAD_NODE = 79, /* dl check: this node is bad */
};

struct exit_row {
    int status;
    const char *help;
};
extern const struct exit_row exit_table[];

/* Values of the options. */
struct settings {
    char *dir;
    char *slot;
    char *searcher;
    char *format;
    char *output;
    char *file;
    char *label;
    char **sets;  /* of --set, NULL-ended, or NULL */
    char **words; /* options of Slurm's, "--nodes=2", NULL-ended, or NULL */
    char *root;   /* of a recorded machine */
    char *config; /* recorded output of scontrol show config */
    bool local;
    bool dry_run;
    bool detach;
    bool no_workers;
    bool json;
    bool undo;
    bool force;
    bool follow;
    bool all;
    bool full;
    bool table;
    bool run;
    bool summary;
    bool last;
    int64_t rank;                   /* -1: all */
    int64_t workers;                /* 0: as the experiment says */
    int64_t attempt;                /* 0: the last */
    int64_t step;                   /* -1: not given */
    int64_t trials;                 /* rows of a table, 0: all */
    int64_t length;                 /* of a full training, 0: as it is */
    int64_t lines;                  /* of a log, the last; -1: all */
    int64_t min, max, size, spares; /* nodes, 0: as there are */
    int64_t ranks;                  /* on each, 0: one */
    int64_t restarts;
    double seconds; /* for one unit of length, 0: unknown */
    double timeout; /* s, < 0: none */
    char **args;    /* what is no option, NULL-ended */
    int nargs;
};

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

struct cmd {
    const char *name;
    const char *args;
    const char *help;
    int bit;
    int min_args, max_args;                 /* -1: any number */
    int (*run) (const struct settings *st); /* returns an enum dl_exit */
};
extern const struct cmd cmd_table[]; /* an empty help: not for users */

/* Parse what follows the subcommand.  Returns 0; 1 if --help was given; -1
 * after a line on stderr.  settings_free() in any case.
 */
int settings_parse (const struct cmd *cmd,
                    int argc,
                    char **argv,
                    struct settings *st);
void settings_free (struct settings *st);

void help_all (void);
void help_cmd (const struct cmd *cmd);
/* The words that may follow 'ckpt', a line each. */
void ckpt_words (void);
/* Words for a shell's completion of the words so far. */
void complete (int argc, char **argv);

/* The one way to speak: "dl: TEXT" on stderr. */
void complain (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* The exit status for an errno. */
int error_status (int e);

/* Print an error that a function gave; returns the exit status for errno. */
int fail (const struct slurmdl_error *err);

/* ---- experiments by name ---- */

/* Find the experiment that the user means: a folder, or its name under
 * --dir, or without a number the newest of that name; NULL means the newest
 * of all.  On failure says so and returns an exit status, else 0.
 */
int find_experiment (const struct settings *st,
                     const char *name,
                     char *dir,
                     size_t size);

/* The same, and open it. */
int open_experiment (const struct settings *st,
                     const char *name,
                     struct sweep **sweep);

/* Call 'f' for each experiment folder under 'root', by name. */
int each_experiment (const char *root,
                     int (*f) (const char *dir, void *arg),
                     void *arg);

/* Read an experiment file, edited if 'edit' is not NULL, and the earlier
 * experiment that it names.  On failure says so and returns an exit status,
 * else 0.
 */
struct edit;
int read_experiment (const char *path,
                     const struct edit *edit,
                     struct experiment **e);

/* The number of a trial that 'text' is; else says so and returns an exit
 * status.
 */
int parse_trial (const struct sweep *s, const char *text, long *n);

/* What dl makes in a folder that a group shares is the group's, too: adapt the
 * process's umask to 'dir'.
 */
void share_umask (const char *dir);

/* ---- views ---- */

/* What the search will cost; 'seconds' for a unit of length, 0: unknown. */
void print_preview (const struct experiment *e, double seconds);
/* Print the table of trials, the best first: 'max' rows, 0: all. */
int print_trials (const struct sweep *s, long max, bool json);
/* A line for each machine that is excluded, with the reason. */
void print_excluded (const struct sweep *s);
/* "name=value name=value" of a trial; the caller frees it. */
char *trial_text (const struct sweep *s, const struct trial *t);
/* "2m13s" */
void duration_text (char *buf, size_t size, double seconds);
/* "2026-11-21 10:55" */
void time_text (char *buf, size_t size, double when);
/* "best loss 0.1: trial 3 at length 9", nothing if there is no result; and
 * which metrics never had a number.
 */
void print_best (const struct sweep *s);
/* What is known of the experiment beside its trials (overview.c). */
void print_overview (const struct sweep *s);

/* ---- executors and following ---- */

struct executor;
struct executor_ops {
    const char *name;
    /* Start 'workers' workers, besides those that it has started before.
     * Fewer are no failure: 'granted' says how many there are, 'note' why.
     */
    int (*start) (struct executor *x, struct slurmdl_error *err);
    /* 1: there are workers or may be, 0: none is left.  Fills x->note. */
    int (*tick) (struct executor *x);
    /* The user leaves: end what must not go on without dl. */
    void (*leave) (struct executor *x);
    void (*close) (struct executor *x);
};
struct executor {
    const struct executor_ops *ops;
    struct sweep *sweep;
    char dl[4096]; /* this program */
    long workers;
    long granted;
    char note[512]; /* for the user, e.g. why nothing runs yet */
    bool excluded;  /* workers ended because their machine is */
    bool refused;   /* no worker began, and none will: the experiment asks for
                     * what there is not */
    /* slurm */
    char job[1024];  /* "12,13" */
    size_t nsubmits; /* of the sweep's that are in it */
    double asked;    /* last squeue */
    /* local */
    struct local_worker *pool;
    long npool;
    long wanted; /* by `dl scale`, as far as it was obeyed */
    struct devices *devices;
};
extern const struct executor_ops executor_slurm, executor_local;

int executor_open (struct executor *x,
                   struct sweep *sweep,
                   const struct settings *st,
                   struct slurmdl_error *err);

/* Whether this machine has what a trial needs. */
int local_check (const struct experiment *e, struct slurmdl_error *err);

/* Array tasks for so many workers. */
long slurm_tasks (const struct experiment *e, long workers);

/* "n1,n2": the machines that are excluded, "" if there is none. */
void slurm_excluded (const struct sweep *s, char *buf, size_t size);

/* Write the script of the array tasks (script.c). */
int script_write (const struct executor *x,
                  const char *path,
                  struct slurmdl_error *err);

/* ---- the allocation that a worker is in (place.c) ---- */

/* Seconds of a time as Slurm writes it, "1-02:03:04"; 0: none, or no limit. */
double slurm_seconds (const char *text);

/* Fill in 'place', whose slot is written to 'slot'; and make the worker see
 * only its own GPUs, if it has others of its step beside it.
 */
struct worker_place;
void place_find (struct worker_place *place,
                 const struct experiment *e,
                 const struct settings *st,
                 char *slot,
                 size_t size);

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

/* Remove its folder, with all that is in it. */
int remove_experiment (const char *dir, struct slurmdl_error *err);

/* ---- subcommands, a file each ---- */
int cmd_run (const struct settings *st);
int cmd_preview (const struct settings *st);
int cmd_ls (const struct settings *st);
int cmd_show (const struct settings *st);
int cmd_logs (const struct settings *st);
int cmd_stop (const struct settings *st);
int cmd_resume (const struct settings *st);
int cmd_gc (const struct settings *st);
int cmd_export (const struct settings *st);
int cmd_pause (const struct settings *st);
int cmd_kill (const struct settings *st);
int cmd_continue (const struct settings *st);
int cmd_retry (const struct settings *st);
int cmd_fork (const struct settings *st);
int cmd_wait (const struct settings *st);
int cmd_archive (const struct settings *st);
int cmd_label (const struct settings *st);
int cmd_exclude (const struct settings *st);
int cmd_rm (const struct settings *st);
int cmd_log (const struct settings *st);
int cmd_worker (const struct settings *st);
int cmd_scale (const struct settings *st);
int cmd_again (const struct settings *st);
int cmd_rank (const struct settings *st);
int cmd_search_server (const struct settings *st);
int cmd_elastic (const struct settings *st);
int cmd_horovod (const struct settings *st);
int cmd_check (const struct settings *st);
int cmd_gather (const struct settings *st);
int cmd_check_rank (const struct settings *st);
int cmd_env (const struct settings *st);
int cmd_doctor (const struct settings *st);
int cmd_monitor (const struct settings *st);
int cmd_sample (const struct settings *st);
int cmd_debug (const struct settings *st);
int cmd_watch (const struct settings *st);
int cmd_ckpt (const struct settings *st);

#endif
