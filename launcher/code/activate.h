/* SPDX-License-Identifier: Apache-2.0 */
/* Load the modules and the environment of trials, once per process. */
#pragma once

#include <stdbool.h>

#include "launcher/config/diagnostics.h"
#include "runtime/base/error.h"

struct software;

/* Set s->activated to this process's variables plus what the modules, the conda environment or the
 * virtual environment set.  Does nothing if there are none of these, or if called again.  'dir' is
 * where trials run.  This process keeps its own variables.
 *
 * Returns -1 with errno, EINVAL if something does not exist; 'where' (or NULL) gets the origin of
 * the key.
 */
int software_activate (struct software *s, const char *dir, struct origin *where,
                       struct slurmdl_error *err);

/* Whether there is nothing to load, or it has been loaded. */
bool software_is_loaded (const struct software *s);

/* The value of a variable in that environment; NULL: not set. */
const char *software_variable (const struct software *s, const char *name);

/* Find a program in a PATH; a name with a slash is returned as it is.  The caller frees it; NULL:
 * none.
 */
char *program_path (const char *list, const char *name);
