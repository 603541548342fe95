/* SPDX-License-Identifier: Apache-2.0 */
/* The archive of an experiment, shared between experiments with the same code.
 */
#pragma once

#include <sys/types.h>

#include "launcher/code/archive.h"

/* Write the archive into the folder of an experiment, as code.tar.zst or, if that exists, as
 * code-DIGEST.tar.zst with 12 digits.  .dl-code/DIGEST beside the experiments is a hard link to it,
 * which the next experiment with the same code uses.
 */
int store_put (const char *dir, const struct code_archive *a, struct slurmdl_error *err);

/* The code may be private although the folder of experiments is not: create files from now on for
 * the group that shares 'dir', if one does, or for the user alone.  Returns the previous umask(2).
 */
mode_t store_umask (const char *dir);

/* Read the archive of an experiment; rejects one with another digest: EBADMSG. */
int store_get (const char *dir, const char *digest, struct code_archive *a,
               struct slurmdl_error *err);

/* Make git(1) ignore a folder. */
void ignore_in_git (const char *folder);

/* Remove stored archives that no experiment beside 'dir', which is removed, uses any longer. */
void store_clean (const char *dir);
