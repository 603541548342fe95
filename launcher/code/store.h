/* SPDX-License-Identifier: Apache-2.0 */
/* The archive of an experiment, shared between experiments with the same code.
 */
#pragma once

#include <sys/types.h>

#include "launcher/code/archive.h"

/* Put the archive into the folder of an experiment, as code.tar.zst, or, if it
 * has another one, as code-DIGEST.tar.zst, with 12 digits.   Beside the
 * experiments, .dl-code/DIGEST has the same file under another name, from which
 * the next experiment with the same code has it, too.
 */
int store_put (const char *dir, const struct code_archive *a, struct slurmdl_error *err);

/* The folder of the code may be closed to others, and that of the experiments
 * open: what is made from now on is for the group that shares 'dir', if one
 * does, or for the user alone.  Returns the umask(2) of before.
 */
mode_t store_umask (const char *dir);

/* Read the archive of an experiment.  One that has not this digest is refused:
 * EBADMSG.
 */
int store_get (const char *dir, const char *digest, struct code_archive *a,
               struct slurmdl_error *err);

/* Keep what is made in a folder out of git(1). */
void ignore_in_git (const char *folder);

/* Remove what no experiment beside 'dir' has any more: that is removed. */
void store_clean (const char *dir);
