/* SPDX-License-Identifier: Apache-2.0 */
/* Load the modules and the conda or virtual environment of trials, once per process. */
#pragma once

#include <stdbool.h>

#include "launcher/config/diagnostics.h"
#include "runtime/base/error.h"

struct software;

/* Set s->activated to the variables of this process plus those that the modules, the conda
 * environment or the virtual environment set.  'dir' is the folder in which trials run.  The
 * environment of this process stays as it is.  Does nothing if none of them is configured, or if
 * called again.
 *
 * Returns -1 with 'err' and errno, which is EINVAL if something does not exist.  Then 'where',
 * unless NULL, receives the origin of the setting at fault.
 */
int software_activate (struct software *s, const char *dir, struct origin *where,
                       struct slurmdl_error *err);

/* Whether nothing is left to load. */
bool software_is_loaded (const struct software *s);

/* The value of a variable in the loaded environment; NULL: it is not set. */
const char *software_variable (const struct software *s, const char *name);

/* Find a program in 'list', which has the form of PATH.  A name with a slash is returned unchanged.
 * The caller frees the path; NULL: there is no such program.
 */
char *program_path (const char *list, const char *name);
