/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the options of the Slurm plugin. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The plugin registers them with srun, sbatch and salloc; `dl env` accepts some of them. */

/* Text in dl.so, followed by the number of the Slurm release for which it was built: 0x160508 is
 * 22.05.8.
 */
#define PLUGIN_RELEASE "dl.so of slurm-dl, built for Slurm release "

enum plugin_option_id {
    PLUGIN_FRAMEWORK,
    PLUGIN_ROLES,
    PLUGIN_BIND,
    PLUGIN_NCCL,
    PLUGIN_CHECK,
    PLUGIN_MONITOR,
    PLUGIN_DEBUG,
    PLUGIN_OPTIONS
};

struct plugin_option {
    const char *name; /* without "--" */
    const char *arginfo;
    const char *help;
    const char *const *words; /* the words that it accepts, ended by NULL */
    /* Returns -1 and the reason if the value is invalid; called after the check of 'words', if any.
     */
    int (*check) (const char *value, char *why, size_t size);
    bool list;        /* several words, separated by commas */
    const char *bare; /* the value if none is given; NULL: a value is required */
};
extern const struct plugin_option plugin_options[PLUGIN_OPTIONS];

/* Whether the value is valid at some site: returns 0, or -1 with the reason in 'why'.  Only a site
 * knows which network profiles exist.
 */
int plugin_option_check (enum plugin_option_id id, const char *value, char *why, size_t size);

/* The value of --dl-monitor. */
struct sample_options {
    long seconds; /* between samples */
    long idle;    /* report a GPU that is idle for this many minutes; 0: never */
    bool parks;   /* end the step if all its GPUs are idle */
};

/* Read "SECONDS", "idle:MINUTES[,warn|park]", or both with a comma.  Returns 0, or -1. */
int sample_options_parse (const char *value, struct sample_options *s);

/* The value of --dl-debug. */
struct hang_options {
    long seconds; /* without progress */
    bool kill;    /* end the step then */
};

/* Read "hang:SECONDS[,kill]".  Returns 0, or -1. */
int hang_options_parse (const char *value, struct hang_options *h);
