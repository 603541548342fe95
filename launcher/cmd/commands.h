/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points and options of the commands about experiments, for main()'s table. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

/* Options of the commands that start workers. */
struct start_options {
    bool local, detach, dry_run, no_workers;
    int64_t workers; /* 0: use the experiment's setting */
    char **sets;     /* KEY=VALUE, NULL-ended, or NULL */
};

/* Options of dl run. */
struct run_options {
    struct start_options start;
};

/* Options of dl job. */
struct job_options {
    struct start_options start;
    const char *name;
    int64_t nodes, ranks; /* ranks per node; 0: not given */
    const char *framework;
};

/* Options of dl try. */
struct try_options {
    char **sets;    /* KEY=VALUE, NULL-ended, or NULL */
    int64_t length; /* 0: not given */
};

/* Options of dl preview. */
struct preview_options {
    char **sets;    /* KEY=VALUE, NULL-ended, or NULL */
    double seconds; /* per unit of length; 0: not given */
    bool json;
};

/* Options of dl fork. */
struct fork_options {
    struct start_options start;
    bool trust;
    const char *file;
    int64_t seeds; /* 0: continue one trial from a checkpoint */
};

/* Options of dl import. */
struct import_options {
    const char *output;
    const char *from;
    const char *entrypoint;
    bool coverage;
};

/* Options of dl worker. */
struct worker_options {
    bool trust;
    const char *slot;
};

/* Options of dl ls. */
struct ls_options {
    bool all;
    const char *label;
    bool json;
};

/* Options of dl show. */
struct show_options {
    int64_t trials; /* rows to print; 0: all */
    const char *columns;
    const char *where;
    const char *sort;
    bool csv;
    bool provenance;
    bool values;
    bool json;
};

/* Options of dl logs. */
struct logs_options {
    bool follow;
    int64_t lines;   /* number of last lines to print; -1: all */
    int64_t attempt; /* 0: the last one */
};

/* Options of dl wait. */
struct wait_options {
    double timeout; /* seconds; negative: no timeout */
};

/* Options of dl resume. */
struct resume_options {
    struct start_options start;
    bool trust;
    bool wait;
};

/* Options of dl retry. */
struct retry_options {
    struct start_options start;
    bool trust;
};

/* Options of dl continue. */
struct continue_options {
    struct start_options start;
    bool trust;
    int64_t trials; /* 0: unchanged */
    int64_t length; /* 0: unchanged */
};

/* Options of dl scale. */
struct scale_options {
    bool trust;
};

/* Options of dl label, dl archive and dl exclude. */
struct mark_options {
    bool undo;
};

/* Options of dl export. */
struct export_options {
    const char *format;
    const char *output;
    bool follow;
    double seconds; /* 0: not given */
    bool safe_csv;
};

/* Options of dl gc. */
struct gc_options {
    bool dry_run;
};

/* Options of dl reproduce. */
struct reproduce_options {
    bool trust;
    bool dry_run;
};

/* Options of dl rm. */
struct rm_options {
    bool force;
};

/* Options of dl log. */
struct log_options {
    int64_t step; /* -1: not given */
};

/* Options of dl watch. */
struct watch_options {
    double seconds; /* 0: not given */
};

/* Options of dl best. */
struct best_options {
    const char *export_dir;
    bool trust;
    bool json;
};

/* Options of dl failures. */
struct failures_options {
    int64_t lines; /* -1: not given */
    bool json;
};

/* Options of dl goodput. */
struct goodput_options {
    bool csv;
    bool json;
};

/* Options of dl compare. */
struct compare_options {
    bool json;
};

/* Options of dl plot. */
struct plot_options {
    const char *output;
    const char *terminal;
    int64_t trials; /* 0: not given */
};

/* Options of dl top. */
struct top_options {
    bool watch;
    double seconds; /* 0: not given */
    bool json;
};

/* Options of dl notebook. */
struct notebook_options {
    int64_t idle; /* minutes; -1: not given, 0: never */
    const char *jupyter;
    bool network;
};

/* Options of dl search-server. */
struct search_server_options {
    const char *searcher;
};

/* Each command returns an exit status from launcher/sys/messages.h. */
int cmd_run (const struct command_line *line);
int cmd_try (const struct command_line *line);
int cmd_preview (const struct command_line *line);
int cmd_ls (const struct command_line *line);
int cmd_show (const struct command_line *line);
int cmd_logs (const struct command_line *line);
int cmd_stop (const struct command_line *line);
int cmd_resume (const struct command_line *line);
int cmd_gc (const struct command_line *line);
int cmd_job (const struct command_line *line);
int cmd_diff (const struct command_line *line);
int cmd_reproduce (const struct command_line *line);
int cmd_export (const struct command_line *line);
int cmd_import (const struct command_line *line);
int cmd_pause (const struct command_line *line);
int cmd_kill (const struct command_line *line);
int cmd_continue (const struct command_line *line);
int cmd_retry (const struct command_line *line);
int cmd_fork (const struct command_line *line);
int cmd_wait (const struct command_line *line);
int cmd_archive (const struct command_line *line);
int cmd_label (const struct command_line *line);
int cmd_exclude (const struct command_line *line);
int cmd_rm (const struct command_line *line);
int cmd_log (const struct command_line *line);
int cmd_worker (const struct command_line *line);
int cmd_scale (const struct command_line *line);
int cmd_requeue (const struct command_line *line);
int cmd_attend (const struct command_line *line);
int cmd_watch (const struct command_line *line);
int cmd_plot (const struct command_line *line);
int cmd_compare (const struct command_line *line);
int cmd_best (const struct command_line *line);
int cmd_failures (const struct command_line *line);
int cmd_goodput (const struct command_line *line);
int cmd_top (const struct command_line *line);
int cmd_shell (const struct command_line *line);
int cmd_notebook (const struct command_line *line);
int cmd_tensorboard (const struct command_line *line);
int cmd_search_server (const struct command_line *line);

/* Print the kinds of plot that dl plot can draw, for shell completion. */
void plot_words (void);

/* Print the words that may follow 'dl notebook', for shell completion. */
void notebook_words (void);

/* Print what the search will cost, as dl run --dry-run does. */
struct experiment;
void print_preview (const struct experiment *e);
