/* SPDX-License-Identifier: Apache-2.0 */
/* The commands dl check, dl doctor and dl env, and the parts of dl check that
 * the plugin starts.
 */
#pragma once

#include "launcher/sys/settings.h"

/* The commands: an exit status of launcher/sys/say.h. */
int cmd_check (const struct settings *st);
int cmd_check_rank (const struct settings *st);
int cmd_gather (const struct settings *st);
int cmd_doctor (const struct settings *st);
int cmd_env (const struct settings *st);

/* The file in the folder of an attempt that gets the names of bad nodes, one a
 * line.
 */
#define GATHER_NOTES "bad-nodes"
