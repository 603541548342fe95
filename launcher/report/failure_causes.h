/* SPDX-License-Identifier: Apache-2.0 */
/* Group failures by cause and find the parameter values at which they concentrate. */
#pragma once

#include "launcher/report/params.h"

struct failure_cause {
    size_t cause;  /* in the report's table */
    long attempts; /* that ended so */
    size_t last;   /* of them the last one: index of the report's attempts */
};

/* List the causes of failed attempts, the most frequent first.  The caller frees the
 * list.  Returns how many.
 */
long failure_causes (const struct report *r, struct failure_cause **list);

/* Values of a parameter at which trials that begin there fail more than twice
 * as often.
 */
struct failure_finding {
    double chi; /* how unlikely by chance; 0: there are none */
    const struct report_param *p;
    bool above;
    double at;          /* the choice, or the bound */
    double rate, other; /* shares of those trials, and of all others */
};

/* 'failed' has one element for each trial of the report. */
struct failure_finding failure_explain (const struct report *r, const struct report_params *p,
                                        const bool *failed);
