/* SPDX-License-Identifier: Apache-2.0 */
/* Run modules of slurm-dl's Python package. */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"

/* Start main(ARGS...) of a module of the package.  The interpreter is DL_PYTHON, or python3 by
 * default.  The list 'args' ends with NULL.  'in' becomes standard input; -1: none.  The child is
 * killed when this process ends.  If the package is missing, the child prints what to install and
 * exits with EXIT_NOT_FOUND.
 *
 * Returns the pid, or -1 on failure.
 */
pid_t python_start (const char *module, char *const *args, int in, struct slurmdl_error *err);

/* Wait for the child.  Returns its exit status, or EXIT_IO or EXIT_NOT_FOUND after a message if it
 * was killed or could not be run: 'what' needs Python.
 */
int python_wait (pid_t pid, const char *what);
