/* SPDX-License-Identifier: Apache-2.0 */
/* The search space of an experiment: the group "hyperparameters". */
#pragma once

#include <jansson.h>
#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/diagnostics.h"
#include "searcher/searcher.h"

struct experiment;

/* One hyperparameter.  A constant is not a dimension of the search. */
struct hparam {
    char *path;     /* "optimizer.lr" */
    int dim;        /* index in params; -1: constant */
    json_t *values; /* categorical: array; constant: the value; else NULL */
    struct origin origin;
    char **labels;       /* categorical: texts of the choices, NULL-terminated */
    double *when_values; /* storage for its param */
    double preset;       /* the default; NaN: none */
    bool exponents;      /* the range was given as exponents */
    bool halves;         /* halve it if a GPU runs out of memory */
};

struct space {
    struct hparam *hparams; /* sorted by path */
    size_t nhparams;
    struct param *params; /* the dimensions, in the same order */
    size_t nparams;
};

/* Read the group "hyperparameters" into e->space. */
void space_read (struct experiment *e, config_setting_t *group, struct problems *p);
void space_free (struct experiment *e);

/* Add a problem for each range of exponents that was plainly meant as a range of values.  Returns
 * -1 if there are any.  Do not call this for an existing experiment.
 */
int space_check_exponents (const struct experiment *e, struct problems *p);

/* In the point 'x', halve the first active hyperparameter that is marked 'halves' and has a value
 * of at most half the present one.  Returns it, or NULL if there is none.
 */
const struct hparam *on_oom_halve (const struct experiment *e, double *x);

/* The searched parameters as an array of objects, in the format of the first line of
 * dl-search-server(1).  Returns a new reference.
 */
json_t *space_json (const struct experiment *e);
