/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl elastic. */
#pragma once

#include "launcher/sys/settings.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_elastic (const struct settings *st);
