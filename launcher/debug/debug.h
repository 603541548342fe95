/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl debug. */
#ifndef LAUNCHER_DEBUG_DEBUG_H
#define LAUNCHER_DEBUG_DEBUG_H

#include "launcher/sys/settings.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_debug (const struct settings *st);

#endif
