/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl report. */
#pragma once

#include "launcher/sys/settings.h"

/* Returns an exit status of launcher/sys/say.h. */
int cmd_report (const struct settings *st);
