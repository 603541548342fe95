/* SPDX-License-Identifier: Apache-2.0 */
/* Which parameters matter, and by which values. */
#pragma once

#include "launcher/report/params.h"
#include "searcher/models/importance.h"

/* Of the experiment with the most trials. */
struct explanation {
    struct importance of;
    bool known;
    size_t sweep;
    int64_t length; /* at which trials are compared, 0: each at its best */
    long *param;    /* the report's parameter of each of the search */
};

/* Trials are compared at one length where that is possible: one that was
 * trained longer is better for that alone.  -1: no memory.  explanation_free()
 * in any case.
 */
int explain (struct explanation *x,
             const struct report *r,
             const struct report_params *p);
void explanation_free (struct explanation *x);

/* The share of a parameter of the report; NaN: not known. */
double explained_share (const struct explanation *x, size_t param);

/* The share and the mean by value of a parameter into its object, ... */
void explained_put (const struct explanation *x,
                    const struct report_params *p,
                    size_t param,
                    json_t *o);
/* ... and the surfaces as a list. */
json_t *explained_surfaces (const struct explanation *x,
                            const struct report_params *p);
