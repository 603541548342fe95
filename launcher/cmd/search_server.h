/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl search-server. */
#pragma once

#include "launcher/sys/settings.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_search_server (const struct settings *st);
