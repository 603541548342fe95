/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the Slurm plugin: the one table of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The plugin registers them with srun, sbatch and salloc; `dl env` takes some,
 * too.
 */

/* What dl.so says of itself, before the number of the Slurm release for which
 * it was built: 0x160508 is 22.05.8.
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
    const char *const *words; /* the values that it takes, ended by NULL */
    /* -1 and why if it does not take the value, of these words if there are
     * some */
    int (*check) (const char *value, char *why, size_t size);
    bool list;        /* several words, with commas */
    const char *bare; /* the value if none is given; NULL: one must be */
};
extern const struct plugin_option plugin_options[PLUGIN_OPTIONS];

/* Whether the option takes the value at any site.  Returns 0, or -1 with the
 * reason in 'why'.  Whether there is a network profile of that name only its
 * site can say.
 */
int plugin_option_check (enum plugin_option_id id, const char *value, char *why, size_t size);

/* The value of --dl-monitor. */
struct sample_options {
    long seconds; /* between samples */
    long idle;    /* report a GPU without work for so many minutes; 0: never */
    bool parks;   /* end the step if that holds for all its GPUs */
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
