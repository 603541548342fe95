/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that show experiments and jobs in the terminal. */
#pragma once

#include "launcher/sys/settings.h"

/* Each returns an exit status of launcher/sys/say.h. */
int cmd_watch (const struct settings *st);
int cmd_plot (const struct settings *st);
int cmd_compare (const struct settings *st);
int cmd_best (const struct settings *st);
int cmd_failures (const struct settings *st);
int cmd_top (const struct settings *st);

/* Print what dl plot can draw, for completion. */
void plot_words (void);
