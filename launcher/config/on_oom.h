/* SPDX-License-Identifier: Apache-2.0 */
/* Hyperparameters that are halved where the memory of a GPU is too small. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"

struct experiment;
struct hparam;

/* Read on_oom of each hyperparameter in 'group'. */
void on_oom_read (struct experiment *e, config_setting_t *group, struct problems *p);

/* Halve the first hyperparameter that is marked and active in the point 'x' and
 * has a value that is at most half of that.  Returns it, NULL if there is none.
 */
const struct hparam *on_oom_halve (const struct experiment *e, double *x);
