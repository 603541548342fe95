/* SPDX-License-Identifier: Apache-2.0 */
/* The commands dl shell, dl notebook and dl tensorboard. */
#pragma once

#include "launcher/sys/settings.h"

/* Each returns an exit status of launcher/sys/say.h. */
int cmd_shell (const struct settings *st);
int cmd_notebook (const struct settings *st);
int cmd_tensorboard (const struct settings *st);

/* Print the words that may follow 'dl notebook', for completion. */
void notebook_words (void);
