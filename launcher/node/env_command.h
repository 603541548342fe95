/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl env. */
#pragma once

#include "launcher/sys/settings.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_env (const struct settings *st);
