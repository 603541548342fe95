/* SPDX-License-Identifier: Apache-2.0 */
/* Read the search space of an experiment file. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"

/* Read the group "hyperparameters" into e->hparams and e->params. */
void space_read (struct experiment *e, config_setting_t *group, struct problems *p);
/* Ranges of exponents that were plainly meant as values; -1 if there are any.
 * Not for the file of an experiment that was made before.
 */
int space_check_exponents (const struct experiment *e, struct problems *p);
void space_free (struct experiment *e);
