/* SPDX-License-Identifier: Apache-2.0 */
/* Containers: images, runtimes and their command lines, and srun's options for pyxis. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

struct software;

/* ---- the image: a file, a folder or a reference ---- */

enum image_kind { SIF = 1, SQUASHFS = 2, FOLDER = 4, REFERENCE = 8 };

/* The absolute path of the image if it is a file or folder, else its reference.  A relative path
 * counts from 'dir', in which the trials run.  The caller frees the result.  NULL with errno,
 * usually ENOENT, if the image can only be a file and cannot be read.
 */
char *container_image (const struct software *s, const char *dir);

/* ---- a runtime ---- */

/* Choose a runtime that is in PATH and can run the image; pyxis does not count.  Returns its name,
 * or NULL with 'err' and errno ENOENT.
 */
const char *container_runtime (const struct software *s, const char *dir, const char *path,
                               struct slurmdl_error *err);

/* Make the command line, a NULL-ended list, that runs 'command' in a container with the working
 * folder and the environment of this process.  The container sees the 'folders'.  '*name' receives
 * the name of the container if killing the runtime does not end it, else NULL.  The caller frees
 * both.  Returns NULL with 'err'.
 *
 * Changes variables of this process for the runtime.
 */
char **container_command (const struct software *s, char *const *folders, char *const *command,
                          char **name, struct slurmdl_error *err);

/* ---- srun with pyxis, which starts the ranks of a trial in containers ---- */

/* Whether srun starts the containers: the file requests pyxis, or it names no runtime, srun has
 * pyxis's options, and pyxis can run the image.
 */
bool container_by_srun (const struct software *s, const char *dir);

/* Append to a NULL-ended list srun's options for the container, and then the words that start the
 * command of a rank inside it.  Returns -1.
 */
int container_srun_words (const struct software *s, const char *dir, char *const *folders,
                          char *const *variables, char ***words, struct slurmdl_error *err);
