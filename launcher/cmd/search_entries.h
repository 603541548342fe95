/* SPDX-License-Identifier: Apache-2.0 */
/* The search space of a request, and its points. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "runtime/base/error.h"
#include "searcher/searcher.h"

struct search_header {
    struct search_config config;
    struct param *params;
    json_t **choices; /* of each parameter, NULL: a number */
    double *low, *high;
    size_t n;
    bool steps;   /* there is a "max_step" */
    bool confirm; /* to ask begins nothing */
    json_t *json; /* owns the names and the choices */
    char ***labels;
    double **when;
    double *points, *known_x, *known_y;
    struct search_known *known;
};

/* Fail with EINVAL and "WHO: WHAT", or WHAT if 'who' is empty. */
int header_bad (struct slurmdl_error *err, const char *who, const char *what);

/* Read the space into an empty header. */
int header_space (struct search_header *h, const json_t *space, struct slurmdl_error *err);

/* Read a point, {"lr":0.1,"act":"relu"}, in which a parameter that is not there
 * or null is not active.  Errors begin with 'who'.
 */
int header_point (const struct search_header *h, const json_t *params, const char *who, double *x,
                  struct slurmdl_error *err);

/* Are 'count' points in the space, whatever the constraint says?  Returns -1
 * and says which is not; 0 if the space itself is wrong.
 */
int header_fit (const struct search_header *h, const char *what, const double *x, size_t count,
                struct slurmdl_error *err);

/* The parameters at a point, without those that are not active. */
json_t *header_params (const struct search_header *h, const double *x);
