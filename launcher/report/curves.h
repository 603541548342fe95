/* SPDX-License-Identifier: Apache-2.0 */
/* Read, thin and pack the learning curves that trials logged. */
#pragma once

#include "launcher/report/experiments.h"
#include "launcher/report/report_text.h"
#include "launcher/sweep/metrics.h"

/* One logged value.  The points of a trial keep the order of its log. */
struct curve_point {
    int64_t step;
    double value;
    size_t name;
};

struct trial_curves {
    struct curve_point *list;
    size_t n;
};

struct curves {
    struct trial_curves *trials; /* one for each trial of the report */
    long n;
    struct words names;          /* metrics of the search come first */
    size_t nshown;               /* number of names that fit in the report */
    struct slurmdl_error damage; /* why the first damaged file could not be read, or "" */
};

/* Read the metrics of all trials.  Files that cannot be read are skipped and noted in
 * 'damage'.  'old' caches what earlier calls read, one struct rows per experiment; it
 * may be NULL.
 */
void curves_read (struct curves *c, const struct report *r, struct rows *old);
void curves_free (struct curves *c);

/* Return the curves in the format that the page's script reads (doc/formats.md). */
json_t *curves_json (const struct curves *c, const struct report *r);

/* Select the points of one metric of a trial that are worth drawing, at most 'max',
 * which must be at least 8.  Returns how many.
 */
size_t curve_thin (const struct trial_curves *t, size_t name, size_t max, struct curve_point *to);
