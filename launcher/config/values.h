/* SPDX-License-Identifier: Apache-2.0 */
/* Values of hyperparameters, as users write them. */
#pragma once

#include <jansson.h>
#include <libconfig.h>

#include "launcher/config/diagnostics.h"

struct experiment;
struct hparam;

/* JSON as a text for the user, who frees it. */
char *json_text (const json_t *v);

/* The hyperparameter of that path; NULL: there is none. */
struct hparam *hparam_find (const struct experiment *e, const char *path);

/* "'PATH' is not a hyperparameter; did you mean ...", with 'where' before it.
 */
void hparam_unknown (const struct experiment *e, const config_setting_t *s, const char *where,
                     const char *path, struct problems *p);

/* The coordinate of 'v' in the dimension of 'h'.  Returns -1 if it has no
 * such value; setting_value() then says so, with 'where' before it.
 */
int json_value (const struct experiment *e, const struct hparam *h, const json_t *v, double *x);
int setting_value (const struct experiment *e, const struct hparam *h, const config_setting_t *s,
                   const char *where, double *x, struct problems *p);
