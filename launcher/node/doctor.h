/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl doctor. */
#pragma once

#include "launcher/sys/settings.h"

/* The command: an exit status of launcher/sys/say.h. */
int cmd_doctor (const struct settings *st);
