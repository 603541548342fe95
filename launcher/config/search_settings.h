/* SPDX-License-Identifier: Apache-2.0 */
/* The group "searcher" of an experiment file. */
#pragma once

#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/diagnostics.h"
#include "searcher/searcher.h"

struct experiment;

struct search_settings {
    struct search_config config;
    int64_t seed; /* -1: draw one */
    char *searcher;
    char *sampler;
    char *mode;
    char *command;        /* for the searcher "custom" */
    bool length_is_given; /* in the file or by --set */
    char **constraints;
    char *constraint; /* all of them joined */
    double *points;   /* the rows of config.points */
    char *warm_start; /* experiment that config.known comes from, relative to 'dir' */
    struct origin warm_start_origin;
    struct search_known *known; /* storage of config.known */
    double *known_numbers;
    double max_hours;     /* from creation to stop; 0: no limit */
    double max_gpu_hours; /* 0: no limit */
};

/* Check the group "searcher", and complete e->search and e->metric. */
void search_check (struct experiment *e, config_t *cf, struct problems *p);

/* Without 'searcher.max_length' the length of a training is unknown: no step shows that it is
 * complete, or is too late to restore.
 */
bool experiment_knows_length (const struct experiment *e);

/* Most trials that the search can create; 0: unknown. */
long experiment_trials (const struct experiment *e);

/* Properties and needs of the experiment's searcher: the bits in searcher_kinds. */
int experiment_needs (const struct experiment *e);
