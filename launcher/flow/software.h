/* SPDX-License-Identifier: Apache-2.0 */
/* The container and environment in which the command of a step runs. */
#pragma once

#include "launcher/flow/values.h"

/* Load that of a step whose command runs in 'dir'.  'e' becomes a copy of the
 * step's settings with it, of which the caller frees software.activated.
 * Returns -1 with 'err'.
 */
int flow_software_enter (const struct flow_scope *c, const char *dir, struct experiment *e,
                         struct slurmdl_error *err);

/* Add to NULL-ended lists the words that start the command of a step, by srun
 * and in its container, and the variables that these need.  Returns -1 with
 * 'err'.
 */
int flow_software_start (const struct flow_scope *c, const struct experiment *e, char ***argv,
                         char ***variables, struct slurmdl_error *err);
