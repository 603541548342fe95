/* SPDX-License-Identifier: Apache-2.0 */
/* The group "searcher" of an experiment file. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"
#include "searcher/searcher.h"

struct experiment;

struct search_settings {
    struct search_config config;
    int64_t seed; /* -1: to be drawn */
    char *searcher;
    char *sampler;
    char *mode;
    char *command;        /* of the searcher "custom" */
    bool length_is_given; /* in the file or by --set */
    char **constraints;
    char *constraint; /* all of them in one */
    double *points;   /* the rows of config.points */
    char *warm_start; /* folder, relative to 'dir', of which ... */
    struct origin warm_start_origin;
    struct search_known *known; /* ... config.known comes */
    double *known_numbers;
    double max_hours;     /* from the creation to the stop, 0: no limit */
    double max_gpu_hours; /* 0: no limit */
};

/* Check the group "searcher" and finish e->search and e->metric. */
void search_check (struct experiment *e, config_t *cf, struct problems *p);

/* Number of trials that the search may make, 0 if unknown. */
long experiment_trials (const struct experiment *e);

/* What its searcher is and needs (the bits of searcher_kinds). */
int experiment_needs (const struct experiment *e);
