/* SPDX-License-Identifier: Apache-2.0 */
/* The command line that runs a trial in a container, for each runtime. */
#ifndef LAUNCHER_SOFTWARE_CONTAINER_H
#define LAUNCHER_SOFTWARE_CONTAINER_H

#include <stdbool.h>

#include "launcher/config/experiment.h"
#include "runtime/slurmdl.h"

/* The image: its whole path if it is a file or folder ('dir' is where the
 * trials run), else the reference.  The caller frees it.  NULL with errno
 * ENOENT: it can only be a file, and is not there.
 */
char *container_image (const struct software *s, const char *dir);

/* Choose the runtime that takes the image, of those in PATH; pyxis is no choice
 * here.  Returns its name; NULL with errno ENOENT.
 */
const char *container_runtime (const struct software *s,
                               const char *dir,
                               const char *path,
                               struct slurmdl_error *err);

/* Whether srun (pyxis) starts it: the file says so, or srun has the options and
 * takes the image.
 */
bool container_by_srun (const struct software *s, const char *dir);

/* Add to a NULL-ended list srun's options for the container, and the words that
 * start the command of a rank in it.  Returns -1 with errno.
 */
int container_srun_words (const struct software *s,
                          const char *dir,
                          char *const *folders,
                          char *const *variables,
                          char ***words,
                          struct slurmdl_error *err);

/* The command line, NULL-ended, that runs 'command' in the working folder of
 * this process, with its environment, in a container that sees the 'folders'.
 * '*name' gets what the container is called where it outlives a runtime that is
 * killed, else NULL.  The caller frees both.  NULL with errno on failure.
 */
char **container_command (const struct software *s,
                          char *const *folders,
                          char *const *command,
                          char **name,
                          struct slurmdl_error *err);

#endif
