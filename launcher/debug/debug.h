/* SPDX-License-Identifier: Apache-2.0 */
/* The commands dl debug, and dl watch-ranks, which the plugin starts. */
#pragma once

#include "launcher/sys/settings.h"

/* The commands: an exit status of launcher/sys/say.h. */
int cmd_debug (const struct settings *st);
int cmd_watch_ranks (const struct settings *st);
