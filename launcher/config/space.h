/* SPDX-License-Identifier: Apache-2.0 */
/* The search space of an experiment: the group "hyperparameters". */
#pragma once

#include <jansson.h>
#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/diagnostics.h"
#include "searcher/searcher.h"

struct experiment;

/* One hyperparameter.  A constant has no dimension of the search. */
struct hparam {
    char *path;     /* "optimizer.lr" */
    int dim;        /* index in params, -1: constant */
    json_t *values; /* categorical: array; constant: the value; else NULL */
    struct origin origin;
    char **labels;       /* categorical: texts of the choices, NULL-ended */
    double *when_values; /* of its param */
    double preset;       /* its default, NaN: none */
    bool exponents;      /* its range was given by exponents */
    bool halves;         /* where the memory of a GPU is too small */
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

/* Ranges of exponents that were plainly meant as values; -1 if there are any.
 * Not for the file of an experiment that was made before.
 */
int space_check_exponents (const struct experiment *e, struct problems *p);

/* Halve the first hyperparameter that is marked and active in the point 'x' and
 * has a value that is at most half of that.  Returns it, NULL if there is none.
 */
const struct hparam *on_oom_halve (const struct experiment *e, double *x);

/* The searched parameters as the first line of dl-search-server(1) has them:
 * an array of objects.  Returns a new reference.
 */
json_t *space_json (const struct experiment *e);
