/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read an experiment share. */
#ifndef LAUNCHER_PRIVATE_H
#define LAUNCHER_PRIVATE_H

#include <libconfig.h>

#include "launcher/experiment.h"

/* "FILE:LINE: TEXT" */
void setting_problem (struct problems *p,
                      const struct experiment *e,
                      int line,
                      const char *text);

/* The value of a number of any type.  Returns -1 if it is none. */
int setting_number (const config_setting_t *s, double *v);

/* Free a NULL-ended list and its strings. */
void strings_free (char **list);

/* Read the group "hyperparameters" into e->hparams and e->params. */
void space_read (struct experiment *e,
                 const config_setting_t *group,
                 struct problems *p);

/* Check what depends on several keys, and finish the struct. */
void experiment_check (struct experiment *e, config_t *cf, struct problems *p);

#endif
