/* SPDX-License-Identifier: Apache-2.0 */
/* srun (pyxis) starts the ranks of a trial in containers. */
#pragma once

#include <stdbool.h>

#include "launcher/config/experiment.h"
#include "runtime/base/error.h"

/* Whether srun (pyxis) starts it: the file says so, or srun has the options and
 * takes the image.
 */
bool container_by_srun (const struct software *s, const char *dir);

/* Add to a NULL-ended list srun's options for the container, and the words that
 * start the command of a rank in it.  Returns -1 with errno.
 */
int container_srun_words (const struct software *s, const char *dir, char *const *folders,
                          char *const *variables, char ***words, struct slurmdl_error *err);
