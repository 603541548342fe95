/* SPDX-License-Identifier: Apache-2.0 */
/* dl within: run a command in the container of DL_SOFTWARE. */
#pragma once

#include "launcher/sys/settings.h"

/* The command; returns an exit status. */
int cmd_within (const struct settings *st);
