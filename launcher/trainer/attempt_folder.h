/* SPDX-License-Identifier: Apache-2.0 */
/* Make the folder of an attempt, with what the trainer finds in it. */
#ifndef LAUNCHER_TRAINER_ATTEMPT_FOLDER_H
#define LAUNCHER_TRAINER_ATTEMPT_FOLDER_H

#include "launcher/sweep/attempt.h"

/* With hparams.json and an empty log, open as '*log' (-1 if there is none).
 * Returns the folder, open as well, or -1.
 */
int attempt_folder (const struct trial_attempt *a,
                    int *log,
                    struct slurmdl_error *err);

#endif
