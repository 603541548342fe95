/* SPDX-License-Identifier: Apache-2.0 */
/* The commands dl check, dl gather and dl check-rank. */
#pragma once

#include "launcher/sys/settings.h"

/* The commands: an exit status of launcher/sys/say.h. */
int cmd_check (const struct settings *st);
int cmd_check_rank (const struct settings *st);
int cmd_gather (const struct settings *st);
