/* SPDX-License-Identifier: Apache-2.0 */
/* Notices: a process publishes a line for the user's other processes, in a file in ~/.slurm-dl. */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

enum { NOTICE_NAME = 256, NOTICE_TEXT = 512 };

/* The folder and its files must belong to the user, and nobody else may enter or read them;
 * otherwise, the functions fail with EPERM.  notice_put() replaces the notice of an earlier
 * process; notice_get() fails with ENOENT until the notice exists.
 */
int notice_put (const char *name, const char *text, struct slurmdl_error *err);
int notice_get (const char *name, char *text, struct slurmdl_error *err);
void notice_remove (const char *name); /* keeps errno */

/* Remove those whose names begin with 'prefix', left by processes that were killed. */
void notice_remove_all (const char *prefix);

/* Write a name that is unique to this step.  Returns -1 outside a step. */
int notice_step_name (char *buf, size_t size, const char *what);
