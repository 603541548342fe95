/* SPDX-License-Identifier: Apache-2.0 */
/* State of the plugin in a process: values of its options, the site's policy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "runtime/rank/plugin_options.h"
#include "runtime/rank/variables.h"

/* Values come from the user, byte for byte, into a process of root: each is
 * short and from a list of words.
 */
enum { VALUE_MAX = 64, LIST_MAX = 255, PATH_LENGTH = 256, WHY_SIZE = 320 };

/* The site's decisions (policy.c). */
struct site_policy {
    char options[LIST_MAX + 1];                   /* "": all of them */
    char fallback[PLUGIN_OPTIONS][VALUE_MAX + 1]; /* for jobs that give none */
    char allow[PLUGIN_OPTIONS][LIST_MAX + 1];     /* "": all values */
    char deny[PLUGIN_OPTIONS][LIST_MAX + 1];
    long min[PLUGIN_OPTIONS], max[PLUGIN_OPTIONS]; /* 0: none */
    bool no_default[PLUGIN_OPTIONS];               /* an argument of the option is wrong */
    char nccl_dir[PATH_LENGTH];                    /* of site profiles */
    char command[PATH_LENGTH];                     /* dl */
    char monitor_dir[PATH_LENGTH];                 /* of what defaults keep; "": nothing */
    bool named;                                    /* 'default' is for a partition */
    char unused[1];
};

struct plugin_context {
    char given[PLUGIN_OPTIONS][VALUE_MAX + 1]; /* given by the user; "": not */
    char value[PLUGIN_OPTIONS][VALUE_MAX + 1]; /* the user's, or the site's default */
    int ac;                                    /* the arguments in plugstack.conf of this node */
    char **av;
    bool no_defaults; /* no default of the site applies to this step */
    struct site_policy policy;
};

/* The context of this process. */
struct plugin_context *context_own (void);

const char *option_value (int row);

/* Whether the option has a value other than off. */
bool option_is_on (int row);

/* Whether the user gave it; otherwise it is the site's default. */
bool option_is_given (int row);

/* Switch off a default. */
void option_switch_off (int row);

/* Folder of the site's profiles. */
const char *option_nccl_dir (void);

/* Folder for the files that a default of this row produces: the site's folder,
 * with a folder for each user.  Returns -1 if the user cannot write there.
 */
int option_folder (char *buf, size_t size);

/* Absolute path of the command dl that belongs to this plugin. */
const char *option_command (void);

enum { PLUGIN_BUILD = 20 };

/* Build ID of the plugin, or "unknown". */
void plugin_build (char build[PLUGIN_BUILD]);

/* Log one line; unprintable bytes from the user become '?'. */
void plugin_complain (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* The variables of the task whose task_init is running. */
struct variables variables_of (spank_t sp);

/* Copy the value of a variable of the task.  Returns -1, with "", if it is not
 * set or does not fit.
 */
int variable_text (spank_t sp, const char *name, char *buf, int size);

/* The value as a number; -1 if it is not set or no number. */
long variable_number (spank_t sp, const char *name);

/* Returns -1 and the reason if the option does not accept this value,
 * regardless of the site's policy.
 */
int option_check (int row, const char *value, char *why, size_t size);
