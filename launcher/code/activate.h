/* SPDX-License-Identifier: Apache-2.0 */
/* Load the modules and the environment in which the trials run, once. */
#pragma once

#include "launcher/config/experiment.h"
#include "runtime/base/error.h"

/* Set s->activated to the variables of this process with what the modules, the
 * conda environment or the virtual environment set; does nothing if there are
 * none of these, or again.  'dir' is where the trials run.  This process keeps
 * its own variables.
 *
 * Returns -1 with errno EINVAL (something does not exist), or another; 'where'
 * (NULL: not wanted) gets the origin of the key.
 */
int software_activate (struct software *s, const char *dir, struct origin *where,
                       struct slurmdl_error *err);

/* Whether there is nothing to load, or it is loaded. */
bool software_is_loaded (const struct software *s);

/* The value of a variable there, NULL: it is not set. */
const char *software_variable (const struct software *s, const char *name);

/* The file of a program in a PATH; a name with a slash is one.  The caller
 * frees it; NULL: none.
 */
char *program_path (const char *list, const char *name);
