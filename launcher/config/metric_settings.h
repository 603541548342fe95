/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of an experiment: which ones to optimise, and where to read them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/config/diagnostics.h"
#include "searcher/searcher.h"

/* One or several booleans, as in the file. */
struct bools {
    int n;
    bool value[OBJECTIVES_MAX];
};

/* How to reduce a trial's values of a metric to one (searcher.summary). */
enum summary {
    SUMMARY_LAST,
    SUMMARY_BEST,
    SUMMARY_MIN,
    SUMMARY_MAX,
    SUMMARY_MEAN, /* of the last 'mean_of_last' values */
};
enum { MEAN_MAX = 1000 };

struct metric_settings {
    char *name;   /* the first metric */
    char **names; /* all of them, NULL-terminated */
    size_t n;
    bool is_assumed; /* a job may omit searcher.metric, and perhaps logs none */
    struct origin origin;
    struct bools smaller;
    bool smaller_is_given; /* in the file or by --set */
    char **summaries;      /* NULL-terminated, or NULL */
    enum summary summary[OBJECTIVES_MAX];
    int64_t mean_of_last;
    double goal; /* for the first metric; NaN: none */

    char **patterns; /* find metrics in 'file' or, if that is NULL, in standard output */
    char *file;      /* in the folder of the attempt */
    char *format;
};
