/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that show experiments and jobs in the terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

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

/* Each returns an exit status of launcher/sys/say.h. */
int cmd_watch (const struct command_line *line);
int cmd_plot (const struct command_line *line);
int cmd_compare (const struct command_line *line);
int cmd_best (const struct command_line *line);
int cmd_failures (const struct command_line *line);
int cmd_top (const struct command_line *line);

/* Print what dl plot can draw, for completion. */
void plot_words (void);
