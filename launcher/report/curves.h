/* SPDX-License-Identifier: Apache-2.0 */
/* Learning curves: what trials have logged, thinned and packed. */
#pragma once

#include "launcher/report/experiments.h"
#include "launcher/report/report_text.h"
#include "launcher/sweep/metrics.h"

/* One logged value; the points of a trial stand in the order of its log. */
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
    struct trial_curves *trials; /* one for each of the report's */
    long n;
    struct words names;          /* the metrics of the search first */
    size_t nshown;               /* names that the report has room for */
    struct slurmdl_error damage; /* why the first file could not be read; "": all could */
};

/* Read the metrics of all trials; a file that cannot be read is passed over,
 * and 'damage' says so.
 * 'old' (one struct rows an experiment, or NULL) takes and gives what was read
 * the last time.
 */
void curves_read (struct curves *c, const struct report *r, struct rows *old);
void curves_free (struct curves *c);

/* The curves as the page's script reads them: doc/formats.md. */
json_t *curves_json (const struct curves *c, const struct report *r);

/* The points of a trial that are worth drawing, of one name: at most 'max'
 * (8 or more).  Returns how many.
 */
size_t curve_thin (const struct trial_curves *t, size_t name, size_t max, struct curve_point *to);
