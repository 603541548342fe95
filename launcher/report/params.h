/* SPDX-License-Identifier: Apache-2.0 */
/* The hyperparameters of a report's experiments as columns. */
#pragma once

#include "launcher/report/experiments.h"
#include "launcher/report/report_text.h"

struct report_param {
    const char *name; /* belongs to the experiment */
    bool category, integer, log;
    double low, high;   /* range of a number */
    struct words table; /* values of a category */
    double *v;          /* of each trial: the value, or the number of the category; NaN: none */
    double *began;      /* the same at the start of the trial, before on_oom changed it */
};

struct report_params {
    struct report_param *list;
    size_t n;
};

/* Fill in the searched parameters and, with several experiments, also those whose
 * values differ between experiments.
 */
void params_fill (struct report_params *p, const struct report *r);
void params_free (struct report_params *p);

/* Format a trial's value as text, with enough digits to pass it to a command.  Returns
 * false if the trial has no value.
 */
bool param_text (const struct report_param *p, long trial, char *buf, size_t size);
