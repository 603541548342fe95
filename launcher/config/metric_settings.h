/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of an experiment: which are optimised, and where they come from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/config/diagnostics.h"
#include "searcher/searcher.h"

/* One or several booleans, as they stand in the file. */
struct bools {
    int n;
    bool value[OBJECTIVES_MAX];
};

/* What a trial's values of a metric come to (searcher.summary). */
enum summary {
    SUMMARY_LAST,
    SUMMARY_BEST,
    SUMMARY_MIN,
    SUMMARY_MAX,
    SUMMARY_MEAN, /* of the last ones */
};
enum { MEAN_MAX = 1000 };

struct metric_settings {
    char *name;   /* the first of ... */
    char **names; /* ... all, NULL-ended */
    size_t n;
    struct origin origin;
    struct bools smaller;
    bool smaller_is_given; /* in the file or by --set */
    char **summaries;      /* NULL-ended, or NULL */
    enum summary summary[OBJECTIVES_MAX];
    int64_t mean_of_last;
    double goal; /* of the first metric; NaN: none */

    char **patterns; /* that find metrics in standard output, or in ... */
    char *file;      /* ... this file of an attempt's folder */
    char *format;
};
