/* SPDX-License-Identifier: Apache-2.0 */
/* The hyperparameters of a report's experiments as columns. */
#pragma once

#include "launcher/report/experiments.h"
#include "launcher/report/report_text.h"

struct report_param {
    const char *name; /* the experiment's */
    bool category, integer, log;
    double low, high;   /* of a number's range */
    struct words table; /* a category's values */
    double *v;          /* of each trial; of a category its number; NaN: none */
    double *began;      /* the same where it began: on_oom has changed 'v' */
};

struct report_params {
    struct report_param *list;
    size_t n;
};

/* Those that are searched and, of several experiments, those that differ. */
void params_fill (struct report_params *p, const struct report *r);
void params_free (struct report_params *p);

/* A trial's value as text, exact enough to be given to a command; false: it has
 * none.
 */
bool param_text (const struct report_param *p, long trial, char *buf, size_t size);
