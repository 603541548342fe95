/* SPDX-License-Identifier: Apache-2.0 */
/* dl watch-ranks, which the plugin starts beside the ranks of a node. */
#ifndef LAUNCHER_DEBUG_WATCH_H
#define LAUNCHER_DEBUG_WATCH_H

#include "launcher/sys/settings.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_watch_ranks (const struct settings *st);

#endif
