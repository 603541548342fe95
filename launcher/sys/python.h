/* SPDX-License-Identifier: Apache-2.0 */
/* Call the Python package of slurm-dl. */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"

/* Start main(ARGS...) of a module of the package, in the Python that DL_PYTHON
 * names (default: python3).  'args' is NULL-ended; 'in' is its standard input,
 * -1: none.  It ends with this process.  A Python without the package says what
 * to install, and ends with EXIT_NOT_FOUND.
 *
 * Returns its pid, -1 on failure.
 */
pid_t python_start (const char *module, char *const *args, int in, struct slurmdl_error *err);

/* Wait for its end.  Returns its exit status, after a line if it said none:
 * 'what' needs Python.
 */
int python_wait (pid_t pid, const char *what);
