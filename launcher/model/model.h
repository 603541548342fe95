/* SPDX-License-Identifier: Apache-2.0 */
/* dl model: a registry of checkpoints, in plain files. */
#pragma once

#include "launcher/sys/settings.h"

/* The command, which returns an exit status, and its words for completion. */
int cmd_model (const struct settings *st);

/* Print the words that may follow, for completion. */
void model_words (void);

/* Each returns an exit status of launcher/sys/say.h. */
int model_register (const struct settings *st);
int model_ls (const struct settings *st);
int model_show (const struct settings *st);
int model_promote (const struct settings *st);
int model_note (const struct settings *st);
int model_rm (const struct settings *st);
int model_export (const struct settings *st);
