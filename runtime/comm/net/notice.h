/* SPDX-License-Identifier: Apache-2.0 */
/* What one process of the user's publishes for the others: a line in a file of
 * ~/.slurm-dl.
 */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

enum { NOTICE_NAME = 256, NOTICE_TEXT = 512 };

/* The folder and its files are the user's, and nobody else may enter or read
 * them: others are an error, EPERM.  notice_put() replaces what an earlier
 * process has left; notice_get() fails with ENOENT until it is there.
 */
int notice_put (const char *name, const char *text, struct slurmdl_error *err);
int notice_get (const char *name, char *text, struct slurmdl_error *err);
void notice_remove (const char *name); /* errno is kept */

/* A name in 'buf' that only this step has; -1: this is no step. */
int notice_step_name (char *buf, size_t size, const char *what);
