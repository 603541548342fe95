/* SPDX-License-Identifier: Apache-2.0 */
/* Group failures by cause and find the parameter values at which they concentrate. */
#pragma once

#include "launcher/report/params.h"

struct failure_cause {
    size_t cause;  /* index in the report's table of causes */
    long attempts; /* number of attempts with this cause */
    size_t last;   /* index of the last one in the report's attempts */
};

/* List the causes of failed attempts, the most frequent first.  The caller frees the
 * list.  Returns how many.
 */
long failure_causes (const struct report *r, struct failure_cause **list);

/* A range of a parameter, or a choice, at which trials fail more than twice as often.
 */
struct failure_finding {
    double chi; /* how unlikely it is by chance; 0 if nothing was found */
    const struct report_param *p;
    bool above;
    double at;          /* the choice or the bound */
    double rate, other; /* failure rates of these trials and of all others */
};

/* Find the parameter that explains the failures best.  'failed' has one element for
 * each trial of the report.
 */
struct failure_finding failure_explain (const struct report *r, const struct report_params *p,
                                        const bool *failed);
