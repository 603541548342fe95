/* SPDX-License-Identifier: Apache-2.0 */
/* State of the plugin in a process: its option values and the site's policy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "runtime/rank/plugin_options.h"
#include "runtime/rank/variables.h"

/* The user controls these values byte for byte, and a root process reads them.  So
 * each is short and comes from a list of words.
 */
enum { VALUE_MAX = 64, LIST_MAX = 255, PATH_LENGTH = 256, WHY_SIZE = 320 };

/* The site's decisions (policy.c). */
struct site_policy {
    char options[LIST_MAX + 1];                   /* "": all of them */
    char fallback[PLUGIN_OPTIONS][VALUE_MAX + 1]; /* defaults for jobs without the option */
    char allow[PLUGIN_OPTIONS][LIST_MAX + 1];     /* "": all values */
    char deny[PLUGIN_OPTIONS][LIST_MAX + 1];
    long min[PLUGIN_OPTIONS], max[PLUGIN_OPTIONS]; /* 0: none */
    bool no_default[PLUGIN_OPTIONS];               /* an argument for the option is invalid */
    char nccl_dir[PATH_LENGTH];                    /* folder of site profiles */
    char command[PATH_LENGTH];                     /* path of dl */
    char monitor_dir[PATH_LENGTH];                 /* folder for the output of defaults; "": none */
    bool named;                                    /* 'default' applies to a partition */
    char unused[1];
};

struct plugin_context {
    char given[PLUGIN_OPTIONS][VALUE_MAX + 1]; /* given by the user, or "" */
    char value[PLUGIN_OPTIONS][VALUE_MAX + 1]; /* the user's, or the site's default */
    int ac;                                    /* arguments in this node's plugstack.conf */
    char **av;
    bool no_defaults; /* the site's defaults do not apply to this step */
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

/* Set 'buf' to the folder for files that defaults produce: a subfolder for this
 * user in the site's folder.  Returns -1 if the user cannot write there.
 */
int option_folder (char *buf, size_t size);

/* Absolute path of the command dl that belongs to this plugin. */
const char *option_command (void);

enum { PLUGIN_BUILD = 20 };

/* Build ID of the plugin, or "unknown". */
void plugin_build (char build[PLUGIN_BUILD]);

/* Log one line; unprintable bytes from the user become '?'. */
void plugin_complain (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* The variables of the task that is in task_init. */
struct variables variables_of (spank_t sp);

/* Copy the value of a variable of the task to 'buf'.  Returns -1, with "" in 'buf',
 * if it is not set or does not fit.
 */
int variable_text (spank_t sp, const char *name, char *buf, int size);

/* The value as a number, or -1 if it is not set or not a number. */
long variable_number (spank_t sp, const char *name);

/* Returns -1 and the reason if the option does not accept this value,
 * regardless of the site's policy.
 */
int option_check (int row, const char *value, char *why, size_t size);
