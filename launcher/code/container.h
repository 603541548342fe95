/* SPDX-License-Identifier: Apache-2.0 */
/* Containers: the image, the runtime, its command line, and srun's options for pyxis. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

struct software;

/* ---- the image: a file, a folder, or a reference ---- */

enum image_kind { SIF = 1, SQUASHFS = 2, FOLDER = 4, REFERENCE = 8 };

/* Its whole path if it is a file or folder ('dir' is where the trials run), else the reference. The
 * caller frees it.  NULL with errno ENOENT: it can only be a file, and does not exist.
 */
char *container_image (const struct software *s, const char *dir);

/* ---- a runtime ---- */

/* Choose a runtime in PATH that takes the image; pyxis is none of them.  Returns its name, or NULL
 * with errno ENOENT.
 */
const char *container_runtime (const struct software *s, const char *dir, const char *path,
                               struct slurmdl_error *err);

/* The command line, NULL-ended, that runs 'command' in this process's working folder, with its
 * environment, in a container that sees the 'folders'.  '*name' gets the container's name if it
 * outlives a runtime that is killed, else NULL.  The caller frees both.  NULL with errno on
 * failure.
 */
char **container_command (const struct software *s, char *const *folders, char *const *command,
                          char **name, struct slurmdl_error *err);

/* ---- srun with pyxis, which starts the ranks of a trial in containers ---- */

/* Whether srun starts the container: the file says so, or srun has the options and takes the image.
 */
bool container_by_srun (const struct software *s, const char *dir);

/* Add to a NULL-ended list srun's options for the container, and the words that start a rank's
 * command in it.  Returns -1 with errno.
 */
int container_srun_words (const struct software *s, const char *dir, char *const *folders,
                          char *const *variables, char ***words, struct slurmdl_error *err);
