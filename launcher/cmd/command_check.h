/* SPDX-License-Identifier: Apache-2.0 */
/* Check that the command of an experiment can be run, and uses what it is given. */
#pragma once

#include "launcher/config/diagnostics.h"

struct experiment;

/* Check the groups of 'entrypoint', with 'loads' load what the trials'
 * environment has, look for their container, and whether the program and script
 * are there.  What a shell has to decide first, and programs of other machines
 * ('local': there are none), are left alone.
 *
 * Returns an exit status after lines on standard error.
 */
int command_check (struct experiment *e, bool local, bool loads);

/* Print a line for each thing in the file that is no mistake, but looks like
 * one.
 */
void command_warn (const struct experiment *e);

/* Of that, whether the program or script is there, if its path is relative. */
void command_check_files (const struct experiment *e, struct problems *p);
