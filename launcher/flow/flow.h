/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow: steps that wait for each other. */
#pragma once

#include "launcher/sys/settings.h"

/* The command, which returns an exit status, and its words for completion. */
int cmd_flow (const struct settings *st);
void flow_words (void);
