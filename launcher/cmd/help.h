/* SPDX-License-Identifier: Apache-2.0 */
/* Help, and words for a shell's completion. */
#pragma once

#include <stdbool.h>

#include "launcher/cmd/options.h"

/* The commands in groups, and one command with its options. */
void help_all (const struct cmd *table);
void help_cmd (const struct cmd *cmd);

/* Words for a shell's completion of the words so far, which do not have the
 * program's name; 'described': each with a tab and what it is.
 */
void complete (const struct cmd *table, int argc, char **argv, bool described);
