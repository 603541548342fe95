/* SPDX-License-Identifier: Apache-2.0 */
/* dl ckpt diff: compare two checkpoints. */
#pragma once

#include "launcher/sys/settings.h"

/* Returns an exit status of launcher/sys/say.h. */
int ckpt_diff (const struct settings *st);
