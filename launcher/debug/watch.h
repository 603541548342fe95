/* SPDX-License-Identifier: Apache-2.0 */
/* dl watch-ranks, which the plugin starts beside the ranks of a node. */
#pragma once

#include "launcher/sys/settings.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_watch_ranks (const struct settings *st);
