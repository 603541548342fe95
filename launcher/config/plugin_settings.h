/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the Slurm plugin that an experiment file can set. */
#pragma once

#include "runtime/rank/plugin_options.h"

struct experiment;

/* The value of each option; NULL: not given. */
struct plugin_settings {
    char *framework; /* --dl=FRAMEWORK, for the workers' steps */
    char *check;     /* --dl-check=LEVEL, for the workers' steps */
    char *bind;      /* --dl-bind */
    char *nccl;      /* --dl-nccl */
    char *monitor;   /* --dl-monitor */
    char *debug;     /* --dl-debug */
};

/* Call 'f' for each option that is set. */
void experiment_each_plugin_option (const struct experiment *e,
                                    void (*f) (enum plugin_option_id id, const char *key,
                                               const char *value, void *arg),
                                    void *arg);

/* Add the options to a command line, for example "--dl-bind=closest". */
void experiment_add_plugin_options (const struct experiment *e, char ***words);
