/* SPDX-License-Identifier: Apache-2.0 */
/* Check that the command of an experiment can run and uses the values it gets. */
#pragma once

#include "launcher/config/diagnostics.h"

struct experiment;

/* Check the groups of 'entrypoint', the trials' container, and that the program and
 * script exist.  With 'loads', first load the trials' environment.  Skips words that
 * only a shell can expand, and, unless 'local', programs that may exist only on the
 * compute nodes.
 *
 * Prints errors to standard error and returns an exit status.
 */
int command_check (struct experiment *e, bool local, bool loads);

/* Warn about everything in the file that is valid but probably a mistake. */
void command_warn (const struct experiment *e);

/* Only check that the program and script exist, if their paths are relative. */
void command_check_files (const struct experiment *e, struct problems *p);
