/* SPDX-License-Identifier: Apache-2.0 */
/* The command line that runs a trial in a container, for each runtime. */
#pragma once

#include "launcher/config/experiment.h"
#include "runtime/base/error.h"

/* Choose the runtime that takes the image, of those in PATH; pyxis is no choice
 * here.  Returns its name; NULL with errno ENOENT.
 */
const char *container_runtime (const struct software *s, const char *dir, const char *path,
                               struct slurmdl_error *err);

/* The command line, NULL-ended, that runs 'command' in the working folder of
 * this process, with its environment, in a container that sees the 'folders'.
 * '*name' gets what the container is called where it outlives a runtime that is
 * killed, else NULL.  The caller frees both.  NULL with errno on failure.
 */
char **container_command (const struct software *s, char *const *folders, char *const *command,
                          char **name, struct slurmdl_error *err);
