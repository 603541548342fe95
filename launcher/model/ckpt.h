/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl ckpt. */
#pragma once

#include "launcher/sys/settings.h"

/* Print the subcommands of 'dl ckpt', a line each. */
void ckpt_words (void);

/* The command: an exit status of launcher/sys/say.h. */
int cmd_ckpt (const struct settings *st);
