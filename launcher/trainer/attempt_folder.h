/* SPDX-License-Identifier: Apache-2.0 */
/* Make the folder of an attempt, with what the trainer finds in it. */
#pragma once

#include <stdbool.h>

#include "launcher/sweep/attempt.h"

/* With hparams.json and an empty log, open as '*log' (-1 if there is none);
 * '*made': there is nothing else in it.  Returns the folder, open as well, or
 * -1.
 */
int attempt_folder (const struct trial_attempt *a, int *log, bool *made, struct slurmdl_error *err);
