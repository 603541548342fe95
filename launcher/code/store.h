/* SPDX-License-Identifier: Apache-2.0 */
/* The code archive of an experiment, which experiments with the same code share. */
#pragma once

#include <sys/types.h>

#include "launcher/code/archive.h"

/* Write the archive to the folder of an experiment, as code.tar.zst or, if that exists, as
 * code-DIGEST.tar.zst with 12 digits.  Also link it to .dl-code/DIGEST beside the experiments,
 * where the next experiment with the same code finds it.  Returns -1 with 'err'.
 */
int store_put (const char *dir, const struct code_archive *a, struct slurmdl_error *err);

/* Set the umask so that only the user, and the group that shares 'dir' if there is one, can read
 * new files: the code may be private although the folder of experiments is not.  Returns the
 * previous umask.
 */
mode_t store_umask (const char *dir);

/* Read the archive of an experiment.  Returns -1 with 'err' and errno; EBADMSG if its digest
 * differs.
 */
int store_get (const char *dir, const char *digest, struct code_archive *a,
               struct slurmdl_error *err);

/* Make sure that the copy exists: unless it does, unpack the archive of an experiment into it.
 * Returns -1 with 'err'.
 */
int store_unpack (const char *dir, const char *digest, const struct code_copy *copy,
                  struct slurmdl_error *err);

/* Make git ignore a folder. */
void ignore_in_git (const char *folder);

/* Remove stored archives that no experiment beside 'dir' uses.  Call it while removing 'dir'. */
void store_clean (const char *dir);
