/* SPDX-License-Identifier: Apache-2.0 */
/* A search as a program describes it in a line of JSON: dl(1), SEARCH SERVER.
 */
#ifndef LAUNCHER_SEARCHSERVER_HEADER_H
#define LAUNCHER_SEARCHSERVER_HEADER_H

#include <jansson.h>

#include "launcher/sys/settings.h"
#include "runtime/slurmdl.h"
#include "searcher/searcher.h"

struct header {
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

/* Read one; 'searcher', if not NULL, is its searcher whatever it says.  Takes
 * the JSON over.  header_free() is due in any case.
 *
 * Returns -1 with errno EINVAL or ENOMEM; what searcher_check() would say of it
 * is not said here.
 */
int header_read (struct header *h,
                 json_t *json,
                 const char *searcher,
                 struct slurmdl_error *err);
void header_free (struct header *h);

/* ---- the space and its points ---- */

/* Read the space into an empty header. */
int header_space (struct header *h,
                  const json_t *space,
                  struct slurmdl_error *err);

/* Read a point, {"lr":0.1,"act":"relu"}, in which a parameter that is not there
 * or null is not active.  Errors begin with 'who'.
 */
int header_point (const struct header *h,
                  const json_t *params,
                  const char *who,
                  double *x,
                  struct slurmdl_error *err);

/* Are 'count' points in the space, whatever the constraint says?  Returns -1
 * and says which is not; 0 if the space itself is wrong.
 */
int header_fit (const struct header *h,
                const char *what,
                const double *x,
                size_t count,
                struct slurmdl_error *err);

/* The parameters at a point, without those that are not active. */
json_t *header_params (const struct header *h, const double *x);

/* ---- values ---- */

/* Fail with EINVAL and "WHO: WHAT", or WHAT if 'who' is empty. */
int header_bad (struct slurmdl_error *err, const char *who, const char *what);

/* Read the value of a trial: a number, or a list of one for each objective;
 * null is NaN.  Returns -1 if it is something else.
 */
int header_values (const struct header *h,
                   const json_t *json,
                   const char *who,
                   double *values,
                   struct slurmdl_error *err);

/* The command: an exit status of launcher/sys/say.h. */
int cmd_search_server (const struct settings *st);

#endif
