/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl search-server. */
#ifndef LAUNCHER_SEARCHSERVER_SERVER_H
#define LAUNCHER_SEARCHSERVER_SERVER_H

#include "launcher/sys/settings.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_search_server (const struct settings *st);

#endif
