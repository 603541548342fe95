/* SPDX-License-Identifier: Apache-2.0 */
/* dl check, dl doctor and dl env, and the parts of dl check that the plugin starts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct command_line;

/* Options of dl check. */
struct check_options {
    bool full;
    bool table;
    int64_t gpus; /* of a node; -1: not given */
    bool json;
};

/* Options of dl doctor. */
struct doctor_options {
    bool run;
    const char *root;    /* directory with a copy of a host's files */
    const char *config;  /* recorded output of scontrol show config */
    char **srun_options; /* of OPT_WORD, NULL-ended, or NULL */
    bool json;
};

/* Options of dl env. */
struct env_options {
    char **facts; /* of OPT_WORD, NULL-ended, or NULL */
    int64_t rank; /* -1: all */
    bool json;
};

/* Each command returns an exit status from launcher/sys/messages.h. */
int cmd_check (const struct command_line *line);
int cmd_check_rank (const struct command_line *line);
int cmd_gather (const struct command_line *line);
int cmd_doctor (const struct command_line *line);
int cmd_env (const struct command_line *line);

/* The file in an attempt's directory that lists bad nodes, one name per line. */
#define GATHER_NOTES "bad-nodes"
