/* SPDX-License-Identifier: Apache-2.0 */
/* Fill a struct slurmdl_error; inside the project only. */
#pragma once

#include "runtime/slurmdl_error.h"

/* Clear 'err', which may be NULL. Every public function does so first. */
void error_clear (struct slurmdl_error *err);

/* Write a line into 'err' (may be NULL) unless it already has one: the first
 * error is the cause.  Keeps errno.  Returns -1, so that a function can end
 * with `return errorf (err, ...)`.
 */
int errorf (struct slurmdl_error *err, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
