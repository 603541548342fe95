/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl sample, which the plugin starts beside the ranks of a node. */
#pragma once

#include "launcher/sys/command_line.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_sample (const struct command_line *line);
